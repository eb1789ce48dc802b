// sender-worker.ts: a thread of its own for what leaves the house: hashing, signing, sending, reading the answer. One for
// all providers, started with the first submission. What is decided is decided here, in the main thread.
//
//   batch content --> [slot: shared memory] --> hash, sign, POST, read the answer --> Outcome, entries of the ledger
//
// At full load those steps cost a quarter of what the road costs; the main thread, which maps and spools, is the one
// that must not wait. A slot is a piece of shared memory that holds one body: written here, read there, used
// again for the next batch, so that nothing is allocated or copied between the threads. While an attempt runs
// its slot belongs to the thread. After an attempt that ended in anything but an answer the slot is thrown away: a
// connection that is being torn down may still hold its bytes.
//
// Bound: as many slots as submissions at once, each as large as the largest body it has held.
//
// What can go wrong: the thread dies (out of memory, a defect). Everything under way ends as unreachable, which
// holds the batches, and the next submission starts another thread.

import { Worker } from 'node:worker_threads'
import { assertNever } from '../../std/assert.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchContent, BatchOperation } from '../../spool/spool.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Credentials } from '../credentials/credentials.ts'
import type { SubmissionResult, TransportOptions } from './submit.ts'

/** To the thread. */
export type ThreadRequest =
  | { kind: 'open'; route: number; options: TransportOptions; ledger: boolean }
  | {
      kind: 'submit'
      id: number
      route: number
      credentials: Credentials
      signingAt: EpochMs
      startedAt: EpochMs
      turn: BatchOperation
      body: SharedArrayBuffer
      bytes: number
      /** Where each payload starts in the body. */
      starts: Uint32Array
    }
  | { kind: 'abort'; id: number }
  | { kind: 'close'; route: number }

/** From the thread. */
export type ThreadReply = ({ kind: 'ended'; id: number } & AttemptResult) | { kind: 'closed'; route: number }

/** What came back. */
export type AttemptResult = SubmissionResult & {
  /** The payloads as the ledger knows them (receipts/receipt-entries.ts); null where nothing can be settled, or nobody keeps a ledger. */
  entries: Uint8Array<ArrayBuffer> | null
}

export type Attempt = {
  turn: BatchOperation
  content: Pick<BatchContent, 'bodyBytes' | 'writeBody'>
  credentials: Credentials
  signingAt: EpochMs
  startedAt: EpochMs
  stop: AbortSignal
}

/** The way to one provider. */
export type Transport = {
  /** Never rejects: every way to fail is an Outcome. */
  submit(attempt: Attempt): Promise<AttemptResult>
  /** Ends its connections; running submissions end with them. */
  close(): Promise<void>
}

export type SenderWorker = {
  open(route: TransportOptions): Transport
  /** Ends the thread. */
  close(): Promise<void>
}

type Slot = { memory: SharedArrayBuffer; bytes: Buffer }

/** Slots grow in steps, so that a body that is a little larger needs no new one. */
const slotStepBytes = 64 * 1024

/** Compiled, the thread's file stands beside this one as JavaScript. */
const threadFile = new URL(`./sender-thread${import.meta.url.slice(-3)}`, import.meta.url)

/** `ledger`: what was sent is told payload by payload. */
export function createSenderWorker({ ledger = false }: { ledger?: boolean } = {}): SenderWorker {
  const routes = new Map<number, TransportOptions>()
  const waiting = new Map<number, (returned: AttemptResult) => void>()
  const closing = new Map<number, () => void>()
  const free: Slot[] = []
  let thread: Worker | null = null
  let lastRoute = 0
  let lastId = 0

  return { open, close }

  function open(options: TransportOptions): Transport {
    const route = (lastRoute += 1)
    routes.set(route, options)
    if (thread !== null) ask({ kind: 'open', route, options, ledger })
    return {
      submit: (attempt) => submit(route, attempt),
      close: () =>
        new Promise((resolve) => {
          routes.delete(route)
          if (thread === null) {
            resolve()
            return
          }
          closing.set(route, resolve)
          ask({ kind: 'close', route })
        }),
    }
  }

  async function submit(route: number, attempt: Attempt): Promise<AttemptResult> {
    const { turn, content, credentials, signingAt, startedAt, stop } = attempt
    if (stop.aborted) return { outcome: { kind: 'aborted' }, date: null, entries: null }
    const id = (lastId += 1)
    const slot = takeSlot(content.bodyBytes)
    const starts = content.writeBody(slot.bytes)
    const { bodyBytes: bytes } = content
    const onStop = () => ask({ kind: 'abort', id })
    stop.addEventListener('abort', onStop, { once: true })
    const returned = await new Promise<AttemptResult>((resolve) => {
      waiting.set(id, resolve)
      ensureThread()
      const { accessKeyId, secretAccessKey, sessionToken } = credentials
      const keys = { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
      const body = slot.memory
      ask({ kind: 'submit', id, route, credentials: keys, signingAt, startedAt, turn, body, bytes, starts })
    })
    stop.removeEventListener('abort', onStop)
    if (wasAnswered(returned.outcome)) free.push(slot)
    return returned
  }

  /** The last one that was given back is the one whose memory is warm. */
  function takeSlot(bytes: number): Slot {
    const slot = free.pop()
    if (slot !== undefined && slot.bytes.length >= bytes) return slot
    const memory = new SharedArrayBuffer(Math.ceil(bytes / slotStepBytes) * slotStepBytes)
    return { memory, bytes: Buffer.from(memory) }
  }

  function ensureThread(): void {
    if (thread !== null) return
    const started = new Worker(threadFile, {
      name: 'sender',
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 48 },
    })
    thread = started
    // Whoever waits for an answer keeps the process alive by other means; an idle thread must not.
    started.unref()
    started.on('message', (told: ThreadReply) => hear(told))
    started.on('error', (error) => lose(started, messageOf(error)))
    started.on('exit', (code) => lose(started, `the thread ended with ${code}`))
    for (const [route, options] of routes) ask({ kind: 'open', route, options, ledger })
  }

  function ask(asked: ThreadRequest): void {
    // Nothing is handed over: the second list is for what would be.
    thread?.postMessage(asked, [])
  }

  function hear(told: ThreadReply): void {
    switch (told.kind) {
      case 'ended': {
        const { id, outcome, date, entries } = told
        const resolve = waiting.get(id)
        waiting.delete(id)
        resolve?.({ outcome, date, entries })
        return
      }
      case 'closed':
        closing.get(told.route)?.()
        closing.delete(told.route)
        return
      default:
        assertNever(told)
    }
  }

  function lose(lost: Worker, why: string): void {
    if (thread !== lost) return
    thread = null
    const message = `the sending thread was lost (${why})`
    for (const resolve of waiting.values())
      resolve({ outcome: { kind: 'unreachable', reason: 'other', message }, date: null, entries: null })
    waiting.clear()
    for (const resolve of closing.values()) resolve()
    closing.clear()
  }

  async function close(): Promise<void> {
    const ending = thread
    if (ending === null) return
    lose(ending, 'it was closed')
    await ending.terminate()
  }
}

function wasAnswered({ kind }: Outcome): boolean {
  return kind !== 'unreachable' && kind !== 'aborted'
}
