// service.ts: the Telemetry Ingestion Service of the simulated world, one for each provider, on bare connections.
// It remembers every batch that it saw, and answers as the world tells it to.
//
// It judges what it receives: the same batchId has the same bytes, a batch is within its limits, no payload twice in
// a batch.

import { createHash } from 'node:crypto'
import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import type { Network, WorldEnd } from '../machine/network.ts'

export type Payload = {
  payloadId: string
  signalTimestamp: number
  deviceIdentifier?: { id: string }
  gps?: Record<string, unknown>
  signals?: readonly { type: string; value: string }[]
}

/** What one submission meets. */
export type Fault =
  | { kind: 'none' }
  | { kind: 'status'; status: number; retryAfterS?: number; processes: boolean }
  /** The connection ends before the request was read, before it was processed, or before the answer. */
  | { kind: 'reset'; when: 'at once' | 'before' | 'after' }
  | { kind: 'hang'; processes: boolean }
  | { kind: 'slow'; ms: number }
  /** Half of the answer, then the end of the connection. */
  | { kind: 'truncated' }
  | { kind: 'html' }
  /** Payloads in neither list. */
  | { kind: 'unlisted'; share: number }
  /** An outage told inside a 200: everything failed with this errorType. */
  | { kind: 'outage'; errorType: string }
  | { kind: 'some failed'; share: number; errorType: string }

/** `failed`: payloads that some answer named so. */
type Batch = { hash: string; submissions: number; answer: string | null; failed: Set<string> }

export type RepeatBehaviour = 'same' | 'conflict' | 'fresh'

/** What became of a payload at the service. */
export type PayloadRecord = {
  accepted: { batchId: string | null }[]
  failed: number
  mayBeTwice: boolean
  payload: Payload
}

export type Service = {
  provider: string
  records: ReadonlyMap<string, PayloadRecord>
  wrong: string[]
  /** Faults for the next submissions; what the safety phase draws. */
  nextFault: () => Fault
  counters: {
    requests: number
    batches: number
    repeats: number
    singles: number
    faults: Map<string, number>
  }
}

type Deps = { kernel: Kernel; network: Network; random: Random }

export type ServiceOptions = {
  provider: string
  host: string
  port: number
  repeat: RepeatBehaviour
  payloadsMax: number
  isDoomed: (payload: Payload) => boolean
}

