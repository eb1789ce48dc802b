// answer-reader.ts: the entry file of what turns any HTTP answer into an Outcome. It never throws, and its
// memory is bounded, whatever comes and however long it is.
//
// The status decides first: the specification shows a body only for 200; any other body is information for a
// person, of which the start is kept. In a 200 the lists are believed, and whatever contradicts them is
// listed as a deviation. Foreign text is cut to a bounded length and its control characters are removed
// before it is used (answer-text).
//
//   up to 256 KiB           kept. If it is the usual answer, 20 KiB for 500 payloads, its list is compared
//                           with the body that was sent (usual-answer); else it is parsed by JSON.parse()
//   longer                  read as it arrives (json-scanner, breakdown-scanner); nothing of it is kept but
//                           what it says about the payloads of the batch (breakdown)
//   `responseBytesMax`      reading stops. What was read counts
//
// An answer that ends early, or at the limit, is incomplete: if it named a payload of the batch, the outcome
// is `answered` with `complete: false`; else it is unreadable.

import type { EpochMs } from '../../../std/clock.ts'
import type { PayloadId } from '../../../domain/ids.ts'
import type { Outcome } from '../../../domain/outcome.ts'
import type { BatchOperation } from '../../../spool/spool.ts'
import {
  asRecord,
  encodingOf,
  excerpt,
  messageCharsMax,
  readDetails,
  requestIdOf,
  retryAfterOf,
} from './answer-text.ts'
import type { AnswerHeaders, FieldDetail } from './answer-text.ts'
import { createBreakdown, cutTexts } from './breakdown.ts'
import type { Breakdown, Summary } from './breakdown.ts'
import { createBreakdownScanner } from './breakdown-scanner.ts'
import type { BreakdownScanner } from './breakdown-scanner.ts'
import { membersAroundList } from './usual-answer.ts'
import type { IdsInBody } from './usual-answer.ts'

export type AnswerReader = {
  /** False: the rest of the body is of no use. */
  push(part: Buffer): boolean
  /** `whole`: the body ended as HTTP says it should. `now`: our wall clock. */
  end(whole: boolean, now: EpochMs): Outcome
}

type AnswerHead = { status: number; headers: AnswerHeaders }

type Question = {
  operation: BatchOperation
  payloadIds: () => readonly PayloadId[]
  /** With it the usual answer is read without `payloadIds`. */
  idsInBody?: IdsInBody
  responseBytesMax: number
  /** Longer answers are read as they arrive. */
  wholeBytesMax?: number
}

/** The body as far as it was kept; `cut` says why that is not all. */
type Body = { bytes: Buffer; cut: 'ended early' | 'too large' | null }

/** JSON.parse() makes at most about 30 bytes of each byte; the thread has 48 MiB. */
const defaultWholeBytesMax = 256 * 1024

