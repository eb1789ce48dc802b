// ingestion-service.ts: the two operations (ingestion-api.md 4), from a complete request to an answer, in one
// turn of the event loop. So a batch is never half accepted.
//
//   signature 403 -> provider key 400 -> content type and encoding 400 -> gzip 400, 413 -> JSON 400
//   -> wrapper 400 -> size 413 -> repeat: the same breakdown -> payloads one by one -> file -> memory
//   -> answer

import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import type { EpochMs } from '../std/clock.ts'
import { codeOf, messageOf } from '../std/gateway-error.ts'
import { quote } from '../std/quote.ts'
import type { Account, Accounts } from './signature/accounts.ts'
import type { AcceptedFile } from './accepted-file.ts'
import { jsonAnswer, refusal, type Answer, type Refusal } from './http-server/answers.ts'
import type { Headers } from './signature/canonical-request.ts'
import type { FaultPlan } from './fault-plan.ts'
import type { IdTable } from './id-table.ts'
import type { Operation } from './fault-injection.ts'
import type { RepeatMode, SandboxListener } from './sandbox-options.ts'
import { createPayloadCheck, type JsonObject, type Requirement } from './payload-check.ts'
import type { Received } from './received-payloads.ts'
import type { Repeats } from './answered-batches.ts'
import { checkSignature, ingestionRules } from './signature/signature.ts'
import type { SandboxCounters } from './sandbox-stats.ts'
import {
  bent,
  breakdownOf,
  failureByRule,
  judge,
  validationMessage,
  type Breakdown,
} from './payload-verdicts.ts'
import { readBody, readWrapper } from './batch-wrapper.ts'

type Submission = {
  operation: Operation
  requestId: string
  method: string
  target: string
  headers: Headers
  body: Buffer
  plan: FaultPlan | null
}

type ServiceDeps = {
  now: () => EpochMs
  newId: () => string
  random: () => number
  accounts: Accounts
  counters: SandboxCounters
  seen: IdTable
  repeats: Repeats
  received: Received
  /** Null where no file is written. */
  file: () => AcceptedFile | null
  listener: SandboxListener
}

type ServiceOptions = {
  required: readonly Requirement[]
  payloadsMax: number
  /** Of a body, before and after its decompression. */
  bodyBytesMax: number
  missingProviderStatus: number
  clockToleranceMs: number
  repeat: RepeatMode
}

export type Service = { submit(submission: Submission): Answer }

/** The batch number of all single submissions in the table of ids; batches count from 1. */
const singleNumber = 0

