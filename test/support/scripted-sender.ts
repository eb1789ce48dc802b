// scripted-sender.ts: a sender worker without a thread and without sockets, for tests with a fake clock. A script gives
// the reply, as in scripted-service.ts, and the answer reader of the product turns it into the outcome. It does not sign.
// test/delivery/scripted-sender.test.ts compares its outcomes with those of the real one.

import { readAnswer } from '../../src/delivery/transport/answer-reader.ts'
import type { SenderWorker } from '../../src/delivery/transport/sender-worker.ts'
import type {
  Attempt,
  AttemptResult,
  SubmissionResult,
  TransportOptions,
} from '../../src/delivery/transport/transport.ts'
import { unreachable } from '../../src/delivery/transport/unreachable.ts'
import { payloadIdIn } from '../../src/domain/payload.ts'
import type { Clock } from '../../src/std/clock.ts'
import { turn } from './fake-clock.ts'
import { createSlowLink, type SlowLink } from './slow-link.ts'
import { acceptAll, bytesOf, receivedOf } from './scripted-service.ts'
import type { Received, Reply, Script, ScriptedService } from './scripted-service.ts'

export type ScriptedSender = { senderWorker: SenderWorker; service: ScriptedService }

/** `bytesPerS`: of the link to the service, which all submissions share. */
type LinkOptions = { bytesPerS?: number }

export function createScriptedSender(
  { clock }: { clock: Clock },
  first: Script = acceptAll,
  { bytesPerS }: LinkOptions = {},
): ScriptedSender {
  let script = first
  const link = bytesPerS === undefined ? null : createSlowLink({ clock }, bytesPerS)
  let open = 0
  let mostOpen = 0
  let hanging = 0
  const received: Received[] = []

  const service: ScriptedService = {
    url: 'http://127.0.0.1:1',
    received,
    answer(next) {
      script = next
    },
    open: () => open,
    mostOpen: () => mostOpen,
    hanging: () => hanging,
    close: () => Promise.resolve(),
  }
  const senderWorker: SenderWorker = {
    open(options) {
      let present = options
      return {
        submit: (attempt) => submit(present, attempt),
        renew: (next) => void (present = next),
        close: () => Promise.resolve(),
      }
    },
    threadsLost: () => 0,
    close: () => Promise.resolve(),
  }
  return { senderWorker, service }

  async function submit(options: TransportOptions, attempt: Attempt): Promise<AttemptResult> {
    if (attempt.stop.aborted) return { ...aborted, entries: null }
    const body = Buffer.alloc(attempt.content.bodyBytes)
    const starts = attempt.content.writeBody(body)
    open += 1
    mostOpen = Math.max(mostOpen, open)
    try {
      // Submissions that start together are open together.
      await turn()
      if (attempt.stop.aborted) return { ...aborted, entries: null }
      const sent = link === null ? body.length : await carry(link, body.length, attempt)
      if (sent < body.length) return { ...cutOff(attempt, sent), entries: null }
      const one = receivedOf({ ...requestOf(options, attempt), body })
      received.push(one)
      const reply = script(one, received.length - 1)
      return { ...(await resultOf(reply, { options, attempt, body, starts })), entries: null }
    } finally {
      open -= 1
    }
  }

  /** While the link carries it only the clock can go on. */
  async function carry(
    { carry: upload }: SlowLink,
    bytes: number,
    { timeoutMs, stop }: Attempt,
  ): Promise<number> {
    hanging += 1
    const sent = await upload(bytes, timeoutMs, stop)
    hanging -= 1
    return sent
  }

  type Exchange = { options: TransportOptions; attempt: Attempt; body: Buffer; starts: Uint32Array }

  function resultOf(
    reply: Reply,
    { options, attempt, body, starts }: Exchange,
  ): SubmissionResult | Promise<SubmissionResult> {
    const { operation, startedAt } = attempt
    if (reply === 'hang') {
      const timeoutMs = attempt.timeoutMs
      const message = `no answer within ${timeoutMs} ms`
      const late = { kind: 'unreachable', reason: 'timeout', message } as const
      return hang(timeoutMs, attempt, { outcome: late, date: null, ...written(body.length) })
    }
    if (typeof reply === 'object' && 'fails' in reply) {
      const error = Object.assign(new Error('it failed'), { code: reply.fails })
      const outcome = unreachable(error, startedAt, options)
      return hang(reply.afterMs, attempt, { outcome, date: null, written: false, bytesSent: 0 })
    }
    if (reply === 'reset') {
      const error = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      return { outcome: unreachable(error, startedAt, options), date: null, ...written(body.length) }
    }
    if (reply === 'no connection') {
      const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      return { outcome: unreachable(error, startedAt, options), date: null, written: false, bytesSent: 0 }
    }
    if ('raw' in reply) throw new Error('a raw reply needs real sockets')
    const bytes = bytesOf(reply.body)
    const { status, headers = {} } = reply
    const payloadIds = () => Array.from(starts, (start) => payloadIdIn(body, start))
    const cut = reply.truncated ? ('ended early' as const) : null
    const outcome = readAnswer({ status, headers }, { bytes, cut }, { operation, payloadIds, now: startedAt })
    return { outcome, date: headers['date'] ?? null, ...written(body.length) }
  }

  function hang(afterMs: number, { stop }: Attempt, result: SubmissionResult): Promise<SubmissionResult> {
    hanging += 1
    return new Promise((resolve) => {
      const end = (ended: SubmissionResult) => {
        hanging -= 1
        cancel()
        stop.removeEventListener('abort', onStop)
        resolve(ended)
      }
      const onStop = () => end({ ...result, outcome: { kind: 'aborted' } })
      const cancel = clock.after(afterMs, () => end(result))
      stop.addEventListener('abort', onStop, { once: true })
    })
  }
}

const aborted: SubmissionResult = { outcome: { kind: 'aborted' }, date: null, written: false, bytesSent: 0 }

/** The service gets the whole body before it answers or hangs. */
function written(bytes: number): { written: boolean; bytesSent: number } {
  return { written: true, bytesSent: bytes }
}

function cutOff({ stop, timeoutMs }: Attempt, bytesSent: number): SubmissionResult {
  const message = `no answer within ${timeoutMs} ms`
  const late: SubmissionResult['outcome'] = { kind: 'unreachable', reason: 'timeout', message }
  return { outcome: stop.aborted ? { kind: 'aborted' } : late, date: null, written: false, bytesSent }
}

function requestOf(
  { baseUrl, providerKey }: TransportOptions,
  { operation, credentials }: Attempt,
): Pick<Received, 'method' | 'path' | 'headers'> {
  const base = new URL(baseUrl).pathname.replace(/\/$/, '')
  const path = `${base}/v2/telemetry${operation === 'batch' ? '/batch' : ''}`
  const authorization = `AWS4-ECDSA-P256-SHA256 Credential=${credentials.accessKeyId}/unsigned`
  const key = providerKey === null ? {} : { 'x-provider-key': providerKey }
  return { method: 'POST', path, headers: { authorization, ...key } }
}
