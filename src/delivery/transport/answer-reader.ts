// answer-reader.ts: turns any HTTP answer into an Outcome. It never throws.
//
// The status decides first: the specification shows a body only for 200; any other body is information for a
// person. In a 200 the lists are believed, and whatever contradicts them is listed as a deviation. An answer
// that is not whole is unreadable, since what it lacks is unknown. Foreign text is cut to a bounded length,
// without control characters, before it is used.
//
// Bound: `answerBytesMax`. The answer for 500 payloads has about 20 KiB, or 1 MiB if all fail with details.

import type { EpochMs } from '../../std/clock.ts'
import type { PayloadId } from '../../domain/ids.ts'
import type { FailureRecord, Outcome } from '../../domain/outcome.ts'
import type { BatchOperation } from '../../spool/spool.ts'

export type AnswerHead = { status: number; headers: Record<string, string | string[] | undefined> }

/** The body; `cut`: why that is not all of it. */
export type AnswerBody = { bytes: Buffer; cut: 'ended early' | 'too large' | null }

type Question = { operation: BatchOperation; payloadIds: () => readonly PayloadId[]; now: EpochMs }

/** Nothing is read beyond it. */
export const answerBytesMax = 8 * 1024 ** 2

const messageCharsMax = 300
const detailsMax = 50
/** More is no wait that a person would believe. */
const retryAfterMaxMs = 3650 * 86_400_000

/** `now`: our wall clock. */
export function readAnswer(head: AnswerHead, body: AnswerBody, question: Question): Outcome {
  const parsed = parse(head, body)
  if (head.status !== 200 && head.status !== 202) return readRefusal(head, body, parsed, question.now)
  if (question.operation === 'single') return readAcknowledgement(head, body, parsed)
  if (parsed !== null) return readBreakdown(head, body, parsed, question.payloadIds())
  return unreadable(head, body, null, `the answer is not a JSON object: ${excerptOf(head, body)}`)
}

function unreadable(head: AnswerHead, { cut }: AnswerBody, parsed: Fields | null, message: string): Outcome {
  const why = { 'ended early': 'the answer is truncated', 'too large': 'the answer has more than 8 MiB' }
  return {
    kind: 'unreadable',
    status: head.status,
    requestId: requestIdOf(head, parsed),
    message: cut === null ? message : why[cut],
    ...(cut === 'too large' && { tooLarge: true as const }),
  }
}

function readRefusal(head: AnswerHead, body: AnswerBody, parsed: Fields | null, now: EpochMs): Outcome {
  const { status } = head
  const requestId = requestIdOf(head, parsed)
  const details = readDetails(parsed?.['validationErrorDetails'])
  const text = ['message', 'Message', 'errorMessage', 'error', 'title', 'detail']
    .map((name) => parsed?.[name])
    .find((value) => typeof value === 'string' && value !== '')
  const said = text === undefined ? excerptOf(head, body) : excerpt(text, messageCharsMax)
  const fields = details.map(({ field, message }) => `${field}: ${message}`).slice(0, 5)
  const message = [said, ...fields].filter((part) => part !== '').join('; ')
  if (status === 400 || status === 413) return { kind: 'refused', status, requestId, message, details }
  // An API Gateway of AWS answers so where there is no such path; or the header with the signature is lost.
  if (status === 403 && /^missing authentication token$/i.test(message)) {
    const words = `no such path, or no signature came: ${message}`
    return { kind: 'unexpected', status, requestId, message: words }
  }
  if (status === 401 || status === 403) return { kind: 'unauthorized', status, requestId, message }
  if (status === 409) return { kind: 'repeated', requestId, message }
  if (status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599))
    return { kind: 'unavailable', status, requestId, message, retryAfterMs: retryAfterOf(head, now) }
  return { kind: 'unexpected', status, requestId, message }
}

/**
 * The single operation acknowledges with 202 and a requestId (ingestion-api.md 2.9, 4.1). Without a body the
 * status counts; an HTML page or half an answer may come from another server, and the payload is sent again.
 */