export function createAnswerReader(head: AnswerHead, question: Question): AnswerReader {
  const { status, headers } = head
  const { operation, responseBytesMax, wholeBytesMax = defaultWholeBytesMax } = question
  const isSuccess = status === 200 || status === 202
  const mayBeScanned = isSuccess && operation === 'batch' && encodingOf(headers) === null
  const kept: Buffer[] = []
  let keptBytes = 0
  let keeping = true
  let bytes = 0
  let scanned: { breakdown: Breakdown; scanner: BreakdownScanner; valid: boolean } | null = null

  return { push, end }

  function push(part: Buffer): boolean {
    bytes += part.length
    if (bytes > responseBytesMax) {
      const rest = part.subarray(0, part.length - (bytes - responseBytesMax))
      if (rest.length > 0) take(rest)
      return false
    }
    return take(part)
  }

  function take(part: Buffer): boolean {
    if (scanned !== null) return scan(part)
    if (keeping && keptBytes + part.length <= wholeBytesMax) {
      kept.push(part)
      keptBytes += part.length
      return true
    }
    keeping = false
    if (mayBeScanned) return startScan() && scan(part)
    // The start is enough for a person; the rest is only read, so that the connection can be used again.
    return true
  }

  function startScan(): boolean {
    const breakdown = createBreakdown(question.payloadIds())
    scanned = { breakdown, scanner: createBreakdownScanner(breakdown), valid: true }
    return kept.every(scan)
  }

  function scan(part: Buffer): boolean {
    if (scanned === null || !scanned.valid) return false
    scanned.valid = scanned.scanner.push(part)
    return scanned.valid
  }

  function end(whole: boolean, now: EpochMs): Outcome {
    const tooLarge = bytes > responseBytesMax
    const ended = whole && !tooLarge && (scanned !== null || bytes === keptBytes)
    const cut = ended ? null : tooLarge || whole ? 'too large' : 'ended early'
    const body: Body = { bytes: kept.length === 1 && kept[0] ? kept[0] : Buffer.concat(kept), cut }
    if (!isSuccess) return readRefused(head, body, now)
    const usual = readUsual(body)
    if (usual !== null) return usual
    const value = scanned === null ? parse(head, body) : undefined
    const parsed = asRecord(value)
    if (operation === 'single') return readAcknowledgement(head, body, parsed)
    if (parsed !== null) return readWhole(head, body, parsed, question.payloadIds())
    if (scanned === null && value === undefined && mayBeScanned && keptBytes > 0) startScan()
    return readScanned(body)
  }

  /** Null where it is another answer. */
  function readUsual({ bytes, cut }: Body): Outcome | null {
    const { idsInBody } = question
    if (idsInBody === undefined || !mayBeScanned || scanned !== null || cut !== null) return null
    const members = membersAroundList(bytes, idsInBody)
    if (members === null || !tellsAllAccepted(status, members, idsInBody.starts.length)) return null
    return allAccepted(requestIdOf(headers, members['requestId'] ?? members['RequestId']))
  }

  /** Of an answer that is long or not whole. */
  function readScanned(body: Body): Outcome {
    const requestId = requestIdOf(headers, scanned?.scanner.requestId())
    if (scanned === null || !scanned.valid) return unreadable(head, body, requestId)
    const { breakdown, scanner } = scanned
    const cut = body.cut ?? (scanner.ended() ? null : 'ended early')
    if (cut === null && !breakdown.found()) return withoutLists(head, body, requestId)
    if (cut !== null && !breakdown.named()) return unreadable(head, { ...body, cut }, requestId)
    return breakdown.outcome({ status, requestId, cut })
  }
}

function unreadable({ status, headers }: AnswerHead, body: Body, requestId: string | null): Outcome {
  const message =
    body.cut === null ? `the answer is not a JSON object: ${excerptOf(headers, body)}` : cutTexts[body.cut]
  return { kind: 'unreadable', status, requestId, message }
}

function withoutLists({ status, headers }: AnswerHead, body: Body, requestId: string | null): Outcome {
  const message = `the answer has neither "accepted" nor "failed": ${excerptOf(headers, body)}`
  return { kind: 'unreadable', status, requestId, message }
}

function readRefused(head: AnswerHead, body: Body, now: EpochMs): Outcome {
  const { status, headers } = head
  const { message, details, requestId } = readRefusal(head, body)
  if (status === 400 || status === 413) return { kind: 'refused', status, requestId, message, details }
  // An API Gateway of AWS answers so where there is no such path; or the header with the signature is lost.
  if (status === 403 && /^missing authentication token$/i.test(message))
    return {
      kind: 'unexpected',
      status,
      requestId,
      message: `no such path, or no signature came: ${message}`,
    }
  if (status === 401 || status === 403) return { kind: 'unauthorized', status, requestId, message }
  if (status === 409) return { kind: 'repeated', requestId, message }
  if (status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599)) {
    const retryAfterMs = retryAfterOf(headers, now)
    return { kind: 'unavailable', status, requestId, message, retryAfterMs }
  }
  return { kind: 'unexpected', status, requestId, message }
}

/**
 * The single operation acknowledges with 202 and a requestId (ingestion-api.md 2.9, 4.1). Without a body the
 * status counts; an HTML page or half an answer may come from another server, and the payload is sent again.
 */
function readAcknowledgement(
  { status, headers }: AnswerHead,
  body: Body,
  parsed: Record<string, unknown> | null,
): Outcome {
  const requestId = requestIdOf(headers, parsed?.['requestId'] ?? parsed?.['RequestId'])
  const readable = parsed !== null || (body.cut === null && body.bytes.length === 0)
  if (status === 202 && readable) return { kind: 'accepted_single', requestId }
  const message = `expected 202 and a requestId, found ${status}: ${excerptOf(headers, body)}`
  return { kind: 'unreadable', status, requestId, message }
}

