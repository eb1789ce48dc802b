// service.ts: the Telemetry Ingestion Service of the simulated world, one for each provider, on bare connections.
// It remembers every batch that it saw, and answers as the world tells it to (service-faults.ts).
//
// It judges what it receives: the same batchId has the same bytes, a batch is within its limits, the headers are there.
// What became of each submission is in its journal, for the oracle.

import { createHash } from 'node:crypto'
import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import type { Network, WorldEnd } from '../machine/network.ts'
import type { Fault } from './service-faults.ts'

export type Payload = {
  payloadId: string
  signalTimestamp: number
  deviceIdentifier?: { id: string }
  gps?: Record<string, unknown>
  signals?: readonly { type: string; value: string }[]
}

type Result = 'accepted' | { errorType: string }

/** By payloadId; a payload that is in neither list has none. */
export type Results = ReadonlyMap<string, Result>

/** One request with payloads, and what was answered. */
export type Submission = {
  atMs: number
  /** Of the process of the daemon. */
  life: number
  /** Null: the single operation. */
  batchId: string | null
  payloadIds: readonly string[]
  /** The daemon had ended, or closed its connection, before it arrived: it was on its way for long. */
  isStale: boolean
  /** Null: no answer. */
  status: number | null
  requestId: string | null
  /** Of a 200 or 202: what the answer says. */
  results: Results | null
  retryAfterMs: number
  /** The answer ended before it named all payloads. */
  isHalf: boolean
  /** Answered 403 for its key. */
  isKeyRefused: boolean
  /** When the answer has reached the daemon, or was sent: those of two connections may change their order. */
  answeredMs: number | null
  /** Whether the whole answer reached the daemon; `maybe` where a part did, or its connection ended soon after. */
  heard: 'yes' | 'maybe' | 'no'
}

/** `answer` and `results`: of the first answer that named a payload. */
type Batch = { hash: string; results: Map<string, Result>; answer: string | null; fault: Lasting | null }

/** A fault that so many more submissions of a batch meet, whatever the others meet by then. */
type Lasting = { fault: Fault; left: number }

/** The first half of it would say that what failed was accepted, and no reader could know better. */
function isInBothLists(text: string): boolean {
  const { accepted = [], failed = [] } = JSON.parse(text) as {
    accepted?: string[]
    failed?: { payloadId: string }[]
  }
  return failed.some(({ payloadId }) => accepted.includes(payloadId))
}

/** `fresh` processes a batch that it knows again; what it accepted of it stays accepted. */
export type RepeatBehaviour = 'same' | 'conflict' | 'fresh'

/** What became of a payload at the service. */
export type PayloadRecord = { accepted: { batchId: string | null }[]; payload: Payload }

export type Service = {
  provider: string
  host: string
  records: ReadonlyMap<string, PayloadRecord>
  journal: readonly Submission[]
  wrong: string[]
  /** Faults for the next submissions; what the safety phase draws. */
  nextFault: () => Fault
  /** When a connection last ended, or the network last failed, in a way that the journal does not show. */
  disturbedMs: number
  /** Called once, when a payload comes alone. */
  atNextSingle: (() => void) | null
  /** Called once, when a batch with a key that is known has come. */
  atNextBatch: (() => void) | null
  counters: {
    requests: number
    batches: number
    repeats: number
    singles: number
    faults: Map<string, number>
  }
}

type Deps = { kernel: Kernel; network: Network; random: Random; reach: (state: string) => void }

export type ServiceOptions = {
  provider: string
  host: string
  port: number
  repeat: RepeatBehaviour
  /** The largest that was ever in force. */
  payloadsMax: () => number
  /** Its batch was put together again, without regard to that. */
  isRebuilt: (payloadId: string) => boolean
  /** Delay of an answer at most. */
  answerMs: number
  /** Answered as `Validation`. */
  isDoomed: (payload: Payload) => boolean
  /** A request with it is answered 400. */
  isRefused: (payload: Payload) => boolean
  /** A request that is signed with another key is answered 403. */
  isKnownKey: (accessKeyId: string) => boolean
  /** Not where a clock is set: what comes out of quarantine stands behind later messages. */
  isInOrder: boolean
  /** It was elsewhere since it came, and stands behind later ones. */
  isReturned: (payloadId: string) => boolean
}

