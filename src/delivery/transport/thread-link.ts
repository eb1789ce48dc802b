// thread-link.ts: one sender thread as the main thread sees it: its start, its messages, its end. It is
// started with the first submission and again after a loss.
//
// A thread that is lost ends its attempts as `interrupted`: the outcome of their requests is unknown.

import { Worker } from 'node:worker_threads'
import { crc32 } from 'node:zlib'
import { assertNever } from '../../std/assert.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchId } from '../../domain/ids.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import type { Credentials } from '../credentials/access-keys.ts'
import type { BodySlot, BodySlots } from './body-slots.ts'
import type { Attempt, AttemptResult, TransportOptions } from './transport.ts'

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

export type ThreadLink = {
  /** Null where the thread was lost: then `lost` was called before. */
  submit(transport: number, attempt: Attempt): Promise<AttemptResult | null>
  opened(transport: number): void
  /** Ends the connections of a transport. */
  closed(transport: number): Promise<void>
  /** Ends the thread. */
  end(): Promise<void>
}

type Deps = {
  slots: BodySlots
  /** The open transports; a new thread gets all of them. */
  transports: ReadonlyMap<number, TransportOptions>
  /** The thread was lost with attempts of these batches. */
  lost: (why: string, batchIds: readonly BatchId[]) => void
}

type Running = { batchId: BatchId; resolve: (result: AttemptResult | null) => void }

/** In dist the file of the thread is beside this one, as JavaScript. */
const threadFile = new URL(`./sender-thread${import.meta.url.slice(-3)}`, import.meta.url)

export function createThreadLink(
  { slots, transports, lost }: Deps,
  { name, ledger }: { name: string; ledger: boolean },
): ThreadLink {
  const running = new Map<number, Running>()
  /** Of the attempts whose slot the thread has not returned. */
  const slotsInUse = new Map<number, BodySlot>()
  const closing = new Map<number, () => void>()
  let thread: Worker | null = null
  let lastId = 0

  return { submit, opened: open, closed, end }

  function open(transport: number): void {
    const options = transports.get(transport)
    if (thread !== null && options !== undefined) post({ kind: 'open', transport, options, ledger })
  }

  function closed(transport: number): Promise<void> {
    return new Promise((resolve) => {
      if (thread === null) {
        resolve()
        return
      }
      closing.set(transport, resolve)
      post({ kind: 'close', transport })
    })
  }

  async function submit(transport: number, attempt: Attempt): Promise<AttemptResult | null> {
    const { batchId, operation, content, signingAt, startedAt, stop } = attempt
    const id = (lastId += 1)
    const { bodyBytes: bytes } = content
    const slot = slots.take(bytes)
    const starts = content.writeBody(slot.bytes)
    const sum = crc32(slot.bytes.subarray(0, bytes))
    slotsInUse.set(id, slot)
    const onStop = () => post({ kind: 'abort', id })
    stop.addEventListener('abort', onStop, { once: true })
    const result = await new Promise<AttemptResult | null>((resolve) => {
      running.set(id, { batchId, resolve })
      ensureThread()
      const { accessKeyId, secretAccessKey, sessionToken } = attempt.credentials
      const credentials = {
        accessKeyId,
        secretAccessKey,
        ...(sessionToken === undefined ? {} : { sessionToken }),
      }
      const timeoutMs = attempt.timeoutMs ?? transports.get(transport)?.timeoutMs ?? 0
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
      name,
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 48 },
    })
    thread = started
    // An idle thread must not keep the process alive; the caller of a running attempt does.
    started.unref()
    started.on('message', (reply: ThreadReply) => receive(reply))
    started.on('error', (error) => threadEnded(started, messageOf(error)))
    started.on('exit', (code) => threadEnded(started, `it ended with ${code}`))
    for (const transport of transports.keys()) open(transport)
  }

  function post(request: ThreadRequest): void {
    // The list names objects to transfer; there are none.
    thread?.postMessage(request, [])
  }

  function receive(reply: ThreadReply): void {
    switch (reply.kind) {
      case 'ended': {
        const { kind: _kind, id, slotFree, ...result } = reply
        const attempt = running.get(id)
        running.delete(id)
        if (slotFree) slotFreed(id)
        // Something else writes to this memory: it is not used again.
        if (result.outcome.kind === 'body_changed') slotsInUse.delete(id)
        attempt?.resolve(result)
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

  /** `why` is null where it was ended on purpose. */
  function threadEnded(ended: Worker, why: string | null): void {
    if (thread !== ended) return
    thread = null
    const attempts = [...running.values()]
    running.clear()
    // Not used again: nothing says when the connections of the thread are closed.
    slotsInUse.clear()
    if (why !== null)
      lost(
        why,
        attempts.map(({ batchId }) => batchId),
      )
    for (const { resolve } of attempts) resolve(null)
    for (const resolve of closing.values()) resolve()
    closing.clear()
  }

  async function end(): Promise<void> {
    const ending = thread
    if (ending === null) return
    threadEnded(ending, null)
    await ending.terminate()
  }
}