export function createService({ kernel, network, random }: Deps, options: ServiceOptions): Service {
  const records = new Map<string, PayloadRecord>()
  const batches = new Map<string, Batch>()
  const wrong: string[] = []
  const counters = { requests: 0, batches: 0, repeats: 0, singles: 0, faults: new Map<string, number>() }
  let requestIds = 0
  const service: Service = {
    provider: options.provider,
    records,
    wrong,
    nextFault: () => ({ kind: 'none' }),
    counters,
  }
  network.world.serve(options.host, options.port, serve)
  return service

  function serve(end: WorldEnd): void {
    let buffered = Buffer.alloc(0)
    end.onData = (bytes) => {
      buffered = Buffer.concat([buffered, bytes])
      const headEnd = buffered.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = buffered.toString('latin1', 0, headEnd)
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
      if (buffered.length < headEnd + 4 + length) return
      const body = buffered.subarray(headEnd + 4, headEnd + 4 + length)
      buffered = Buffer.from(buffered.subarray(headEnd + 4 + length))
      received(end, head, Buffer.from(body))
    }
  }

  function received(end: WorldEnd, head: string, body: Buffer): void {
    counters.requests += 1
    const [, method = '', path = ''] = /^(\S+) (\S+)/.exec(head) ?? []
    if (!/^authorization: AWS4-ECDSA-P256-SHA256 /im.test(head)) wrong.push('a request without a signature')
    if (method === 'HEAD' || method === 'GET') {
      answer(end, 403, '{"message":"Missing Authentication Token"}')
      return
    }
    const fault = service.nextFault()
    counters.faults.set(fault.kind, (counters.faults.get(fault.kind) ?? 0) + 1)
    const isBatch = path.endsWith('/v2/telemetry/batch')
    const process = () => (isBatch ? batchAnswer(body, fault) : singleAnswer(body, fault))
    switch (fault.kind) {
      case 'status': {
        if (fault.processes) process()
        const retry = fault.retryAfterS === undefined ? '' : `retry-after: ${fault.retryAfterS}\r\n`
        answer(end, fault.status, `{"requestId":"${requestId()}","message":"as drawn"}`, retry)
        return
      }
      case 'reset':
        if (fault.when === 'after') process()
        end.reset()
        return
      case 'hang':
        if (fault.processes) process()
        return
      case 'truncated': {
        const { status, text } = process()
        end.write(
          Buffer.from(
            `HTTP/1.1 ${status} OK\r\n${dateLine()}content-length: ${text.length}\r\n\r\n${text.slice(0, text.length >> 1)}`,
          ),
        )
        end.end()
        return
      }
      case 'html':
        answer(end, 200, '<html>welcome</html>')
        return
      case 'slow':
        kernel.at(fault.ms, () => {
          const { status, text } = process()
          if (end.isOpen) answer(end, status, text)
        })
        return
      case 'none':
      case 'unlisted':
      case 'outage':
      case 'some failed': {
        const { status, text } = process()
        kernel.at(random.below(50), () => {
          if (end.isOpen) answer(end, status, text)
        })
        return
      }
    }
  }

  function batchAnswer(body: Buffer, fault: Fault): { status: number; text: string } {
    const { batchId, data } = JSON.parse(body.toString()) as { batchId: string; data: Payload[] }
    const hash = createHash('sha256').update(body).digest('hex')
    counters.batches += 1
    let batch = batches.get(batchId)
    if (batch === undefined)
      batches.set(batchId, (batch = { hash, submissions: 0, answer: null, failed: new Set() }))
    batch.submissions += 1
    if (batch.hash !== hash) wrong.push(`batch ${batchId} came with other bytes`)
    if (data.length === 0 || data.length > options.payloadsMax)
      wrong.push(`batch ${batchId} has ${data.length} payloads`)
    if (new Set(data.map(({ payloadId }) => payloadId)).size !== data.length)
      wrong.push(`batch ${batchId} has a payload twice`)
    checkOrder(batchId, data)
    if (batch.answer !== null) {
      counters.repeats += 1
      if (options.repeat === 'same') return { status: 200, text: batch.answer }
      if (options.repeat === 'conflict')
        return { status: 409, text: `{"requestId":"${requestId()}","message":"known batch"}` }
    }
    const accepted: string[] = []
    const failed: object[] = []
    for (const payload of data) {
      const { payloadId } = payload
      const before = records.get(payloadId)?.accepted.some((one) => one.batchId === batchId) === true
      // It processes a repeated batch afresh, and what it accepted of it stays accepted.
      const errorType = before ? null : errorOf(payload, fault)
      if (errorType === 'unlisted') {
        recordOf(payload).failed += 1
        batch.failed.add(payloadId)
        continue
      }
      if (errorType !== null) {
        failed.push({ payloadId, errorType, errorMessage: 'as drawn', validationErrorDetails: [] })
        recordOf(payload).failed += 1
        batch.failed.add(payloadId)
        continue
      }
      accepted.push(payloadId)
      // A submission that was late in the network, after its answer to a later one: no batchId helps against that here.
      if (batch.failed.has(payloadId)) recordOf(payload).mayBeTwice = true
      if (!before) recordOf(payload).accepted.push({ batchId })
    }
    const total = data.length
    const summary = { total, accepted: accepted.length, failed: failed.length }
    const text = JSON.stringify({ requestId: requestId(), responseCode: 200, accepted, failed, summary })
    // It names none: the service has not processed the batch, and does not remember it.
    if (accepted.length + failed.length > 0) batch.answer = text
    return { status: 200, text }
  }

  function singleAnswer(body: Buffer, fault: Fault): { status: number; text: string } {
    counters.singles += 1
    const payload = JSON.parse(body.toString()) as Payload
    if (options.isDoomed(payload) || fault.kind === 'outage')
      return { status: 400, text: `{"requestId":"${requestId()}","message":"invalid"}` }
    recordOf(payload).accepted.push({ batchId: null })
    return { status: 202, text: `{"requestId":"${requestId()}"}` }
  }

  function errorOf(payload: Payload, fault: Fault): string | null {
    if (fault.kind === 'outage') return fault.errorType
    if (options.isDoomed(payload)) return 'Validation'
    if (fault.kind === 'some failed' && random.chance(fault.share)) return fault.errorType
    if (fault.kind === 'unlisted' && random.chance(fault.share)) return 'unlisted'
    return null
  }

  /** Payloads of one device stand in a batch in the order of their messages. */
  function checkOrder(batchId: string, data: readonly Payload[]): void {
    const last = new Map<string, number>()
    for (const { deviceIdentifier, signalTimestamp, payloadId } of data) {
      const id = deviceIdentifier?.id ?? ''
      if (signalTimestamp < (last.get(id) ?? 0) && recordOfId(payloadId) === undefined)
        wrong.push(`batch ${batchId} has payloads of ${id} out of order`)
      last.set(id, signalTimestamp)
    }
  }

  function recordOfId(payloadId: string): PayloadRecord | undefined {
    return records.get(payloadId)
  }

  function recordOf(payload: Payload): PayloadRecord {
    let record = records.get(payload.payloadId)
    if (record === undefined)
      records.set(payload.payloadId, (record = { accepted: [], failed: 0, mayBeTwice: false, payload }))
    return record
  }

  function answer(end: WorldEnd, status: number, text: string, more = ''): void {
    const head = `HTTP/1.1 ${status} X\r\n${dateLine()}content-type: application/json\r\n${more}content-length: ${Buffer.byteLength(text)}\r\n\r\n`
    end.write(Buffer.from(head + text))
  }

  function dateLine(): string {
    return `date: ${new Date(kernel.trueMs).toUTCString()}\r\n`
  }

  function requestId(): string {
    requestIds += 1
    return `${options.provider}-${requestIds}`
  }
}
