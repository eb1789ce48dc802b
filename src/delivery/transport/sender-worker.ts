// sender-worker.ts: a thread for what is sent: hashing, signing, HTTP, reading the answer. One for all
// providers, started with the first submission. All decisions are made in the main thread.
//
//   batch content --> [slot: shared memory] --> hash, sign, POST, read the answer --> Outcome, ledger entries
//
// At full load these steps cost a quarter of the whole pipeline; the main thread, which maps and spools, must
// not wait for them. A slot (body-slots.ts) belongs to the thread until the thread returns it: with the answer,
// or later, when the connection that still holds its bytes is closed.
//
// What can go wrong: the thread dies (out of memory, a defect). All running attempts end as unreachable,
// which holds the batches, and the next submission starts another thread.

import { Worker } from 'node:worker_threads'
import { crc32 } from 'node:zlib'
import { assertNever } from '../../std/assert.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import type { Credentials } from '../credentials/access-keys.ts'
import { createBodySlots } from './body-slots.ts'
import type { BodySlot } from './body-slots.ts'
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
      body: SharedArrayBuffer
      bytes: number
      /** CRC-32 of the body. The thread sends only what has it. */
      sum: number
      /** Where each payload starts in the body. */
      starts: Uint32Array
    }
  | { kind: 'abort'; id: number }
  | { kind: 'close'; transport: number }

/** From the thread. */
export type ThreadReply =
  | ({ kind: 'ended'; id: number; slotFree: boolean } & AttemptResult)
  /** After `ended` without `slotFree`. */
  | { kind: 'slot_freed'; id: number }
  | { kind: 'closed'; transport: number }

export type SenderWorker = {
  open(options: TransportOptions): Transport
  /** Ends the thread. */
  close(): Promise<void>
}

/** In dist the file of the thread is beside this one, as JavaScript. */
const threadFile = new URL(`./sender-thread${import.meta.url.slice(-3)}`, import.meta.url)

/** `ledger`: each answer comes with the entries of the payloads. */
export function createSenderWorker({ ledger = false }: { ledger?: boolean } = {}): SenderWorker {
  const opened = new Map<number, TransportOptions>()
  const submitting = new Map<number, (result: AttemptResult) => void>()
  const closing = new Map<number, () => void>()
  const slots = createBodySlots()
  /** Of the attempts whose slot the thread has not returned. */
  const slotsInUse = new Map<number, BodySlot>()
  let thread: Worker | null = null
  let lastTransport = 0
  let lastId = 0

  return { open, close }

  function open(options: TransportOptions): Transport {
    const transport = (lastTransport += 1)
    opened.set(transport, options)
    if (thread !== null) post({ kind: 'open', transport, options, ledger })
    return {
      submit: (attempt) => submit(transport, attempt),
      close: () =>
        new Promise((resolve) => {
          opened.delete(transport)
          if (thread === null) {
            resolve()
            return
          }
          closing.set(transport, resolve)
          post({ kind: 'close', transport })
        }),
    }
  }

  async function submit(transport: number, attempt: Attempt): Promise<AttemptResult> {
    const { operation, content, signingAt, startedAt, stop } = attempt
    if (stop.aborted) return { ...notSent, outcome: { kind: 'aborted' } }
    const id = (lastId += 1)
    const { bodyBytes: bytes } = content
    const slot = slots.take(bytes)
    const starts = content.writeBody(slot.bytes)
    const sum = crc32(slot.bytes.subarray(0, bytes))
    slotsInUse.set(id, slot)
    const onStop = () => post({ kind: 'abort', id })
    stop.addEventListener('abort', onStop, { once: true })
    const result = await new Promise<AttemptResult>((resolve) => {
      submitting.set(id, resolve)
      ensureThread()
      const { accessKeyId, secretAccessKey, sessionToken } = attempt.credentials
      const credentials = {
        accessKeyId,
        secretAccessKey,
        ...(sessionToken === undefined ? {} : { sessionToken }),
      }
      const timeoutMs = attempt.timeoutMs ?? opened.get(transport)?.timeoutMs ?? 0
      const times = { signingAt, startedAt, timeoutMs }
      const body = { body: slot.memory, bytes, sum, starts }
      post({ kind: 'submit', id, transport, credentials, ...times, operation, ...body })
    })
    stop.removeEventListener('abort', onStop)
    return result
  }

  function slotFreed(id: number): void {
    const slot = slotsInUse.get(id)
    slotsInUse.delete(id)
    if (slot !== undefined) slots.giveBack(slot)
  }

  function ensureThread(): void {
    if (thread !== null) return
    const started = new Worker(threadFile, {
      name: 'sender',
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 48 },
    })
    thread = started
    // An idle thread must not keep the process alive; the caller of a running attempt does.
    started.unref()
    started.on('message', (reply: ThreadReply) => receive(reply))
    started.on('error', (error) => threadLost(started, messageOf(error)))
    started.on('exit', (code) => threadLost(started, `it ended with ${code}`))
    for (const [transport, options] of opened) post({ kind: 'open', transport, options, ledger })
  }

  function post(request: ThreadRequest): void {
    // The list names objects to transfer; there are none.
    thread?.postMessage(request, [])
  }

  function receive(reply: ThreadReply): void {
    switch (reply.kind) {
      case 'ended': {
        const { kind: _kind, id, slotFree, ...result } = reply
        const resolve = submitting.get(id)
        submitting.delete(id)
        if (slotFree) slotFreed(id)
        resolve?.(result)
        return
      }
      case 'slot_freed':
        slotFreed(reply.id)
        return
      case 'closed':
        closing.get(reply.transport)?.()
        closing.delete(reply.transport)
        return
      default:
        assertNever(reply)
    }
  }

  function threadLost(lost: Worker, why: string): void {
    if (thread !== lost) return
    thread = null
    const message = `the sender thread was lost (${why})`
    for (const resolve of submitting.values())
      resolve({ ...notSent, outcome: { kind: 'unreachable', reason: 'other', message }, written: true })
    slotsInUse.clear()
    submitting.clear()
    for (const resolve of closing.values()) resolve()
    closing.clear()
  }

  async function close(): Promise<void> {
    const ending = thread
    if (ending === null) return
    threadLost(ending, 'it was closed')
    await ending.terminate()
  }
}

const notSent: Omit<AttemptResult, 'outcome'> = { date: null, written: false, bytesSent: 0, entries: null }
