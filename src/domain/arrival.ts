// arrival.ts: when a message arrived, in a form that can be corrected once our clock is known to be wrong.
//
//   true time of the arrival = monotonic time of the arrival + (true time - monotonic time, as known now)
//
// The monotonic clock starts with the machine and is never set, so the sum is right for every message of the
// same boot, whatever the wall clock showed then. Messages of another boot keep the time that was known when
// they arrived.

import type { EpochMs } from '../std/clock.ts'
import type { Arrival, Envelope, Message } from './message.ts'

/** Who says that our time is right; see app/our-time.ts. */
export type KnownBy = 'kernel' | 'config' | 'devices' | 'service'

/** `by` and `offsetMs` (true time minus the wall clock) are null while our time is unknown. */
export type TimeView = {
  by: KnownBy | null
  offsetMs: number | null
  /** The clock of this machine counts as right, and the service says otherwise. */
  isDisputed: boolean
}

/** Our time as far as it is known. Each function is cheap enough for every message. */
export type OurTime = {
  /** The wall clock, corrected where it is known to be wrong by a minute or more. */
  now(this: void): EpochMs
  /** True time minus now(); null while our time is not known. */
  offsetMs(this: void): number | null
  /** Sets `arrivedAt` and `arrival` of a message that arrives while the wall clock shows `wallMs`. */
  stamp(this: void, message: Message, wallMs: EpochMs): void
  /** The true time of an arrival of this boot; null while our time is not known, and for another boot. */
  trueTimeOf(this: void, arrival: Arrival): EpochMs | null
}

/**
 * What is stored in the place of a time while our time is not known. Nothing is deleted by it: a clock
 * without a battery starts years back.
 */
export const timeUnknown: EpochMs = Number.POSITIVE_INFINITY

/** Times are corrected from this difference on. A time that is learned over the network has some error. */
export const correctedFromMs = 60_000

/** A verdict is made again where the clock was off by so much. */
export const misjudgedFromMs = 5000

/** The envelope with the time of arrival as it is known now. */
export function correctedEnvelope(envelope: Envelope, { trueTimeOf }: Pick<OurTime, 'trueTimeOf'>): Envelope {
  const { arrival } = envelope
  const trueMs = arrival === undefined ? null : trueTimeOf(arrival)
  if (arrival === undefined || trueMs === null) return envelope
  const isWrong = Math.abs(trueMs - envelope.arrivedAt) >= correctedFromMs
  const arrivedAt = isWrong ? Math.round(trueMs) : envelope.arrivedAt
  return { ...envelope, arrivedAt, arrival: { ...arrival, offsetMs: Math.round(trueMs - arrivedAt) } }
}

/**
 * By how much the clock that judged the message was behind, as it is known now; below zero it was ahead. 0
 * where it was right, or where nothing is known.
 */
export function clockErrorOf(
  { arrivedAt, arrival }: Envelope,
  { trueTimeOf }: Pick<OurTime, 'trueTimeOf'>,
): number {
  const trueMs = arrival === undefined ? null : trueTimeOf(arrival)
  if (trueMs === null) return 0
  const errorMs = trueMs - (arrivedAt + (arrival?.offsetMs ?? 0))
  return Math.abs(errorMs) >= misjudgedFromMs ? errorMs : 0
}