function readAcknowledgement(head: AnswerHead, body: AnswerBody, parsed: Fields | null): Outcome {
  const readable = parsed !== null || (body.cut === null && body.bytes.length === 0)
  if (head.status === 202 && readable)
    return { kind: 'accepted_single', requestId: requestIdOf(head, parsed) }
  const message = `expected 202 and a requestId, found ${head.status}: ${excerptOf(head, body)}`
  return unreadable(head, body, parsed, message)
}

function readBreakdown(
  head: AnswerHead,
  body: AnswerBody,
  parsed: Fields,
  payloadIds: readonly PayloadId[],
): Outcome {
  const { accepted, failed, responseCode } = parsed
  if (!Array.isArray(accepted) && !Array.isArray(failed))
    return unreadable(
      head,
      body,
      parsed,
      `the answer has neither "accepted" nor "failed": ${excerptOf(head, body)}`,
    )
  const requestId = requestIdOf(head, parsed)
  const deviations: string[] = []
  if (head.status !== 200) deviations.push(`the status is ${head.status}, expected 200`)
  if (responseCode !== undefined && responseCode !== 200)
    deviations.push(`responseCode is ${shown(responseCode)}, but the status is ${head.status}`)
  const all: Outcome = { kind: 'answered', requestId, accepted: 'all', failed: [], deviations }
  // The usual answer names all in the order of the batch.
  const summary = asFields(parsed['summary'])
  const counts = [payloadIds.length, payloadIds.length, 0]
  const isInOrder = Array.isArray(accepted) && payloadIds.every((id, index) => accepted[index] === id)
  if (isInOrder && summaryProblems(summary, counts).length === 0)
    if (accepted.length === payloadIds.length && Array.isArray(failed) && failed.length === 0) return all
  const lists = readLists(accepted, failed, payloadIds)
  deviations.push(...lists.deviations, ...summaryProblems(summary, lists.counts))
  const missing = payloadIds.filter((id) => !lists.accepted.has(id) && !lists.failed.has(id)).length
  if (missing > 0) deviations.push(`payloads in neither list: ${missing}`)
  if (lists.failed.size === 0 && missing === 0) return all
  const serviceMessage = missing === payloadIds.length ? excerpt(parsed['message'], messageCharsMax) : ''
  return {
    ...all,
    accepted: payloadIds.filter((id) => lists.accepted.has(id)),
    failed: [...lists.failed.values()],
    ...(serviceMessage !== '' && { serviceMessage }),
  }
}

/** What the lists say of the payloads of the batch. Entries of others, and second ones, are counted only. */
function readLists(accepted: unknown, failed: unknown, payloadIds: readonly PayloadId[]) {
  const own = new Map(payloadIds.map((id) => [id.toLowerCase(), id]))
  const found = { accepted: new Set<PayloadId>(), failed: new Map<PayloadId, FailureRecord>() }
  const invalid = { accepted: 0, failed: 0 }
  let [foreign, repeated] = [0, 0]
  const known = (list: keyof typeof found, payloadId: unknown): PayloadId | undefined => {
    if (typeof payloadId !== 'string') invalid[list] += 1
    const id = typeof payloadId === 'string' ? own.get(payloadId.toLowerCase()) : undefined
    if (typeof payloadId === 'string' && id === undefined) foreign += 1
    if (id !== undefined && found[list].has(id)) repeated += 1
    return id
  }
  for (const entry of listOf(accepted)) {
    const id = known('accepted', entry)
    if (id !== undefined) found.accepted.add(id)
  }
  for (const entry of listOf(failed)) {
    const fields = asFields(entry)
    const id = known('failed', fields?.['payloadId'])
    if (id !== undefined && fields !== null) found.failed.set(id, readFailure(id, fields))
  }
  const both = [...found.failed.keys()].filter((id) => found.accepted.has(id)).length
  const problems: [what: string, count: number][] = [
    ['entries of "accepted" that are not strings', invalid.accepted],
    ['entries of "failed" without a payloadId', invalid.failed],
    ['payloads in both lists', both],
    ['payloadIds that are not in this batch', foreign],
    ['entries that name a payload again', repeated],
  ]
  const deviations = problems.flatMap(([what, count]) => (count > 0 ? [`${what}: ${count}`] : []))
  if (!Array.isArray(accepted)) deviations.push('"accepted" is not a list')
  if (!Array.isArray(failed)) deviations.push('"failed" is not a list')
  const [inAccepted, inFailed] = [listOf(accepted).length, listOf(failed).length]
  const counts = [payloadIds.length, inAccepted - invalid.accepted, inFailed - invalid.failed]
  return { ...found, counts, deviations }
}

