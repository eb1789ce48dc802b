// source-plan.ts: the plan of a source. compile/ makes it of the config once; each message is read by it.

import type { CompiledCoalesce } from '../state/coalesce.ts'
import type { JudgedCounter } from '../filters/judged-counters.ts'
import type { MotionOptions } from '../filters/motion.ts'
import type { ThinRules } from '../filters/thin.ts'
import type { DeviceRule } from '../devices/device-rule.ts'
import type { DeviceEntryOptions } from '../devices/devices.ts'
import type { Extract } from '../extract/extract.ts'
import type { SourceNotes } from '../fields/field-notes.ts'
import type { WriteGps } from '../fields/gps.ts'
import type { WriteMembers } from '../fields/member-fields.ts'
import type { WriteSignals } from '../fields/signals.ts'
import type { ReadFixTime } from '../times/fix-time.ts'
import type { ReadTime, ZoneRule } from '../times/times.ts'
import type { Condition } from '../expression/expression.ts'
import type { Read } from '../path/path.ts'
import type { Each } from '../path/record-selection.ts'
import type { FindDamage } from '../body/damaged-text.ts'
import type { SourceReads } from '../path/unread-keys.ts'
import type { TopicPattern } from '../path/topic-pattern.ts'
import type { WatchedFields } from '../lost-fields/watched-fields.ts'
import type { Encoding } from '../types.ts'

export type SourcePlan = {
  name: string
  patterns: readonly TopicPattern[]
  /** Names of all captures; a pattern that does not have one leaves it empty. */
  captures: readonly string[]
  exclude: readonly TopicPattern[]
  /** Message sources whose messages it takes; null for all. */
  from: ReadonlySet<string> | null
  /** The place of the capture that must be the identity of the client; null where it may be any. */
  identity: number | null
  retained: 'take' | 'ignore'
  wills: 'take' | 'ignore'
  encoding: Encoding
  findDamage: FindDamage
  extract: Extract | null
  /** Chooses the record, or the records, inside the message. */
  each: Each | null
  /** Records that one message may have. */
  recordsMax: number
  refuse: readonly { holds: Condition; reason: string; detail: string }[]
  when: { holds: Condition; reason: string } | null
  /**
   * Whether a record makes the message one of the source, by `refuse` and `when`; the sources below that have
   * its topic get the others. Null where it takes all messages of its topics.
   */
  takes: Condition | null
  /** A path of it may read properties of MQTT 5. */
  readsProperties: boolean
  device: DeviceRule
  /** The rules that it is made of, in their order. */
  deviceRules: readonly DeviceRule[]
  /** Whose data it is, where the device table does not say; null for the only provider. */
  provider: ((captures: readonly string[]) => string) | null
  /** Null where messages have no time of their own. */
  time: { read: ReadTime; raw: Read; orArrival: boolean; format: string; zone: ZoneRule } | null
  /** Its bit (lost-fields/watched-fields.ts) where messages without one are sent, too; else 0. */
  timeBit: number
  fix: Fix | null
  gps: WriteGps
  /** The same without the heading, which a receiver without a fix does not know. */
  gpsLastKnown: WriteGps
  /** By the family of the device's model. */
  signals: readonly WriteSignals[]
  /** Signals whose jumps and falls are judged; null for none. */
  counters: readonly JudgedCounter[] | null
  extraFields: WriteMembers | null
  motion: MotionOptions | null
  /** Null where nothing is remembered of a device. */
  remember: Remember | null
  /** Null where nothing reads a value of the record before. */
  previous: CompiledPrevious | null
  coalesce: CompiledCoalesce | null
  thin: ThinRules | null
  merge: { group: string; window: number } | null
  /** Nothing to send is usual, and no reason for a dead letter. */
  emptyIsNormal: boolean
  /** What is left out for devices of no family, in words; null where nothing is. */
  withoutModel: string | null
  deviceOptions: DeviceEntryOptions
  hasFamilies: boolean
  /** What it reads: made at the first call, as most sources never need it. */
  reads: () => SourceReads
  /** What the fields of each record read; null where nothing is explained. */
  notes: SourceNotes | null
  /** Its fields as bits, for those that get lost. */
  watched: WatchedFields
}

export type Fix = {
  valid: Condition | null
  /** Null where the message does not say when the position was taken. */
  time: ReadFixTime | null
  /** The same by times of the device alone, without ages. */
  ownTime: ReadFixTime | null
  maxAgeMs: number
  /** Send an invalid position nevertheless. */
  keep: boolean
  /** Send an old position. */
  keepOld: boolean
  /** The time that a kept old position is sent with. */
  oldTime: 'fix' | 'fix of a position alone' | 'message'
}

export type PreviousValue = {
  /** `$previous.odo` */
  name: string
  /** The value in the record at hand. */
  read: Read
  /** It is computed with: anything but an exact decimal counts as absent. */
  isNumber: boolean
}

export type CompiledPrevious = {
  /** Without the time. */
  values: readonly PreviousValue[]
  /** Of all, perhaps with that of the time. */
  names: ReadonlySet<string>
  forMs: number
  /** What reads previous values, by the family of the device's model. It has no part in the payloadId. */
  signals: readonly WriteSignals[]
  hasSignals: boolean
  /** The same of `map.fields`. */
  fields: WriteMembers | null
}

export type Remember = {
  names: readonly string[]
  forMs: number
  /** The motion in a message; null where `map` reads none. */
  motion: Read | null
}

/** A record that is collected may be merged afterwards. */
export function longestWindowMs(sources: readonly SourcePlan[]): number {
  const collecting = sources.map(({ coalesce }) => coalesce?.rules.windowMs ?? 0)
  const merging = sources.map(({ merge }) => merge?.window ?? 0)
  return Math.max(0, ...collecting) + Math.max(0, ...merging)
}
