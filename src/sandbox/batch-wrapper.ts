// batch-wrapper.ts: reads the body as JSON and checks the wrapper fields of a batch (ingestion-api.md 2.6).

import { isUtf8 } from 'node:buffer'
import { quote } from '../std/quote.ts'
import { isJsonObject, type FieldProblem, type JsonObject } from './payload-check.ts'
import { isUuid } from './uuid.ts'

/** No payload nests this deep. JSON.stringify of a deeper value would need a very deep stack. */
const depthMax = 100
const problemsMax = 100

export type BodyReading =
  | { kind: 'object'; object: JsonObject }
  | { kind: 'unreadable'; reason: 'body_not_json' | 'body_not_object'; message: string }

export function readBody(body: Buffer): BodyReading {
  if (!isUtf8(body)) return unreadable('body_not_json', 'The body is not UTF-8.')
  if (tooDeep(body)) return unreadable('body_not_json', `The body is nested deeper than ${depthMax} levels.`)
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch (error) {
    return unreadable(
      'body_not_json',
      `The body is not JSON: ${quote(error instanceof Error ? error.message : String(error))}.`,
    )
  }
  if (isJsonObject(value)) return { kind: 'object', object: value }
  return unreadable('body_not_object', 'The body must be a JSON object.')
}

function unreadable(reason: 'body_not_json' | 'body_not_object', message: string): BodyReading {
  return { kind: 'unreadable', reason, message }
}

/** Skips strings in a loop of their own: twice as fast, because most bytes are in strings. */
function tooDeep(body: Buffer): boolean {
  const { length } = body
  let depth = 0
  for (let at = 0; at < length; at += 1) {
    const byte = body[at]
    if (byte === 0x22) {
      at += 1
      while (at < length && body[at] !== 0x22) at += body[at] === 0x5c ? 2 : 1
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1
      if (depth > depthMax) return true
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1
  }
  return false
}

export type WrapperReading =
  | { kind: 'batch'; batchId: string; payloads: readonly JsonObject[] }
  | { kind: 'problems'; problems: readonly FieldProblem[] }

export function readWrapper(body: JsonObject): WrapperReading {
  const problems: FieldProblem[] = []
  const add = (field: string, rule: string) => problems.push({ field, message: `${field} ${rule}` })

  const batchId = body['batchId']
  if (batchId === undefined) add('batchId', 'is required')
  else if (!isUuid(batchId)) add('batchId', 'must be a UUID')

  const timestamp = body['timestamp']
  if (
    timestamp !== undefined &&
    !(typeof timestamp === 'number' && Number.isFinite(timestamp) && timestamp >= 0)
  )
    add('timestamp', 'must be a number of epoch milliseconds')

  const entries: unknown = body['data']
  if (entries === undefined) add('data', 'is required')
  else if (!Array.isArray(entries)) add('data', 'must be an array')
  // A 200 is a breakdown by payload. Without payloads there is nothing to report.
  else if (entries.length === 0) add('data', 'must contain at least one payload')
  else {
    for (let index = 0; index < entries.length && problems.length < problemsMax; index += 1)
      if (!isJsonObject(entries[index])) add(`data[${index}]`, 'must be an object')
  }
  if (problems.length > 0) return { kind: 'problems', problems }
  return { kind: 'batch', batchId: String(batchId), payloads: entries as readonly JsonObject[] }
}