export function createService(deps: ServiceDeps, options: ServiceOptions): Service {
  const { counters, seen, repeats, received, random, listener } = deps
  const { counts } = counters
  const check = createPayloadCheck(new Set(options.required))
  const rules = { ...ingestionRules, toleranceMs: options.clockToleranceMs }

  return { submit }

  function submit(submission: Submission): Answer {
    const { operation, requestId, headers, body, plan } = submission
    const bodyHash = hashOf(body)
    const now = deps.now() + (plan?.clock_offset ?? 0)
    const signature = checkSignature({ ...submission, bodyHash }, deps.accounts, rules, now)
    if (signature.kind === 'refused') {
      counters.refusedSignatures.add(signature.reason)
      return refusal(requestId, { status: 403, ...signature })
    }
    const wrongHeader =
      wrongProvider(headers, signature.account, options.missingProviderStatus) ?? wrongContent(headers)
    if (wrongHeader) return refuse(requestId, wrongHeader)
    const decoded = decode(headers, body, options.bodyBytesMax)
    if (decoded.kind === 'refused') return refuse(requestId, decoded)
    const content = decoded.bytes
    const reading = readBody(content)
    if (reading.kind === 'unreadable') return refuse(requestId, { status: 400, ...reading, details: [] })
    return operation === 'single'
      ? submitSingle(submission, reading.object)
      : submitBatch(submission, reading.object, content === body ? bodyHash : hashOf(content))
  }

  function refuse(requestId: string, why: Refusal): Answer {
    counters.refusedRequests.add(why.reason)
    return refusal(requestId, why)
  }

  function submitSingle(submission: Submission, payload: JsonObject): Answer {
    const { requestId, plan } = submission
    counts.singles += 1
    const problems = check(payload, false)
    const failure = problems.length === 0 && plan ? failureByRule(payload, plan, random) : null
    const details = failure?.validationErrorDetails ?? problems
    if (failure || problems.length > 0) {
      counts.payloadsFailed += 1
      const message = failure?.errorMessage ?? validationMessage(problems)
      return refuse(requestId, { status: 400, reason: 'payload_invalid', message, details })
    }
    take(submission, null, [payload], singleNumber)
    return jsonAnswer(202, JSON.stringify({ requestId }))
  }

  function submitBatch(submission: Submission, body: JsonObject, bodyHash: string): Answer {
    const { requestId, plan } = submission
    const wrapper = readWrapper(body)
    if (wrapper.kind === 'problems') {
      const { problems } = wrapper
      const message = validationMessage(problems)
      return refuse(requestId, { status: 400, reason: 'wrapper_invalid', message, details: problems })
    }
    const { batchId, payloads } = wrapper
    if (payloads.length > options.payloadsMax) {
      const message = `data holds ${payloads.length} payloads; a batch may hold ${options.payloadsMax}.`
      return refuse(requestId, { status: 413, reason: 'too_many_payloads', message })
    }
    const known = repeats.find(batchId)
    if (known) {
      counts.repeats += 1
      counts.repeatedPayloads += payloads.length
      if (known.bodyHash !== bodyHash) counts.repeatsWithOtherBytes += 1
      if (options.repeat === 'conflict') {
        const message = `The batchId ${batchId} was submitted before.`
        return refuse(requestId, { status: 409, reason: 'batch_repeated', message })
      }
      if (options.repeat === 'same') return batchAnswer(requestId, known.breakdown, plan)
    }

    const verdicts = judge(payloads, check, plan, random)
    const breakdown = JSON.stringify(breakdownOf(verdicts, payloads.length))
    take(submission, batchId, verdicts.accepted, repeats.numberOf(batchId))
    counts.batches += 1
    counts.payloadsFailed += verdicts.failed.length
    repeats.remember(batchId, { bodyHash, breakdown, payloads: payloads.length })
    return batchAnswer(requestId, breakdown, plan)
  }

  /** The file first: when it throws, nothing was accepted. */
  function take(
    { requestId, headers, body }: Submission,
    batchId: string | null,
    payloads: readonly JsonObject[],
    number: number,
  ): void {
    const receivedAt = deps.now()
    const provider = headers['x-provider-key']?.[0] ?? null
    const taken = payloads.map((payload) => ({ receivedAt, requestId, batchId, provider, payload }))
    if (taken.length > 0) deps.file()?.append(taken)
    const payloadIds: string[] = []
    for (const each of taken) {
      counts.payloadsAccepted += 1
      received.push(each, body.length / taken.length)
      const payloadId = each.payload['payloadId']
      // The payloadId is optional in a single submission.
      if (typeof payloadId !== 'string') continue
      payloadIds.push(payloadId)
      const before = seen.note(payloadId, number)
      if (before === null) continue
      if (before !== number) counts.duplicatesAcrossBatches += 1
      else if (number === singleNumber) counts.duplicatesAcrossSingles += 1
      else counts.duplicatesUnderOneBatch += 1
    }
    listener.onAccepted?.(batchId, payloadIds)
  }

  function batchAnswer(requestId: string, breakdown: string, plan: FaultPlan | null): Answer {
    const written = plan
      ? JSON.stringify(bent(JSON.parse(breakdown) as Breakdown, plan, deps.newId, random))
      : breakdown
    const head = JSON.stringify({ requestId, responseCode: plan?.answer.response_code ?? 200 })
    return jsonAnswer(200, `${head.slice(0, -1)},${written.slice(1)}`)
  }
}

const encodings = new Set(['identity', 'gzip'])

type Decoded = { kind: 'whole'; bytes: Buffer } | ({ kind: 'refused' } & Refusal)

/** The signature covers the bytes as they were sent; everything else is about the decompressed body. */
function decode(headers: Headers, body: Buffer, bytesMax: number): Decoded {
  if (headers['content-encoding']?.[0]?.trim().toLowerCase() !== 'gzip') return { kind: 'whole', bytes: body }
  try {
    return { kind: 'whole', bytes: gunzipSync(body, { maxOutputLength: bytesMax }) }
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') {
      const message = `The decompressed body is larger than ${bytesMax} bytes.`
      return { kind: 'refused', status: 413, reason: 'body_too_large', message }
    }
    const message = `The body is not gzip: ${quote(messageOf(error), 100)}.`
    return { kind: 'refused', status: 400, reason: 'content_encoding', message, details: [] }
  }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function wrongProvider(headers: Headers, account: Account, status: number): Refusal | null {
  if (!account.aggregator) return null
  const key = headers['x-provider-key']?.[0]?.trim() ?? ''
  if (key === '')
    return {
      status,
      reason: 'provider_missing',
      message: 'An aggregator must name the provider in X-Provider-Key.',
    }
  if (account.providers === null || account.providers.has(key)) return null
  return {
    status,
    reason: 'provider_unknown',
    message: `The provider ${quote(key, 60)} is not one of this account.`,
  }
}

function wrongContent(headers: Headers): Refusal | null {
  const refused = (message: string): Refusal => ({
    status: 400,
    reason: 'content_type',
    message,
    details: [],
  })
  const type = headers['content-type']?.[0] ?? ''
  if (!/^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(type.trim()))
    return refused(`Content-Type must be application/json, found ${quote(type, 60)}.`)
  const encoding = headers['content-encoding']?.[0]?.trim().toLowerCase() ?? 'identity'
  return encodings.has(encoding)
    ? null
    : refused(`Content-Encoding ${quote(encoding, 40)} is not understood.`)
}