function readFailure(payloadId: PayloadId, fields: Fields): FailureRecord {
  return {
    payloadId,
    errorType: excerpt(fields['errorType'], 64) || 'Unknown',
    errorMessage: excerpt(fields['errorMessage'], messageCharsMax),
    validationErrorDetails: readDetails(fields['validationErrorDetails']),
  }
}

/** `counts`: total, accepted and failed as the lists have them. */
function summaryProblems(summary: Fields | null, counts: readonly number[]): string[] {
  if (summary === null) return ['"summary" is missing']
  return ['total', 'accepted', 'failed'].flatMap((name, index) =>
    summary[name] === counts[index]
      ? []
      : [`summary.${name} is ${shown(summary[name])}, but the lists contain ${counts[index]}`],
  )
}

type Fields = Record<string, unknown>

function parse(head: AnswerHead, { bytes, cut }: AnswerBody): Fields | null {
  if (cut !== null || bytes.length === 0 || encodingOf(head) !== null) return null
  try {
    return asFields(JSON.parse(bytes.toString('utf8')))
  } catch {
    // An excerpt of the text helps more than the message of the parser, which only gives a position.
    return null
  }
}

function asFields(value: unknown): Fields | null {
  return typeof value !== 'object' || value === null || Array.isArray(value) ? null : (value as Fields)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function readDetails(list: unknown): { field: string; message: string }[] {
  return listOf(list)
    .slice(0, detailsMax)
    .map((entry) => {
      const fields = asFields(entry)
      return {
        field: excerpt(fields?.['field'], 120),
        message: excerpt(fields?.['message'], messageCharsMax),
      }
    })
}

function excerptOf(head: AnswerHead, { bytes, cut }: AnswerBody): string {
  const encoding = encodingOf(head)
  if (encoding !== null) return `(a body encoded as ${excerpt(encoding, 40)}, not asked for)`
  if (bytes.length === 0) return cut === null ? '(an empty body)' : '(a body that ended early)'
  // Quoted, because it is foreign text in our sentence.
  return JSON.stringify(excerpt(bytes.toString('utf8', 0, 4 * messageCharsMax), 160))
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

function headerOf({ headers }: AnswerHead, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

function requestIdOf(head: AnswerHead, parsed: Fields | null): string | null {
  const found = parsed?.['requestId'] ?? parsed?.['RequestId']
  const id = found ?? headerOf(head, 'x-amzn-requestid') ?? headerOf(head, 'x-request-id')
  const text = typeof id === 'number' ? String(id) : excerpt(id, 128)
  return text === '' ? null : text
}

/** The encoding of the body, which was not asked for; null without one. */
function encodingOf(head: AnswerHead): string | null {
  const encoding = headerOf(head, 'content-encoding') ?? ''
  return encoding === '' || encoding.toLowerCase() === 'identity' ? null : encoding
}

/** Seconds, or a date; a date counts from the Date of the answer, since our clock may be wrong. */
function retryAfterOf(head: AnswerHead, now: EpochMs): number | null {
  const text = headerOf(head, 'retry-after')?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1000, retryAfterMaxMs)
  // All three forms of a date begin with the day of the week (RFC 9110, 5.6.7); Date.parse() accepts more.
  const until = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(until)) return null
  const answeredAt = Date.parse(headerOf(head, 'date') ?? '')
  const waitMs = until - (Number.isNaN(answeredAt) ? now : answeredAt)
  return Math.min(Math.max(waitMs, 0), retryAfterMaxMs)
}