function readWhole(
  { status, headers }: AnswerHead,
  body: Body,
  parsed: Record<string, unknown>,
  payloadIds: readonly PayloadId[],
): Outcome {
  const requestId = requestIdOf(headers, parsed['requestId'] ?? parsed['RequestId'])
  const { accepted, failed, responseCode } = parsed
  if (!Array.isArray(accepted) && !Array.isArray(failed))
    return withoutLists({ status, headers }, body, requestId)
  const summary = summaryOf(parsed['summary'])
  const isUsual = tellsAllAccepted(status, parsed, payloadIds.length) && isSameList(accepted, payloadIds)
  if (isUsual) return allAccepted(requestId)
  const breakdown = createBreakdown(payloadIds)
  breakdown.responseCode(responseCode)
  breakdown.summary(summary)
  breakdown.beginAccepted(Array.isArray(accepted))
  if (Array.isArray(accepted)) for (const entry of accepted) breakdown.accepted(entry)
  breakdown.beginFailed(Array.isArray(failed))
  if (Array.isArray(failed)) for (const entry of failed) breakdown.failed(recordOf(entry))
  const outcome = breakdown.outcome({ status, requestId, cut: null })
  const serviceMessage = breakdown.named() ? '' : excerpt(parsed['message'], messageCharsMax)
  return outcome.kind === 'answered' && serviceMessage !== '' ? { ...outcome, serviceMessage } : outcome
}

function allAccepted(requestId: string | null): Outcome {
  return {
    kind: 'answered',
    requestId,
    accepted: 'all',
    failed: [],
    complete: true,
    tooLarge: false,
    deviations: [],
  }
}

/** By everything but the list of the accepted ones. */
function tellsAllAccepted(
  status: number,
  { failed, responseCode, ...members }: Record<string, unknown>,
  payloads: number,
): boolean {
  if (status !== 200 || (responseCode !== undefined && responseCode !== 200)) return false
  if (!Array.isArray(failed) || failed.length > 0) return false
  const summary = summaryOf(members['summary'])
  return summary?.total === payloads && summary.accepted === payloads && summary.failed === 0
}

/** In the order of the batch. */
function isSameList(accepted: unknown, payloadIds: readonly PayloadId[]): boolean {
  if (!Array.isArray(accepted) || accepted.length !== payloadIds.length) return false
  return payloadIds.every((id, index) => accepted[index] === id)
}

function summaryOf(value: unknown): Summary | null {
  const fields = asRecord(value)
  if (fields === null) return null
  return { total: fields['total'], accepted: fields['accepted'], failed: fields['failed'] }
}

function recordOf(entry: unknown) {
  const fields = asRecord(entry)
  if (fields === null) return null
  const { payloadId, errorType, errorMessage, validationErrorDetails } = fields
  return { payloadId, errorType, errorMessage, details: readDetails(validationErrorDetails) }
}

type Refusal = { message: string; details: FieldDetail[]; requestId: string | null }

function readRefusal(head: AnswerHead, body: Body): Refusal {
  const parsed = asRecord(parse(head, body))
  const requestId = requestIdOf(head.headers, parsed?.['requestId'] ?? parsed?.['RequestId'])
  const text = ['message', 'Message', 'errorMessage', 'error', 'title', 'detail']
    .map((name) => parsed?.[name])
    .find((value) => typeof value === 'string' && value !== '')
  const details = readDetails(parsed?.['validationErrorDetails'])
  const fields = details.map(({ field, message }) => `${field}: ${message}`).slice(0, 5)
  const said = typeof text === 'string' ? excerpt(text, messageCharsMax) : excerptOf(head.headers, body)
  return { message: [said, ...fields].filter((part) => part !== '').join('; '), details, requestId }
}

function parse({ headers }: AnswerHead, { bytes, cut }: Body): unknown {
  if (cut !== null || bytes.length === 0 || encodingOf(headers) !== null) return undefined
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    // An excerpt of the text helps more than the message of the parser, which only gives a position.
    return undefined
  }
}

function excerptOf(headers: AnswerHeaders, { bytes, cut }: Body): string {
  const encoding = encodingOf(headers)
  if (encoding !== null) return `(a body encoded as ${excerpt(encoding, 40)}, not asked for)`
  if (bytes.length === 0) return cut === null ? '(an empty body)' : `(a body that ${cutWords[cut]})`
  // Quoted, because it is foreign text in our sentence.
  return JSON.stringify(excerpt(bytes.toString('utf8', 0, 4 * messageCharsMax), 160))
}

const cutWords = { 'ended early': 'ended early', 'too large': 'was too large' } as const
