// partition-consumer.ts: takes the messages of one partition while this gateway owns it: epoch after epoch.
//
//   begin    asks for the state of the durable. What is outstanding there (of a member before, or of an epoch
//            before) is given back first, with a NAK for each, so that it comes again, before anything newer
//   epoch    pulls (partition-epoch.ts), until something is not as it must be
//   check    no message, no heartbeat: asks for the state again. If the durable delivered nothing that did
//            not come here, the epoch goes on and pulls anew; else it ends
//   end      what was taken is acknowledged, at most for `settleMs`; then it begins again
//
//   outstanding-messages.ts   which messages are outstanding at the durable
//   skipped-messages.ts       what the durable did not deliver, although the stream has it
//   partition-epoch.ts        pulls, order, acknowledgements; epoch-types.ts: its types
//   unacknowledged.ts         what was taken and is not acknowledged
//
// Without the first step an acknowledgement would cover messages that nobody stored: with `ack_policy: all`
// JetStream delivers newer messages while older ones are outstanding at a member that is dead, and one
// acknowledgement covers both. It waits for `ack_wait` before it delivers the older ones again; a NAK does
// not.

import { pause } from '../../../std/clock.ts'
import { apiCode, isPermanent, notFound } from '../nats-faults.ts'
import type { Connection, ConsumerInfo } from '../nats-connection.ts'
import { giveBack, nextMessage, placesBehind } from './outstanding-messages.ts'
import { openEpoch, type Epoch, type EpochDeps } from './partition-epoch.ts'

export type { Epoch }

export type PartitionState = 'waiting' | 'starting' | 'taking' | 'checking' | 'failing'

export type PartitionConsumer = {
  /** Takes messages over this connection until the signal aborts. */
  run(connection: Connection, signal: AbortSignal): Promise<void>
  /** Takes nothing more; what was taken is acknowledged. */
  halt(): void
  /** The same; resolves when what was taken is acknowledged, at the latest after `limitMs`. */
  settle(limitMs: number): Promise<void>
  epoch(): Epoch | null
  tick(): void
  view(): { state: PartitionState; outstanding: number }
}

type Deps = Omit<EpochDeps, 'nc' | 'next'> & {
  /** Something about the durable cannot be used: words; null: it can. */
  judge: (info: ConsumerInfo) => string | null
  /** The durable is not there; true: it was created now. */
  missing: (connection: Connection) => Promise<boolean>
  failed: (error: unknown) => void
  /** It takes messages. */
  works: () => void
}

type Options = {
  label: string
  stream: string
  durable: string
  filters: readonly string[]
  windowMax: number
}

const settleMs = 1000
/** Between two questions for the state of a durable that does not answer, or not as it must. */
const retryMs = 300
const refusedRetryMs = 3000
/** How long messages that are outstanding and not found are looked for. */
const incompleteMs = 15_000

