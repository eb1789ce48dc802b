// breakdown-scanner.ts: finds the lists of a long answer while it arrives, and gives their entries to the
// breakdown. What stands elsewhere in the answer is read over.

import { assertNever } from '../../../std/assert.ts'
import { detailsMax, fieldDetail } from './answer-text.ts'
import type { FieldDetail } from './answer-text.ts'
import type { Breakdown, SentRecord, Summary } from './breakdown.ts'
import { createJsonScanner } from './json-scanner.ts'

export type BreakdownScanner = {
  /** False: the answer is not a JSON object. */
  push(part: Buffer): boolean
  /** The answer is a whole JSON object. */
  ended(): boolean
  /** requestId or RequestId. */
  requestId(): unknown
}

/** Where in the answer we are. */
type Place =
  'outside' | 'answer' | 'accepted' | 'failed' | 'record' | 'details' | 'detail' | 'summary' | 'other'

/** The deepest place is a detail of a record. */
const placesMax = 6

/** Stand for any list and any object. */
const [aList, anObject]: [readonly unknown[], object] = [[], {}]

const wantedKeys: Partial<Record<Place, readonly string[]>> = {
  answer: ['requestId', 'RequestId', 'responseCode'],
  record: ['payloadId', 'errorType', 'errorMessage'],
  detail: ['field', 'message'],
  summary: ['total', 'accepted', 'failed'],
}

export function createBreakdownScanner(breakdown: Breakdown): BreakdownScanner {
  const places: Place[] = ['outside']
  let depth = 0
  let isObject = false
  let key = ''
  const ids: Record<string, unknown> = {}
  let record: SentRecord = newRecord()
  let details: FieldDetail[] = []
  let detail: { field?: unknown; message?: unknown } = {}
  let summary: Summary = { total: undefined, accepted: undefined, failed: undefined }

  const scanner = createJsonScanner({
    open,
    close,
    key(name) {
      key = name
    },
    value,
    wanted() {
      const place = placeNow()
      return place === 'accepted' || (wantedKeys[place]?.includes(key) ?? false)
    },
  })

  return {
    push: (part) => scanner.push(part) && (depth === 0 || isObject),
    ended() {
      return scanner.ended() && isObject
    },
    requestId: () => ids['requestId'] ?? ids['RequestId'],
  }

  function placeNow(): Place {
    return depth < placesMax ? (places[depth] ?? 'other') : 'other'
  }

  function open(isList: boolean): void {
    const inner = placeOf(placeNow(), isList)
    member(isList ? aList : anObject)
    depth += 1
    if (depth < placesMax) places[depth] = inner
    if (inner === 'answer') isObject = true
    if (inner === 'record') record = newRecord()
    if (inner === 'details') details = []
    if (inner === 'detail') detail = {}
    if (inner === 'summary') summary = { total: undefined, accepted: undefined, failed: undefined }
  }

  function placeOf(outer: Place, isList: boolean): Place {
    if (outer === 'outside') return isList ? 'other' : 'answer'
    if (outer === 'answer' && isList && (key === 'accepted' || key === 'failed')) return key
    if (outer === 'answer' && !isList && key === 'summary') return 'summary'
    if (outer === 'failed' && !isList) return 'record'
    if (outer === 'record' && isList && key === 'validationErrorDetails') return 'details'
    return outer === 'details' && !isList ? 'detail' : 'other'
  }

  function close(): void {
    const place = placeNow()
    depth -= 1
    if (place === 'record') breakdown.failed(record)
    else if (place === 'details') record.details = details
    else if (place === 'detail') addDetail(fieldDetail(detail.field, detail.message))
    else if (place === 'summary') breakdown.summary(summary)
  }

  function addDetail(one: FieldDetail): void {
    if (details.length < detailsMax) details.push(one)
  }

  function value(found: unknown): void {
    member(found)
  }

  /** A value at the current place; an empty list or object stands for any. */
  function member(found: unknown): void {
    const isOpening = typeof found === 'object' && found !== null
    const place = placeNow()
    switch (place) {
      case 'answer':
        if (key === 'accepted') breakdown.beginAccepted(Array.isArray(found))
        else if (key === 'failed') breakdown.beginFailed(Array.isArray(found))
        else if (key === 'summary') breakdown.summary(null)
        else if (key === 'responseCode') breakdown.responseCode(found)
        else if (key === 'requestId' || key === 'RequestId') ids[key] = found
        return
      case 'accepted':
        breakdown.accepted(found)
        return
      case 'failed':
        // A record is reported when it ends.
        if (!isOpening || Array.isArray(found)) breakdown.failed(null)
        return
      case 'record':
        if (key === 'payloadId' || key === 'errorType' || key === 'errorMessage') record[key] = found
        else if (key === 'validationErrorDetails') record.details = []
        return
      case 'details':
        if (!isOpening || Array.isArray(found)) addDetail(fieldDetail(undefined, undefined))
        return
      case 'detail':
        if (key === 'field' || key === 'message') detail[key] = found
        return
      case 'summary':
        if (key === 'total' || key === 'accepted' || key === 'failed') summary[key] = found
        return
      case 'outside':
      case 'other':
        return
      default:
        assertNever(place)
    }
  }
}

function newRecord(): SentRecord {
  return { payloadId: undefined, errorType: undefined, errorMessage: undefined, details: [] }
}
