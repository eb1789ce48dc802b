// fast-plan.ts: what the fast path of a source reads and writes. compile-plan.ts makes it of the config and
// of the parts that the other path uses: conversions, scales and bounds are the same objects.

import type { Scale } from '../fields/decimal.ts'
import type { TimeFormat, ZoneRule } from '../times/times.ts'
import type { Convert } from '../fields/units.ts'
import type { Bounds } from '../plausibility/plausibility.ts'
import type { Condition } from '../path/condition.ts'
import type { KeyNode } from './message-scan.ts'

/** The places of the values of a field; the first one that has a value counts. */
export type Slots = readonly number[]

export type PlainNumber = { slots: Slots; convert: Convert }

/** Both limits included. */
export type LimitedNumber = PlainNumber & { low: number; high: number }

/** An extra field: `head` is `,"name":`. */
export type PlainField = {
  kind: 'number' | 'text' | 'boolean'
  head: Uint8Array
  number: LimitedNumber
}

export type PlainPosition = {
  latitude: PlainNumber
  longitude: PlainNumber
  speed: LimitedNumber | null
  /** `,"speedUnits":"..."` */
  speedTail: Uint8Array
  heading: LimitedNumber | null
  /** Null where motion is not sent. No slots where it follows from the speed only. */
  inMotion: { slots: Slots; fromSpeed: boolean } | null
  fields: readonly PlainField[]
}

export type PlainSignal = {
  slots: Slots
  /** What stands before and after its value. */
  head: Uint8Array
  tail: Uint8Array
  scale: Scale
  neverNegative: boolean
  bounds: Bounds | null
  /** As in SignalField. */
  counter: number
}

export type Holder = Record<string, unknown>

/** See usual-conditions.ts. */
export type UsualCondition = {
  holds: Condition
  record: Holder
  /** Where each value belongs in the record. */
  reads: readonly { slot: number; holder: Holder; key: string }[]
}

export type FastPlan = {
  root: KeyNode
  slots: number
  keys: number
  /** A message for which one of them does not hold is parsed. */
  conditions: readonly UsualCondition[]
  /** That of them which is `when` of the source; null where it has none. */
  when: UsualCondition | null
  /** Null where the topic names the device. */
  device: Slots | null
  /** Null where messages have no time of their own. */
  time: {
    slots: Slots
    format: TimeFormat | readonly TimeFormat[]
    zone: ZoneRule
    orArrival: boolean
  } | null
  /** Null where none is sent. */
  position: PlainPosition | null
  /** By the family of the device's model; of each kind the first one that has a value is sent. */
  signals: readonly (readonly (readonly PlainSignal[])[])[]
  fields: readonly PlainField[]
}
