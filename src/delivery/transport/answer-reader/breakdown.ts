// breakdown.ts: collects what the lists of an answer say about the payloads of the batch, in memory that
// depends on the batch and not on the answer: one bit for each accepted payload, one record for each failed
// one. Entries that name another payload, or one for the second time, are only counted.

import type { PayloadId } from '../../../domain/ids.ts'
import type { FailureRecord, Outcome } from '../../../domain/outcome.ts'
import { excerpt, messageCharsMax, shown } from './answer-text.ts'
import type { FieldDetail } from './answer-text.ts'

/** A failure record as the service sent it; the details are cleaned already. */
export type SentRecord = {
  payloadId: unknown
  errorType: unknown
  errorMessage: unknown
  details: readonly FieldDetail[]
}

export type Summary = { total: unknown; accepted: unknown; failed: unknown }

export type Breakdown = {
  /** A member begins. Of a member that occurs twice the last one counts. */
  beginAccepted(isList: boolean): void
  accepted(entry: unknown): void
  beginFailed(isList: boolean): void
  /** Null: an entry that is not an object. */
  failed(record: SentRecord | null): void
  /** Null: it is not an object. */
  summary(fields: Summary | null): void
  responseCode(value: unknown): void
  /** There is a list. */
  found(): boolean
  /** A payload of the batch was named. */
  named(): boolean
  outcome(from: AnswerEnd): Outcome
}

type AnswerEnd = {
  status: number
  requestId: string | null
  /** Why the rest of the answer is not known; null where there is no rest. */
  cut: 'ended early' | 'too large' | null
}

const lookAhead = 8

/** Text of all failure records together. The thread has 48 MiB. */
const textCharsMax = 1_000_000

export const cutTexts = {
  'ended early': 'the answer is truncated',
  'too large': 'the answer is larger than delivery.max_response_bytes',
} as const

export function createBreakdown(payloadIds: readonly PayloadId[]): Breakdown {
  let indexes: ReadonlyMap<string, number> | null = null
  let acceptedList = newList()
  const acceptedBits = new Uint8Array(payloadIds.length)
  let failedList = newList()
  const records = new Map<number, FailureRecord>()
  let textChars = 0
  let recordsCut = 0
  let summary: Summary | null = null
  let responseCode: unknown

  return {
    beginAccepted(isList) {
      acceptedList = newList(isList)
      acceptedBits.fill(0)
    },
    accepted(entry) {
      const index = indexOf(entry, acceptedList)
      if (index === undefined) return
      if (acceptedBits[index] === 1) acceptedList.repeated += 1
      acceptedBits[index] = 1
    },
    beginFailed(isList) {
      failedList = newList(isList)
      records.clear()
      textChars = recordsCut = 0
    },
    failed,
    summary: (fields) => void (summary = fields),
    responseCode: (value) => void (responseCode = value),
    found() {
      return acceptedList.isList || failedList.isList
    },
    named() {
      return records.size > 0 || acceptedBits.includes(1)
    },
    outcome,
  }

  /** Of a payload of the batch; everything else is counted. */
  function indexOf(id: unknown, list: List): number | undefined {
    if (typeof id !== 'string') {
      list.invalid += 1
      return undefined
    }
    list.entries += 1
    // Usually the entries are in the order of the batch.
    const until = Math.min(list.next + lookAhead, payloadIds.length)
    for (let index = list.next; index < until; index += 1)
      if (payloadIds[index] === id) {
        list.next = index + 1
        return index
      }
    indexes ??= new Map(payloadIds.map((own, index) => [own.toLowerCase(), index]))
    const index = indexes.get(id.toLowerCase())
    if (index === undefined) list.foreign += 1
    else list.next = index + 1
    return index
  }

  function failed(sent: SentRecord | null): void {
    const index = indexOf(sent?.payloadId, failedList)
    if (index === undefined || sent === null) return
    const before = records.get(index)
    if (before !== undefined) {
      failedList.repeated += 1
      textChars -= charsOf(before)
    }
    const record = {
      payloadId: payloadIds[index] ?? '',
      errorType: excerpt(sent.errorType, 64) || 'Unknown',
      errorMessage: excerpt(sent.errorMessage, messageCharsMax),
      validationErrorDetails: sent.details,
    }
    if (textChars + charsOf(record) > textCharsMax) {
      recordsCut += 1
      Object.assign(record, { errorMessage: '', validationErrorDetails: [] })
    }
    textChars += charsOf(record)
    records.set(index, record)
  }

  function outcome({ status, requestId, cut }: AnswerEnd): Outcome {
    const deviations: string[] = []
    if (status !== 200) deviations.push(`the status is ${status}, expected 200`)
    if (responseCode !== undefined && responseCode !== 200)
      deviations.push(`responseCode is ${shown(responseCode)}, but the status is ${status}`)
    const accepted = payloadIds.filter((_, index) => acceptedBits[index] === 1)
    reportLists(deviations)
    if (cut === null) reportWhole(deviations)
    else deviations.push(cutTexts[cut])
    const all = cut === null && records.size === 0 && accepted.length === payloadIds.length
    return {
      kind: 'answered',
      requestId,
      accepted: all ? 'all' : accepted,
      failed: [...records.values()],
      complete: cut === null,
      tooLarge: cut === 'too large',
      deviations,
    }
  }

  function reportLists(deviations: string[]): void {
    const report = (what: string, count: number) => {
      if (count > 0) deviations.push(`${what}: ${count}`)
    }
    report('entries of "accepted" that are not strings', acceptedList.invalid)
    report('entries of "failed" without a payloadId', failedList.invalid)
    const both = [...records.keys()].filter((index) => acceptedBits[index] === 1).length
    report('payloads in both lists', both)
    report('payloadIds that are not in this batch', acceptedList.foreign + failedList.foreign)
    report('entries that name a payload again', acceptedList.repeated + failedList.repeated)
    report('failed payloads whose message and details were too long together', recordsCut)
  }

  /** What only the end of the answer shows. */
  function reportWhole(deviations: string[]): void {
    if (!acceptedList.isList) deviations.push('"accepted" is not a list')
    if (!failedList.isList) deviations.push('"failed" is not a list')
    const counts = {
      total: payloadIds.length,
      accepted: acceptedList.entries,
      failed: failedList.entries,
    }
    if (summary === null) deviations.push('"summary" is missing')
    else
      for (const name of ['total', 'accepted', 'failed'] as const)
        if (summary[name] !== counts[name])
          deviations.push(`summary.${name} is ${shown(summary[name])}, but the lists contain ${counts[name]}`)
    let missing = 0
    for (const [index, bit] of acceptedBits.entries()) if (bit !== 1 && !records.has(index)) missing += 1
    if (missing > 0) deviations.push(`payloads in neither list: ${missing}`)
  }
}

type List = {
  isList: boolean
  entries: number
  invalid: number
  foreign: number
  repeated: number
  /** Where in the batch the next entry probably is. */
  next: number
}

function newList(isList = false): List {
  return { isList, entries: 0, invalid: 0, foreign: 0, repeated: 0, next: 0 }
}

function charsOf({ errorMessage, validationErrorDetails }: FailureRecord): number {
  let chars = errorMessage.length
  for (const { field, message } of validationErrorDetails) chars += field.length + message.length + 20
  return chars
}
