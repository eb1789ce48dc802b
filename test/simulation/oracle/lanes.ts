// lanes.ts: fresh payloads go first. What is late on arrival, what an operator requeued, what failed before, and a
// backlog that became backfill stand in lanes of their own, so no batch has them together with fresh payloads.

import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { Fleet, SentMessage } from '../world/fleet.ts'
import type { Service, Submission } from '../world/service.ts'
import type { OperatorAct } from './deliveries.ts'
import { futureMaxMs } from './messages.ts'
import type { LostPositions } from './lost-positions.ts'
import { nameOf, type Payloads } from './payloads.ts'

/** What the daemon said of its lanes. */
export type LaneEvents = {
  observe(event: GatewayEvent, atMs: number): void
  /** Monotonic. */
  starts: readonly number[]
  rotations: readonly { provider: string; atMs: number }[]
}

type Known = {
  fleet: Fleet
  payloads: Payloads
  positions: Pick<LostPositions, 'mayLack'>
  events: LaneEvents
  acts: readonly OperatorAct[]
  /** It came back from a message engine, to the live lane. */
  isParked: (payloadId: string) => boolean
  /** Through an engine: without a time of the device, that counts at which the engine got the message. */
  isThroughEngine: boolean
  /** A payload that is older on arrival is late: `delivery.backfill.after`. */
  afterMs: number
  /** True time where monotonic time is 0. */
  epochMs: number
}

/** On its way to the gateway, and from there to the service. */
const underWayMs = 5000
/** A message that was sent so long after the rotation is in a group behind it. */
const groupMs = 2000

export function createLaneEvents(): LaneEvents {
  const starts: number[] = []
  const rotations: { provider: string; atMs: number }[] = []
  return {
    starts,
    rotations,
    observe(event, atMs) {
      if (event.kind === 'gateway_starting') starts.push(atMs)
      if (event.kind === 'lane_rotated') rotations.push({ provider: event.provider, atMs })
    },
  }
}

export function wrongLanes(services: readonly Service[], known: Known): string[] {
  const { fleet, payloads, positions, events, acts, isParked, isThroughEngine, afterMs, epochMs } = known
  // Whether a payload is late is a matter of the clock.
  if (fleet.clockSetMs.length > 0) return []
  const messages = messageOfEach()
  const requeues = acts.filter(({ kind }) => kind === 'requeue')
  return services.flatMap((service) => wrongOf(service))

  /** By payloadId. Where several may be meant, none. Collected values wait before they are in a lane. */
  function messageOfEach(): Map<string, SentMessage> {
    const of = new Map<string, SentMessage>()
    for (const message of fleet.messages) {
      const { kind } = message.device
      if (message.mayBeTwice || kind === 'parts' || kind === 'parkedUntimed') continue
      if (isThroughEngine && kind === 'untimed') continue
      // What it lacked is in the live lane when it was mapped again.
      if (positions.mayLack(message)) continue
      // It is in a lane when a person has released it.
      if (message.device.clockMs > futureMaxMs) continue
      for (const record of message.records)
        for (const { payload } of payloads.of(record)) of.set(payload.payloadId, message)
    }
    return of
  }

  function wrongOf({ provider, journal }: Service): string[] {
    const wrong: string[] = []
    const rotations = events.rotations.filter((one) => one.provider === provider)
    const seen = new Map<string, { first: string | null; batchId: string | null; hasFailed: boolean }>()
    for (const submission of journal) {
      const { payloadIds, batchId, results } = submission
      if (batchId !== null) wrong.push(...ofBatch(submission))
      for (const id of payloadIds) {
        const result = results?.get(id)
        const hasFailed = result !== undefined && result !== 'accepted'
        const { first = batchId, hasFailed: before = false } = seen.get(id) ?? {}
        seen.set(id, { first, batchId, hasFailed: hasFailed || before })
      }
    }
    return wrong

    function ofBatch({ batchId, payloadIds, atMs }: Submission): string[] {
      const isNew = (id: string) => !seen.has(id) || seen.get(id)?.first === batchId
      const fresh = payloadIds.flatMap((id) => {
        const message = messages.get(id)
        return message !== undefined && isNew(id) && isFresh(message, id, atMs) ? [message] : []
      })
      // In the same process, and nothing became backfill since: it came in the live lane.
      const startMs = events.starts.findLast((ms) => ms <= atMs) ?? 0
      const live = fresh.filter(
        ({ sentMs: [sent = 0] }) =>
          sent >= startMs && !rotations.some((one) => one.atMs >= sent && one.atMs <= atMs),
      )
      const [one] = live
      if (one === undefined) return []
      const sentMs = Math.max(...live.map(({ sentMs: [sent = 0] }) => sent))
      const behind = payloadIds.flatMap((id) => whyBehind(id, { batchId, atMs, sentMs }) ?? [])
      return behind.length === 0
        ? []
        : [`batch ${batchId} has ${nameOf(one)}, which is fresh, together with ${behind[0]}`]
    }

    type Now = { batchId: string | null; atMs: number; sentMs: number }

    /** Why the payload is in a lane that goes behind the live one; null where it may be in the live lane. */
    function whyBehind(id: string, { batchId, atMs, sentMs }: Now): string | null {
      if (isParked(id)) return null
      const before = seen.get(id)
      if (before?.hasFailed === true && before.batchId !== batchId) return `${id}, which failed before`
      if (requeues.some(({ ids, atMs: since }) => since < atMs && ids.includes(id)))
        return `${id}, which was a dead letter`
      const message = messages.get(id)
      if (message === undefined || before !== undefined) return null
      if (isLate(message)) return `${nameOf(message)}, which was late on arrival`
      const { ackedMs } = message
      const since = rotations.find(
        (one) => ackedMs !== null && ackedMs < one.atMs && one.atMs + groupMs < sentMs,
      )
      return since === undefined
        ? null
        : `${nameOf(message)}, which became backfill at ${(since.atMs / 1000).toFixed(3)}`
    }
  }

  function isFresh(message: SentMessage, id: string, atMs: number): boolean {
    const ageMs = epochMs + atMs - timeOf(message, message.sentMs[0] ?? atMs)
    return ageMs < afterMs - underWayMs && !requeues.some(({ ids }) => ids.includes(id))
  }

  function isLate(message: SentMessage): boolean {
    const [sentMs = 0] = message.sentMs
    return epochMs + sentMs - timeOf(message, sentMs) > afterMs + underWayMs
  }

  /** Without one of the device, that of the arrival counts. */
  function timeOf({ records }: SentMessage, sentMs: number): number {
    return Math.min(...records.map(({ ts }) => ts ?? epochMs + sentMs))
  }
}
