// sender-worker.ts: the thread for what is sent: hashing, signing, HTTP, reading the answer. One for all
// providers, started with the first submission. All decisions are made in the main thread.
//
//   batch content --> [body, transferred] --> hash, sign, POST, read the answer --> Outcome, ledger entries
//
// At full load these steps cost a quarter of the whole pipeline; the main thread, which maps and spools, must
// not wait for them.
//
// What can go wrong: the thread is lost (out of memory, a defect). Its attempts end as `interrupted`: the
// outcome of their requests is unknown. The next submission starts another thread.

import { Worker } from 'node:worker_threads'
import { messageOf } from '../../std/gateway-error.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import type { Credentials } from '../credentials/access-keys.ts'
import type { Attempt, AttemptResult, Transport, TransportOptions } from './transport.ts'

/** To the thread. */
export type ThreadRequest =
  | { kind: 'open'; transport: number; options: TransportOptions; ledger: boolean }
  | {
      kind: 'submit'
      id: number
      transport: number
      credentials: Credentials
      signingAt: EpochMs
      startedAt: EpochMs
      timeoutMs: number
      operation: BatchOperation
      body: ArrayBuffer
      /** Where each payload starts in the body. */
      starts: Uint32Array
    }
  | { kind: 'abort'; id: number }
  | { kind: 'close'; transport: number }

/** From the thread. */
export type ThreadReply =
  ({ kind: 'ended'; id: number } & AttemptResult) | { kind: 'closed'; transport: number }

export type SenderWorker = {
  open(options: TransportOptions): Transport
  /** Threads that were lost since the start. */
  threadsLost(): number
  /** Ends the thread. */
  close(): Promise<void>
}

/** In dist the file of the thread is beside this one, as JavaScript. */
const threadFile = new URL(`./sender-thread${import.meta.url.slice(-3)}`, import.meta.url)

/** The heap holds one parsed answer, which takes up to 25 times its 8 MiB. */
const heapMib = 256

const hourMs = 3_600_000
const notSent: Omit<AttemptResult, 'outcome'> = { date: null, written: false, bytesSent: 0, entries: null }

/** `ledger`: each answer comes with the entries of the payloads. */
export function createSenderWorker(
  { emit = () => {} }: { emit?: Emit } = {},
  { ledger = false }: { ledger?: boolean } = {},
): SenderWorker {
  /** The open ones; a new thread gets all of them. */
  const transports = new Map<number, TransportOptions>()
  const running = new Map<number, (result: AttemptResult) => void>()
  const closing = new Map<number, () => void>()
  let thread: Worker | null = null
  let lastTransport = 0
  let lastAttempt = 0
  let threadsLost = 0
  /** Monotonic times of the losses of the last hour. */
  let lostAtMs: number[] = []

  return {
    open(first) {
      let present = opened(first)
      return {
        submit: (attempt) => submit(present, attempt),
        renew(options) {
          // It never rejects.
          void closed(present)
          present = opened(options)
        },
        close: () => closed(present),
      }
    },
    threadsLost: () => threadsLost,
    async close() {
      const ending = thread
      if (ending === null) return
      threadEnded(ending, { kind: 'aborted' })
      await ending.terminate()
    },
  }

  function opened(options: TransportOptions): number {
    const transport = (lastTransport += 1)
    transports.set(transport, options)
    post({ kind: 'open', transport, options, ledger })
    return transport
  }

  /** Its running submissions end first. */
  function closed(transport: number): Promise<void> {
    transports.delete(transport)
    if (thread === null) return Promise.resolve()
    return new Promise((resolve) => {
      closing.set(transport, resolve)
      post({ kind: 'close', transport })
    })
  }

  async function submit(transport: number, attempt: Attempt): Promise<AttemptResult> {
    const { operation, content, credentials, signingAt, startedAt, timeoutMs, stop } = attempt
    if (stop.aborted) return { ...notSent, outcome: { kind: 'aborted' } }
    const id = (lastAttempt += 1)
    const body = Buffer.allocUnsafeSlow(content.bodyBytes)
    const starts = content.writeBody(body)
    const onStop = () => post({ kind: 'abort', id })
    stop.addEventListener('abort', onStop, { once: true })
    const { accessKeyId, secretAccessKey, sessionToken } = credentials
    const keys = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
    const result = await new Promise<AttemptResult>((resolve) => {
      running.set(id, resolve)
      thread ??= startThread()
      const what = {
        operation,
        body: body.buffer,
        starts,
        credentials: keys,
        signingAt,
        startedAt,
        timeoutMs,
      }
      post({ kind: 'submit', id, transport, ...what }, [body.buffer])
    })
    stop.removeEventListener('abort', onStop)
    return result
  }

  function startThread(): Worker {
    const started = new Worker(threadFile, {
      name: 'sender',
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: heapMib },
    })
    // An idle thread must not keep the process alive; the caller of a running attempt does.
    started.unref()
    started.on('message', receive)
    started.on('error', (error) => threadLost(started, messageOf(error)))
    started.on('exit', (code) => threadLost(started, `it ended with ${code}`))
    for (const [transport, options] of transports)
      started.postMessage({ kind: 'open', transport, options, ledger } satisfies ThreadRequest, [])
    return started
  }

  function post(request: ThreadRequest, transferred: ArrayBuffer[] = []): void {
    thread?.postMessage(request, transferred)
  }

  function receive(reply: ThreadReply): void {
    if (reply.kind === 'closed') {
      closing.get(reply.transport)?.()
      closing.delete(reply.transport)
      return
    }
    const { kind: _, id, ...result } = reply
    const resolve = running.get(id)
    running.delete(id)
    resolve?.(result)
  }

  function threadLost(lost: Worker, why: string): void {
    if (thread !== lost) return
    threadsLost += 1
    const nowMs = performance.now()
    lostAtMs = [...lostAtMs.filter((atMs) => atMs > nowMs - hourMs).slice(-99), nowMs]
    emit({ kind: 'sender_thread_lost', why, batches: running.size, losses: lostAtMs.length })
    const message = 'the sender thread was lost before the answer came'
    threadEnded(lost, { kind: 'interrupted', message })
  }

  /** What became of its requests is unknown. */
  function threadEnded(ended: Worker, outcome: AttemptResult['outcome']): void {
    if (thread !== ended) return
    thread = null
    const resolvers = [...running.values()]
    running.clear()
    for (const resolve of resolvers) resolve({ ...notSent, outcome, written: true })
    for (const resolve of closing.values()) resolve()
    closing.clear()
  }
}