export function createPartitionConsumer(deps: Deps, options: Options): PartitionConsumer {
  const { clock } = deps
  const { stream, durable } = options
  let epoch: Epoch | null = null
  /** It is about to lose the partition, or to stop: no epoch begins. */
  let isStopping = false
  let state: PartitionState = 'waiting'
  let incompleteSinceMs: number | null = null

  async function run(connection: Connection, signal: AbortSignal): Promise<void> {
    const onAbort = () => epoch?.end('ended')
    signal.addEventListener('abort', onAbort)
    try {
      while (!signal.aborted) await step(connection, signal)
    } finally {
      signal.removeEventListener('abort', onAbort)
      epoch?.end('ended')
      epoch = null
      isStopping = false
      state = 'waiting'
    }
  }

  async function step(connection: Connection, signal: AbortSignal): Promise<void> {
    if (isStopping) {
      await pause(clock, retryMs, signal)
      return
    }
    try {
      const info = await connection.jsm.consumers.info(stream, durable)
      if (signal.aborted) return
      if (deps.judge(info) !== null) return await fail(refusedRetryMs, signal)
      if (epoch !== null && goesOn(epoch, info)) epoch.resume()
      else {
        const opened = await begin(connection, info, signal)
        // Its end may have come meanwhile.
        if (opened === null || signal.aborted) return
      }
      state = 'taking'
      deps.works()
      const trouble = await epoch!.trouble()
      state = 'checking'
      if (trouble === 'not_stored') await pause(clock, refusedRetryMs, signal)
      // Nothing that goes wrong at once, again and again, keeps the process busy.
      else await pause(clock, retryMs / 3, signal)
    } catch (error) {
      if (signal.aborted) return
      if (apiCode(error) === notFound.consumer && (await deps.missing(connection).catch(() => false))) return
      deps.failed(error)
      await fail(isPermanent(error) ? refusedRetryMs : retryMs, signal)
    }
  }

  async function fail(forMs: number, signal: AbortSignal): Promise<void> {
    state = 'failing'
    await pause(clock, forMs, signal)
  }

  /** Null: it must look again. */
  async function begin(
    connection: Connection,
    info: ConsumerInfo,
    signal: AbortSignal,
  ): Promise<Epoch | null> {
    if (epoch !== null) await endEpoch(epoch)
    state = 'starting'
    const now = epoch === null ? info : await connection.jsm.consumers.info(stream, durable)
    epoch = null
    const count = now.num_ack_pending
    const pending = await placesBehind(connection, options, { behind: now.ack_floor.stream_seq, count })
    if (signal.aborted || isStopping) return null
    if (isIncomplete(pending.length, count)) {
      await pause(clock, retryMs, signal)
      return null
    }
    await giveBack(connection, options, pending, now)
    if (signal.aborted || isStopping) return null
    epoch = open(connection, now, pending)
    return epoch
  }

  /**
   * A node that has just become the leader of the stream may not have all messages yet. One that is
   * outstanding and not found would be acknowledged with those behind it. Messages that were deleted from
   * the stream are never found: after some time that is no reason to wait.
   */
  function isIncomplete(found: number, count: number): boolean {
    const now = clock.monotonic()
    incompleteSinceMs ??= now
    const isOver = found >= count || now - incompleteSinceMs >= incompleteMs
    if (isOver) incompleteSinceMs = null
    return !isOver
  }

  function outstanding(): number {
    return epoch === null ? 0 : epoch.partition.taken - epoch.partition.acked
  }

  function open(connection: Connection, info: ConsumerInfo, pending: readonly number[]): Epoch {
    return openEpoch(
      { ...deps, nc: connection.nc, next: (behind) => nextMessage(connection, options, behind) },
      {
        ...options,
        windowMax: options.windowMax,
        ackWaitMs: (info.config.ack_wait ?? 30e9) / 1_000_000,
        consumerSeq: info.delivered.consumer_seq,
        ackFloor: info.ack_floor.stream_seq,
        pending,
      },
    )
  }

  /**
   * All that the durable delivered came to this epoch. What is outstanding and did not come here makes a
   * difference even where the numbers of the deliveries are the same (outstanding-messages.ts).
   */
  function goesOn(one: Epoch, { delivered, num_ack_pending }: ConsumerInfo): boolean {
    return (
      !one.isHalted() &&
      num_ack_pending <= one.outstanding() &&
      delivered.consumer_seq === one.last.consumerSeq &&
      delivered.stream_seq >= one.last.streamSeq
    )
  }

  async function endEpoch(one: Epoch): Promise<void> {
    await one.settle(settleMs)
    one.end('ended')
  }

  return {
    run,
    halt() {
      isStopping = true
      epoch?.halt('ended')
    },
    async settle(limitMs) {
      isStopping = true
      await epoch?.settle(limitMs)
    },
    epoch: () => epoch,
    tick: () => epoch?.tick(),
    view: () => ({ state, outstanding: outstanding() }),
  }
}
