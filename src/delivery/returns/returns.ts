// returns.ts: hands payloads over that wait for another try, and removes them, for custody `delivered`, which
// parks them at the server that their messages came from. Entry file of this folder.
//
// Promises
//   A payload is removed only after `hand` has resolved. A crash in between leaves it in both places; it is
//   then delivered twice, with one payloadId.
//   A batch that the service may have processed is never returned (invariant 12): its submissions were all
//   refused, or ended before their last byte. A batch that an earlier process sealed may have been sent.
//   Nothing is sealed or submitted of what is being returned.
//
// What waits for another try: refused batches that are held, and retry lanes. Of providers that are down also
// what was never submitted.
//
//   lane-returns.ts      the lanes of one provider: excludes them from sealing
//
// Each removal is counted, has an event, and a receipt for the ledger with the outcome `returned`.
// While payloads are handed over, their lane is not sealed: the scheduler skips it.
//
// Bound: `payloadsMax` of a call.

import { GatewayError } from '../../std/gateway-error.ts'
import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { LaneView, Spool } from '../../spool/spool.ts'
import type { BatchControl, Hand } from '../batch-operations/batch-operations.ts'
import type { BatchView } from '../types.ts'
import type { LaneReturns } from './lane-returns.ts'
import type { ReturnRequest, Returns } from './types.ts'

/** The batches and the lanes of one provider. */
export type ReturningPipeline = { batchControl: BatchControl; laneReturns: LaneReturns }

type Deps = { spool: Spool; clock: Clock; emit: Emit; pipelines: readonly ReturningPipeline[] }

/** Read at once. */
const runBytesMax = 4 * 1024 * 1024
const runPayloadsMax = 500

export function createReturns({ spool, clock, emit, pipelines }: Deps): Returns {
  return { returnWaiting }

  async function returnWaiting(request: ReturnRequest, hand: Hand, signal: AbortSignal): Promise<number> {
    const { payloadsMax } = request
    let returned = 0
    for (const pipeline of pipelines) {
      for (const { batchId } of waitingBatches(pipeline, request)) {
        if (returned >= payloadsMax || signal.aborted) return returned
        returned += await returnBatch(pipeline, batchId, hand)
      }
      for (const lane of waitingLanes(pipeline, request)) {
        if (returned >= payloadsMax || signal.aborted) return returned
        returned += await returnFrom(
          pipeline,
          lane,
          { ...request, payloadsMax: payloadsMax - returned },
          hand,
        )
      }
    }
    return returned
  }

  /** The oldest first. */
  function waitingBatches(
    { batchControl }: ReturningPipeline,
    { olderThanMs, providersDown }: ReturnRequest,
  ): BatchView[] {
    const isDown = providersDown.includes(batchControl.provider)
    const since = ({ held, sealedAt }: BatchView) => held?.since ?? sealedAt
    return (
      [...batchControl.views()]
        .filter(({ state, held, mayBeProcessed }) => {
          if (state === 'in flight' || mayBeProcessed) return false
          // A 409 says that the service knows the batch, whatever was sent from here.
          return held === null ? isDown : held.reason !== 'repeated'
        })
        // A time in the future: the clock was set back since.
        .filter((view) => Math.abs(clock.now() - since(view)) >= olderThanMs)
        .sort((one, other) => since(one) - since(other))
    )
  }

  /** Retry lanes, the oldest first; then the others, of a provider that is down. */
  function waitingLanes(
    { batchControl: { provider } }: ReturningPipeline,
    { providersDown }: ReturnRequest,
  ): LaneView[] {
    const isDown = providersDown.includes(provider)
    const isRetry = ({ role }: LaneView) => role.kind === 'retry'
    return spool
      .lanes()
      .filter((lane) => lane.provider === provider && lane.pending > 0 && (isDown || isRetry(lane)))
      .sort(
        (one, other) =>
          Number(isRetry(other)) - Number(isRetry(one)) || (one.oldestAt ?? 0) - (other.oldestAt ?? 0),
      )
  }

  async function returnBatch(
    { batchControl }: ReturningPipeline,
    batchId: BatchView['batchId'],
    hand: Hand,
  ): Promise<number> {
    try {
      return await batchControl.giveBack(batchId, hand)
    } catch (error) {
      // It was taken, settled or replaced since it was chosen.
      if (error instanceof GatewayError && (error.code === 'BATCH_BUSY' || error.code === 'BATCH_GONE'))
        return 0
      throw error
    }
  }

  async function returnFrom(
    { laneReturns }: ReturningPipeline,
    lane: LaneView,
    { olderThanMs, payloadsMax }: ReturnRequest,
    hand: Hand,
  ): Promise<number> {
    const include = laneReturns.exclude(lane.id)
    if (include === null) return 0
    try {
      const now = clock.now()
      // An arrival in the future: the clock was set back since.
      const committedUntil = (lane.oldestAt ?? 0) > now ? Infinity : now - olderThanMs
      const limits = { payloadsMax: Math.min(payloadsMax, runPayloadsMax), bytesMax: runBytesMax }
      const run = await spool.readPending(lane.id, { ...limits, committedUntil })
      if (run === null) return 0
      const { provider, payloads } = run
      await hand(run.contents.map((one) => ({ provider, ...one })))
      if (!(await spool.returnPending(run, laneReturns.receiptOf(run)))) return 0
      emit({ kind: 'payloads_returned', provider, payloads, reason: 'PARKED' })
      return payloads
    } finally {
      include()
    }
  }
}
