// answer-reader.ts: turns any HTTP answer into an Outcome. It never throws.
//
// The status decides first: the specification shows a body only for 200; any other body is information for a
// person. In a 200 the lists are believed, and whatever contradicts them is listed as a deviation. Foreign
// text is cut to a bounded length and its control characters are removed before it is used.

import type { EpochMs } from '../../../std/clock.ts'
import type { PayloadId } from '../../../domain/ids.ts'
import type { FailureRecord, Outcome } from '../../../domain/outcome.ts'
import type { BatchOperation } from '../../../spool/spool.ts'

export type Answer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The body as far as it was read; `cut` says why it is incomplete. */
  body: Buffer
  cut: 'truncated' | 'too large' | null
}

type FieldDetail = { field: string; message: string }

const retryAfterMaxMs = 600_000
const messageCharsMax = 300
const detailsMax = 50

export function readAnswer(
  answer: Answer,
  payloadIds: readonly PayloadId[],
  now: EpochMs,
  operation: BatchOperation = 'batch',
): Outcome {
  const { status } = answer
  if (status === 200 || status === 202)
    return operation === 'single' ? readAcknowledgement(answer) : readSuccess(answer, payloadIds)
  const { message, details, requestId } = readRefusal(answer)
  if (status === 400 || status === 413) return { kind: 'refused', status, requestId, message, details }
  if (status === 401 || status === 403) return { kind: 'unauthorized', status, requestId, message }
  if (status === 409) return { kind: 'repeated', requestId, message }
  if (status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599)) {
    const retryAfterMs = retryAfterOf(answer, now)
    return { kind: 'unavailable', status, requestId, message, retryAfterMs }
  }
  return { kind: 'unexpected', status, requestId, message }
}

/**
 * The single operation acknowledges with 202 and a requestId (ingestion-api.md 2.9, 4.1). Without a body the
 * status counts; an HTML page or half an answer may come from another server, and the payload is sent again.
 */
function readAcknowledgement(answer: Answer): Outcome {
  const { status, body, cut } = answer
  const parsed = asRecord(parse(answer))
  const requestId = requestIdOf(answer, parsed)
  const readable = parsed !== null || (cut === null && body.length === 0)
  if (status === 202 && readable) return { kind: 'accepted_single', requestId }
  const message = `expected 202 and a requestId, found ${status}: ${excerptOf(answer)}`
  return { kind: 'unreadable', status, requestId, message }
}

function readSuccess(answer: Answer, payloadIds: readonly PayloadId[]): Outcome {
  const parsed = asRecord(parse(answer))
  const requestId = requestIdOf(answer, parsed)
  const unreadable = (message: string): Outcome => ({
    kind: 'unreadable',
    status: answer.status,
    requestId,
    message,
  })
  if (answer.cut === 'truncated') return unreadable('the answer is truncated')
  if (answer.cut === 'too large') return unreadable('the answer is larger than delivery.max_response_bytes')
  if (parsed === null) return unreadable(`the answer is not a JSON object: ${excerptOf(answer)}`)
  const { accepted, failed } = parsed
  if (!Array.isArray(accepted) && !Array.isArray(failed))
    return unreadable(`the answer has neither "accepted" nor "failed": ${excerptOf(answer)}`)
  return readBreakdown({ status: answer.status, requestId, parsed }, payloadIds)
}

type Breakdown = { status: number; requestId: string | null; parsed: Record<string, unknown> }

function readBreakdown({ status, requestId, parsed }: Breakdown, payloadIds: readonly PayloadId[]): Outcome {
  const deviations: string[] = []
  if (status !== 200) deviations.push(`the status is ${status}, expected 200`)
  if (parsed['responseCode'] !== undefined && parsed['responseCode'] !== 200)
    deviations.push(`responseCode is ${shown(parsed['responseCode'])}, but the status is ${status}`)
  const accepted = readAccepted(parsed['accepted'], deviations)
  const failed = readFailed(parsed['failed'], deviations)
  checkSummary(
    parsed['summary'],
    { total: payloadIds.length, accepted: accepted.length, failed: failed.length },
    deviations,
  )

  if (failed.length === 0 && sameInOrder(accepted, payloadIds))
    return { kind: 'answered', requestId, accepted: 'all', failed, deviations }
  checkIds(accepted, failed, payloadIds, deviations)
  return { kind: 'answered', requestId, accepted, failed, deviations }
}

function sameInOrder(accepted: readonly string[], payloadIds: readonly string[]): boolean {
  if (accepted.length !== payloadIds.length) return false
  for (let i = 0; i < accepted.length; i += 1) if (accepted[i] !== payloadIds[i]) return false
  return true
}

function readAccepted(list: unknown, deviations: string[]): string[] {
  if (!Array.isArray(list)) {
    deviations.push('"accepted" is not a list')
    return []
  }
  const ids: string[] = []
  for (const id of list) if (typeof id === 'string') ids.push(id)
  if (ids.length < list.length)
    deviations.push(`entries of "accepted" that are not strings: ${list.length - ids.length}`)
  return ids
}