export function createService({ kernel, network, random, reach }: Deps, options: ServiceOptions): Service {
  const { provider, host, port } = options
  const records = new Map<string, PayloadRecord>()
  const batches = new Map<string, Batch>()
  const journal: Submission[] = []
  const wrong: string[] = []
  const counters = { requests: 0, batches: 0, repeats: 0, singles: 0, faults: new Map<string, number>() }
  let requestIds = 0
  const nextFault = (): Fault => ({ kind: 'none' })
  const known = { provider, host, records, journal, wrong, counters }
  const service: Service = { ...known, nextFault, disturbedMs: 0, atNextSingle: null, atNextBatch: null }
  network.world.serve(host, port, serve)
  return service

  function serve(end: WorldEnd): void {
    let buffered = Buffer.alloc(0)
    let fault: Fault | null = null
    // Of the process that connected: what it sent may arrive after its end.
    const { life } = kernel
    end.onData = (bytes) => {
      buffered = Buffer.concat([buffered, bytes])
      fault ??= drawn()
      if (fault.kind === 'reset' && fault.when === 'within') {
        service.disturbedMs = kernel.monotonicMs
        return end.reset()
      }
      const headEnd = buffered.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = buffered.toString('latin1', 0, headEnd)
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
      if (buffered.length < headEnd + 4 + length) return
      const body = buffered.subarray(headEnd + 4, headEnd + 4 + length)
      buffered = Buffer.from(buffered.subarray(headEnd + 4 + length))
      const met = fault
      fault = null
      received(end, { life, head, body: Buffer.from(body), fault: met })
    }
  }

  function drawn(): Fault {
    const fault = service.nextFault()
    counters.faults.set(fault.kind, (counters.faults.get(fault.kind) ?? 0) + 1)
    return fault
  }

  function received(
    end: WorldEnd,
    { life, head, body, fault }: { life: number; head: string; body: Buffer; fault: Fault },
  ): void {
    counters.requests += 1
    const [, method = '', path = ''] = /^(\S+) (\S+)/.exec(head) ?? []
    checkHeaders(head, method)
    if (method === 'HEAD' || method === 'GET') {
      answer(end, null, { status: 403, text: '{"message":"Missing Authentication Token"}' })
      return
    }
    const isBatch = path.endsWith('/v2/telemetry/batch')
    const parsed = JSON.parse(body.toString()) as { batchId: string; data: Payload[] } | Payload
    const data = 'data' in parsed ? parsed.data : [parsed]
    const submission: Submission = {
      atMs: kernel.monotonicMs,
      life,
      batchId: 'data' in parsed ? parsed.batchId : null,
      payloadIds: data.map(({ payloadId }) => payloadId),
      isStale: !end.isOpenThere,
      status: null,
      requestId: null,
      results: null,
      retryAfterMs: 0,
      isHalf: false,
      isKeyRefused: false,
      answeredMs: null,
      heard: 'no',
    }
    journal.push(submission)
    if (submission.batchId === null) {
      const { atNextSingle } = service
      service.atNextSingle = null
      atNextSingle?.()
    }
    if (isBatch) checkBatch(submission, data, body)
    if (!options.isKnownKey(/ Credential=([^/]+)\//.exec(head)?.[1] ?? '')) {
      reach('service refused a key')
      submission.isKeyRefused = true
      answer(end, submission, { status: 403, text: message('The security token is invalid.') })
      return
    }
    if (isBatch) {
      const { atNextBatch } = service
      service.atNextBatch = null
      atNextBatch?.()
    }
    meet(end, { submission, data, bytes: body.length, fault: lasting(submission.batchId, fault) })
  }

  function lasting(batchId: string | null, fault: Fault): Fault {
    const batch = batches.get(batchId ?? '')
    if (batch === undefined) return fault
    if ('times' in fault) batch.fault ??= { fault, left: fault.times }
    if (batch.fault === null) return fault
    batch.fault.left -= 1
    if (batch.fault.left >= 0) return batch.fault.fault
    return fault.kind === batch.fault.fault.kind ? { kind: 'none' } : fault
  }

  function meet(
    end: WorldEnd,
    {
      submission,
      data,
      bytes,
      fault,
    }: { submission: Submission; data: Payload[]; bytes: number; fault: Fault },
  ): void {
    const process = () => processed(submission, data, { bytes, fault })
    switch (fault.kind) {
      case 'status': {
        if (fault.processes) process()
        const { retryAfterS, hasDate = true } = fault
        // To the single operation it would be a promise.
        const status = fault.status === 202 && submission.batchId === null ? 500 : fault.status
        submission.results = null
        submission.retryAfterMs = (retryAfterS ?? 0) * 1000
        const text = `{"requestId":"${newRequestId()}","message":"as drawn"}`
        answer(end, submission, { status, text, retryAfterS, hasDate })
        return
      }
      case 'reset':
        if (fault.when === 'after') process()
        submission.results = null
        end.reset()
        return
      case 'hang':
        if (fault.processes) process()
        submission.results = null
        return
      case 'truncated': {
        const { status, text } = process()
        if (submission.batchId === null || status !== 200 || isInBothLists(text)) {
          answer(end, submission, { status, text })
          return
        }
        const part = text.slice(0, Math.floor(text.length * fault.part))
        const head = `HTTP/1.1 ${status} OK\r\n${dateLine()}content-length: ${text.length}\r\n\r\n`
        submission.isHalf = !submission.payloadIds.every((id) => part.includes(id))
        Object.assign(submission, { status, ...nowAnswered(text) })
        end.write(Buffer.from(head + part), arrivedFor(submission))
        end.end()
        return
      }
      case 'html':
        answer(end, submission, { status: 200, text: '<html>welcome</html>' })
        return
      case 'slow':
        kernel.at(fault.ms, () => {
          if (end.isOpen || random.chance(0.5)) answer(end, submission, process())
        })
        return
      case 'none':
      case 'unlisted':
      case 'outage':
      case 'some failed':
      case 'odd':
      case 'body limit':
      case 'firewall': {
        const isFirst = batches.get(submission.batchId ?? '')?.answer === null
        const answered = process()
        if (fault.kind === 'outage' && fault.isLost && isFirst) {
          submission.results = null
          end.reset()
          return
        }
        kernel.at(random.below(options.answerMs), () => answer(end, submission, answered))
      }
    }
  }

  function processed(
    submission: Submission,
    data: Payload[],
    { bytes, fault }: { bytes: number; fault: Fault },
  ): { status: number; text: string } {
    const known = submission.batchId === null ? undefined : batches.get(submission.batchId)
    if (known !== undefined && known.answer !== null) {
      counters.repeats += 1
      if (options.repeat === 'same') {
        submission.results = new Map(known.results)
        return { status: 200, text: known.answer }
      }
      if (options.repeat === 'conflict') return { status: 409, text: message('known batch') }
    }
    if (data.some(options.isRefused)) {
      reach('service refused a payload')
      return { status: 400, text: message('invalid') }
    }
    if (fault.kind === 'body limit' && bytes > fault.bytes && data.length > 1) {
      reach('service refused a size')
      return { status: 413, text: message('too large') }
    }
    if (fault.kind === 'firewall' && data.some(({ payloadId }) => isOneOf(payloadId, fault.every))) {
      reach('service forbade a batch')
      return { status: 403, text: message('forbidden by a rule') }
    }
    return known === undefined
      ? singleAnswer(submission, data[0]!, fault)
      : batchAnswer(submission, data, fault, known)
  }

  function batchAnswer(
    submission: Submission,
    data: Payload[],
    fault: Fault,
    batch: Batch,
  ): { status: number; text: string } {
    const { batchId } = submission
    reach(`service got a batch of ${data.length === 1 ? '1' : data.length < 10 ? '2 to 9' : '10 or more'}`)
    const results = new Map<string, Result>()
    const isShort = fault.kind === 'odd' && fault.how === 'short list'
    for (const [index, payload] of data.entries()) {
      const { payloadId } = payload
      const { accepted } = recordOf(payload)
      const isKnown = accepted.some((one) => one.batchId === batchId)
      const failure = isKnown ? null : failureOf(payload, fault)
      const isLeftOut = isLeftOutBy(fault, payloadId) || (isShort && index > 0)
      const isProcessed = !isLeftOut || (fault.kind === 'unlisted' && fault.processes)
      if (failure === null && !isKnown && isProcessed) accepted.push({ batchId })
      if (isLeftOut) continue
      // What it accepted before, some services name as failed when it comes again.
      const isToldTwice = isKnown && fault.kind === 'unlisted' && random.chance(0.3)
      results.set(payloadId, isToldTwice ? { errorType: 'Known' } : (failure ?? 'accepted'))
    }
    submission.results = results
    const text = breakdown(data, results, fault.kind === 'odd' ? fault.how : null)
    // It names none: the service has not processed the batch, and does not remember it.
    if (results.size > 0) Object.assign(batch, { answer: text, results })
    return { status: 200, text }
  }

  function breakdown(data: readonly Payload[], results: Results, odd: string | null): string {
    const ids = data.map(({ payloadId }) => payloadId)
    const accepted = ids.filter((id) => results.get(id) === 'accepted')
    const failed = ids.flatMap((payloadId) => {
      const result = results.get(payloadId)
      if (result === undefined || result === 'accepted') return []
      const { errorType } = result
      return [{ payloadId, errorType, errorMessage: 'as drawn', validationErrorDetails: [] }]
    })
    const summary = { total: ids.length, accepted: accepted.length, failed: failed.length }
    const unknown = '00000000-0000-4000-8000-000000000000'
    if (odd === 'in both lists') accepted.push(...failed.map(({ payloadId }) => payloadId))
    if (odd === 'twice') accepted.push(...accepted.slice(0, 3))
    if (odd === 'unknown ids') accepted.push(unknown)
    if (odd === 'wrong summary') summary.accepted += 1
    if (odd === 'short list') summary.accepted = ids.length - failed.length
    const shown = odd === 'capital letters' ? accepted.map((id) => id.toUpperCase()) : accepted
    const responseCode = odd === 'other code' ? 500 : 200
    return JSON.stringify({ requestId: newRequestId(), responseCode, accepted: shown, failed, summary })
  }

  function singleAnswer(
    submission: Submission,
    payload: Payload,
    fault: Fault,
  ): { status: number; text: string } {
    counters.singles += 1
    reach('service got a single payload')
    const text = message('single')
    if (options.isDoomed(payload) || fault.kind === 'outage') return { status: 400, text }
    recordOf(payload).accepted.push({ batchId: null })
    submission.results = new Map([[payload.payloadId, 'accepted']])
    return { status: 202, text }
  }

  function isLeftOutBy(fault: Fault, payloadId: string): boolean {
    if (fault.kind !== 'unlisted') return false
    return fault.isSteady
      ? isOneOf(payloadId, Math.ceil(1 / (fault.share + 0.01)))
      : random.chance(fault.share)
  }

  /** Null: it is accepted. */
  function failureOf(payload: Payload, fault: Fault): Result | null {
    if (fault.kind === 'outage') return { errorType: fault.errorType }
    if (options.isDoomed(payload)) return { errorType: 'Validation' }
    if (fault.kind === 'some failed' && random.chance(fault.share))
      return { errorType: random.pick(fault.errorTypes) }
    if (fault.kind === 'odd' && fault.how !== 'short list' && random.chance(0.3)) return { errorType: 'Busy' }
    return null
  }

  // ---- what every request must be

  function checkHeaders(head: string, method: string): void {
    if (!/^authorization: AWS4-ECDSA-P256-SHA256 /im.test(head)) wrong.push('a request without a signature')
    if (!/^x-amz-date: \d{8}T\d{6}Z/im.test(head)) wrong.push('a request without the time of its signature')
    if (method !== 'POST') return
    if (!/^content-type: application\/json/im.test(head)) wrong.push('a request that is not said to be JSON')
    const key = /^x-provider-key: (\S+)/im.exec(head)?.[1]
    if (key !== provider.toUpperCase()) wrong.push(`a request of ${provider} with the key ${key}`)
  }

  function checkBatch({ batchId }: Submission, data: readonly Payload[], body: Buffer): void {
    const hash = createHash('sha256').update(body).digest('hex')
    const id = batchId ?? ''
    counters.batches += 1
    const batch = batches.get(id)
    const empty = { hash, results: new Map(), answer: null, fault: null }
    if (batch === undefined) batches.set(id, empty)
    else if (batch.hash !== hash) wrong.push(`batch ${id} came with other bytes`)
    const isTooLarge = data.length > options.payloadsMax()
    if (data.length === 0 || (isTooLarge && !data.some(({ payloadId }) => options.isRebuilt(payloadId))))
      wrong.push(`batch ${id} has ${data.length} payloads`)
    checkOrder(id, data)
  }

  /**
   * Payloads of one device stand in a batch in the order of their messages, unless they came before. A position alone was
   * a dead letter, and goes behind.
   */
  function checkOrder(batchId: string, data: readonly Payload[]): void {
    const last = new Map<string, number>()
    for (const payload of data) {
      const { deviceIdentifier, signalTimestamp, payloadId, signals } = payload
      const id = deviceIdentifier?.id ?? ''
      const isBehind = records.has(payloadId) || signals === undefined || options.isReturned(payloadId)
      if (options.isInOrder && signalTimestamp < (last.get(id) ?? 0) && !isBehind)
        wrong.push(`batch ${batchId} has payloads of ${id} out of order`)
      last.set(id, signalTimestamp)
      recordOf(payload)
    }
  }

  function recordOf(payload: Payload): PayloadRecord {
    let record = records.get(payload.payloadId)
    if (record === undefined) records.set(payload.payloadId, (record = { accepted: [], payload }))
    return record
  }

  // ---- answers

  type Answer = { status: number; text: string; retryAfterS?: number | undefined; hasDate?: boolean }

  function answer(end: WorldEnd, submission: Submission | null, given: Answer): void {
    const { status, text, retryAfterS, hasDate = true } = given
    if (submission !== null) reach(`service answered ${status}`)
    if (!end.isOpen) return
    const retry = retryAfterS === undefined ? '' : `retry-after: ${retryAfterS}\r\n`
    const type = text.startsWith('<') ? 'text/html' : 'application/json'
    const head = `HTTP/1.1 ${status} X\r\n${hasDate ? dateLine() : ''}content-type: ${type}\r\n${retry}`
    const bytes = Buffer.from(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
    end.write(bytes, arrivedFor(submission))
    if (submission === null) return
    Object.assign(submission, { status, ...nowAnswered(text) })
    // A connection that is open when its answer is there, and some time later, has taken it.
    const { delayMs, isSilent } = network.world.path(host)
    const life = kernel.life
    if (isSilent || submission.life !== life) return
    kernel.at(2 * delayMs + 10, () => {
      if (end.isOpenThere && kernel.life === life && !network.world.path(host).isSilent)
        submission.heard = 'yes'
    })
  }

  function arrivedFor(submission: Submission | null): () => void {
    return () => {
      if (submission !== null) submission.answeredMs = kernel.monotonicMs
    }
  }

  function nowAnswered(text: string): Pick<Submission, 'requestId' | 'answeredMs' | 'heard'> {
    const requestId = /"requestId":"([^"]*)"/.exec(text)?.[1] ?? null
    return { requestId, answeredMs: kernel.monotonicMs, heard: 'maybe' }
  }

  function message(text: string): string {
    return `{"requestId":"${newRequestId()}","message":"${text}"}`
  }

  function dateLine(): string {
    return `date: ${new Date(kernel.trueMs).toUTCString()}\r\n`
  }

  function newRequestId(): string {
    requestIds += 1
    return `${provider}-${requestIds}`
  }
}

/** One payload in `every`, the same ones each time. */
export function isOneOf(payloadId: string, every: number): boolean {
  return Number.parseInt(payloadId.slice(-6), 16) % every === 0
}
