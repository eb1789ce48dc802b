// messages.ts: what must have become of each message: accepted, a dead letter, in quarantine.

import type { ExpectedRecord } from '../world/contents.ts'
import { poisons } from '../world/contents.ts'
import type { Flips } from '../acts/flip-acts.ts'
import type { Fleet, SentMessage } from '../world/fleet.ts'
import type { PayloadRecord } from '../world/service.ts'
import type { Judged } from './deliveries.ts'
import type { LostPositions } from './lost-positions.ts'
import { keyOf, keysOf, nameOf, type Payloads } from './payloads.ts'

/** Beyond it a device time is kept in quarantine; `clocks.future_max`. */
export const futureMaxMs = 300_000

export type Became = {
  /** Poison is a dead letter of the mapping; several of them where nothing tells copies apart. */
  unmapped: { min: number; max: number }
  quarantined: { min: number; max: number }
  wrong: string[]
}

export function becameOf(
  fleet: Fleet,
  { payloads, positions, flips }: { payloads: Payloads; positions: LostPositions; flips: Flips },
  { isDead }: Pick<Judged, 'isDead'>,
): Became {
  const became: Became = { unmapped: { min: 0, max: 0 }, quarantined: { min: 0, max: 0 }, wrong: [] }
  const alike = new Map<string, SentMessage[]>()
  const flipped = new Set(flips.payloads.flatMap(keysOf))
  for (const message of fleet.messages) {
    const { device, qos, ackedMs, poison, sentMs, isForgotten } = message
    if (qos > 0 && ackedMs === null && !isForgotten)
      became.wrong.push(`${nameOf(message)} was never acknowledged`)
    // Read without its position and with it, a message has two names.
    const mayBeTwice = message.mayBeTwice || positions.mayLack(message)
    const copies = mayBeTwice ? sentMs.length : Math.min(1, sentMs.length)
    const isSure = ackedMs !== null
    if (poison !== null) {
      if (!poisons[poison].isDead) continue
      became.unmapped.min += isSure ? 1 : 0
      became.unmapped.max += copies
    }
    // Of a message of several vehicles, the good ones continue.
    if (message.records.length === 0 && poison !== null) continue
    if (device.clockMs > futureMaxMs) {
      // A wrong clock lets it pass.
      const hasPassed = message.records.some(
        (record) => acceptedOf(payloads, record) > 0 || payloads.of(record).some(isOfDead),
      )
      if (!hasPassed && isSure) became.quarantined.min += 1
      became.quarantined.max += copies
      continue
    }
    if (device.kind === 'parkedUntimed') {
      const list = alike.get(device.id)
      if (list === undefined) alike.set(device.id, [message])
      else list.push(message)
      continue
    }
    for (const record of message.records) ofRecord(record, message, copies)
  }
  for (const [id, messages] of alike) ofAlike(id, messages)
  return became

  function ofRecord(record: ExpectedRecord, message: SentMessage, copies: number): void {
    const { device, qos, ackedMs } = message
    const isSure = ackedMs !== null
    const of = payloads.of(record)
    const accepted = acceptedOf(payloads, record)
    const hasPosition = of.some((one) => one.payload.gps !== undefined && isThere(one))
    if (isSure && !hasPosition && positions.isKept(message))
      became.wrong.push(`the position of ${nameOf(message)} was kept, and did not come later`)
    if (device.isDoomed && accepted > 0) became.wrong.push(`${nameOf(message)} is refused, and was accepted`)
    if (accepted === 0 && of.some(isOfDead)) return
    // What was judged by a wrong clock, before a restart, stays in quarantine for a person.
    if (fleet.clockSetMs.length > 0) {
      became.quarantined.max += copies
      if (isSure && accepted === 0) {
        became.quarantined.min += qos > 0 ? 1 / message.records.length : 0
        return
      }
    }
    // Counted as damaged: oracle.ts.
    if (accepted === 0 && flipped.has(keyOf(record))) return
    if (isSure && qos > 0 && accepted === 0)
      became.wrong.push(`${nameOf(message)} was acknowledged and is lost`)
    if (device.kind === 'parts') return ofParts(record, message)
    if (accepted > copies) became.wrong.push(`${nameOf(message)} became ${accepted} payloads`)
  }

  /** Collected values: none is missing. */
  function ofParts(record: ExpectedRecord, message: SentMessage): void {
    const group = fleet.messages.filter(
      ({ device, number }) => device === message.device && number === message.number,
    )
    if (group.some(({ ackedMs }) => ackedMs === null)) return
    const types = payloads
      .of(record)
      .filter(isThere)
      .flatMap(({ payload }) => (payload.signals ?? []).map(({ type }) => type))
    const isTwice = new Set(types).size < types.length
    if (isTwice && !group.some(({ mayBeTwice }) => mayBeTwice))
      became.wrong.push(`${nameOf(message)} was accepted more than once`)
    const missing = Object.keys(record.values).filter((type) => !types.includes(type))
    if (missing.length > 0)
      became.wrong.push(`${nameOf(message)} was acknowledged, and ${missing.join()} is lost`)
  }

  /** Equal ones without a time: only their number tells. */
  function ofAlike(id: string, messages: readonly SentMessage[]): void {
    const of = payloads.of(messages[0]!.records[0]!)
    const accepted = of.filter((one) => one.accepted.length > 0).length
    const dead = of.filter((one) => one.accepted.length === 0 && isOfDead(one)).length
    const sure = messages.filter(({ qos, ackedMs }) => qos > 0 && ackedMs !== null).length
    const most = messages.reduce((sum, { sentMs, mayBeTwice }) => sum + (mayBeTwice ? sentMs.length : 1), 0)
    if (accepted > 0 && messages[0]!.device.isDoomed) became.wrong.push(`${id} is refused, and was accepted`)
    if (accepted + dead < sure)
      became.wrong.push(`${id}: ${sure} messages were acknowledged, ${accepted} accepted, ${dead} are dead`)
    if (accepted + dead > most)
      became.wrong.push(`${id}: ${most} messages were sent, ${accepted} accepted, ${dead} are dead`)
  }

  function isThere(one: PayloadRecord): boolean {
    return one.accepted.length > 0 || isOfDead(one)
  }

  function isOfDead({ payload }: PayloadRecord): boolean {
    return isDead(payload.payloadId)
  }
}

/**
 * Payloads, each once; whether one may be accepted more often, deliveries.ts says. One with the position alone and one
 * with the rest are one record.
 */
function acceptedOf(payloads: Payloads, record: ExpectedRecord): number {
  const accepted = payloads.of(record).filter((one) => one.accepted.length > 0)
  const count = (key: 'gps' | 'signals') =>
    accepted.filter(({ payload }) => payload[key] !== undefined).length
  return Math.max(count('gps'), count('signals'))
}