function readFailed(list: unknown, deviations: string[]): FailureRecord[] {
  if (!Array.isArray(list)) {
    deviations.push('"failed" is not a list')
    return []
  }
  const records: FailureRecord[] = []
  for (const entry of list) {
    const fields = asRecord(entry)
    const payloadId = fields?.['payloadId']
    if (fields === null || typeof payloadId !== 'string') continue
    records.push({
      payloadId,
      errorType: excerpt(fields['errorType'], 64) || 'Unknown',
      errorMessage: excerpt(fields['errorMessage'], messageCharsMax),
      validationErrorDetails: readDetails(fields['validationErrorDetails']),
    })
  }
  if (records.length < list.length)
    deviations.push(`entries of "failed" without a payloadId: ${list.length - records.length}`)
  return records
}

function readDetails(list: unknown): FieldDetail[] {
  if (!Array.isArray(list)) return []
  return list.slice(0, detailsMax).map((entry) => {
    const fields = asRecord(entry)
    return { field: excerpt(fields?.['field'], 120), message: excerpt(fields?.['message'], messageCharsMax) }
  })
}

function checkSummary(summary: unknown, counts: Record<string, number>, deviations: string[]): void {
  const fields = asRecord(summary)
  if (fields === null) {
    deviations.push('"summary" is missing')
    return
  }
  for (const [name, count] of Object.entries(counts)) {
    if (fields[name] === count) continue
    deviations.push(`summary.${name} is ${shown(fields[name])}, but the lists contain ${count}`)
  }
}

function checkIds(
  accepted: readonly string[],
  failed: readonly FailureRecord[],
  payloadIds: readonly string[],
  deviations: string[],
): void {
  const ours = new Set<string>(payloadIds)
  const acceptedIds = new Set(accepted.map((id) => id.toLowerCase()))
  const failedIds = new Set(failed.map(({ payloadId }) => payloadId.toLowerCase()))
  let both = 0
  let foreign = 0
  for (const id of failedIds) if (acceptedIds.has(id)) both += 1
  for (const id of new Set([...acceptedIds, ...failedIds])) if (!ours.has(id)) foreign += 1
  const missing = payloadIds.filter((id) => !acceptedIds.has(id) && !failedIds.has(id)).length
  if (both > 0) deviations.push(`payloads in both lists: ${both}`)
  if (foreign > 0) deviations.push(`payloadIds that are not in this batch: ${foreign}`)
  if (missing > 0) deviations.push(`payloads in neither list: ${missing}`)
}

function readRefusal(answer: Answer): { message: string; details: FieldDetail[]; requestId: string | null } {
  const parsed = asRecord(parse(answer))
  const requestId = requestIdOf(answer, parsed)
  const text = ['message', 'Message', 'errorMessage', 'error', 'title', 'detail']
    .map((name) => parsed?.[name])
    .find((value) => typeof value === 'string' && value !== '')
  const details = readDetails(parsed?.['validationErrorDetails'])
  const fields = details.map(({ field, message }) => `${field}: ${message}`).slice(0, 5)
  const message = [typeof text === 'string' ? excerpt(text, messageCharsMax) : excerptOf(answer), ...fields]
  return { message: message.filter((part) => part !== '').join('; '), details, requestId }
}

function parse({ body, headers, cut }: Answer): unknown {
  if (cut !== null || body.length === 0 || isEncoded(headers)) return undefined
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    // An excerpt of the text helps more than the message of the parser, which only gives a position.
    return undefined
  }
}

function isEncoded(headers: Answer['headers']): boolean {
  const encoding = one(headers['content-encoding'])
  return encoding !== undefined && encoding !== '' && encoding.toLowerCase() !== 'identity'
}

function requestIdOf({ headers }: Answer, parsed: Record<string, unknown> | null): string | null {
  const found =
    parsed?.['requestId'] ??
    parsed?.['RequestId'] ??
    one(headers['x-amzn-requestid']) ??
    one(headers['x-request-id'])
  const text = typeof found === 'number' ? String(found) : excerpt(found, 128)
  return text === '' ? null : text
}

/** Seconds, or a date; a date counts from the Date of the answer, since our clock may be wrong. */
function retryAfterOf({ headers }: Answer, now: EpochMs): number | null {
  const text = one(headers['retry-after'])?.trim()
  if (text === undefined || text === '') return null
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1000, retryAfterMaxMs)
  // All three forms of a date begin with the day of the week (RFC 9110, 5.6.7); Date.parse() accepts more.
  const until = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(until)) return null
  const answeredAt = Date.parse(one(headers['date']) ?? '')
  const waitMs = until - (Number.isNaN(answeredAt) ? now : answeredAt)
  return Math.min(Math.max(waitMs, 0), retryAfterMaxMs)
}

function excerptOf({ body, headers, cut }: Answer): string {
  if (isEncoded(headers))
    return `(a body encoded as ${excerpt(one(headers['content-encoding']), 40)}, not asked for)`
  if (body.length === 0) return cut === null ? '(an empty body)' : `(a body that was ${cut})`
  // Quoted, because it is foreign text in our sentence.
  return JSON.stringify(excerpt(body.toString('utf8', 0, 4 * messageCharsMax), 160))
}

function excerpt(value: unknown, charsMax: number): string {
  if (typeof value !== 'string') return ''
  // Control characters could forge lines in a log or move a terminal's cursor.
  const clean = value
    .slice(0, 2 * charsMax)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  return clean.length > charsMax ? `${clean.slice(0, charsMax - 1)}…` : clean
}

/** Names only the type of a list or object: JSON.stringify throws on deep nesting. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return JSON.stringify(excerpt(value, 40))
  return typeof value === 'object' && value !== null ? 'an object' : JSON.stringify(value)
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

function asRecord(value: unknown): Record<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return value as Record<string, unknown>
}
