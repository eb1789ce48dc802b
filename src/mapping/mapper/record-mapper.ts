// record-mapper.ts: one source at work: a record of a message becomes what a payload says, and then a payload.
//
// The parts were compiled once (compile.ts) and are run here in the order in which they decide: the time, whether
// the position is one, the position, the signals, further fields; then one hash, and the text in one go.
//
// What follows from memory (motion by the speed) is no part of the name: the same message must have the same name
// whatever came before it.

import { payloadHead, type MappedPayload } from '../../domain/payload.ts'
import type { Message } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { RecordContext } from '../reasons.ts'
import type { DeviceRule } from '../devices/device-rule.ts'
import type { Each } from '../path/record-selection.ts'
import type { Extract } from '../extract/extract.ts'
import type { WriteExtraFields } from '../fields/extra-fields.ts'
import { shown, type WriteGps } from '../fields/gps.ts'
import { digestOf, messageKeyOf, partKeyOf, payloadIdOf, signalIdHeadOf, windowKeyOf } from '../identity.ts'
import type { Decode } from '../encodings/lenient-json.ts'
import type { Read, Up } from '../path/path.ts'
import type { DeviceEntry, DeviceEntryOptions } from '../devices/devices.ts'
import { signalsText, type WriteSignals } from '../fields/signals.ts'
import { isUnset } from '../devices/device-clocks.ts'
import type { MappedRecord } from '../state/merge.ts'
import type { MotionOptions } from '../state/motion.ts'
import type { CompiledCoalesce } from '../state/coalesced-value.ts'
import { payloadOf } from '../state/record-payload.ts'
import type { ThinOptions } from '../state/thin.ts'
import type { ReadTime } from '../fields/time-format.ts'
import type { TopicPattern } from '../path/topic-pattern.ts'
import type { Condition } from '../path/condition.ts'

export type Fix = {
  valid: Condition | null
  /** Null where the message does not say when the position was taken. */
  time: ReadTime | null
  maxAgeMs: number
  /** Send a position that is none all the same. */
  keep: boolean
}

export type CompiledSource = {
  name: string
  patterns: readonly TopicPattern[]
  /** Names of all captures; a pattern that does not have one leaves it empty. */
  captures: readonly string[]
  exclude: readonly TopicPattern[]
  retained: 'take' | 'ignore'
  /** Null for Sparkplug, whose messages need memory to be read. */
  decode: Decode | null
  extract: Extract | null
  jsonata: string | null
  /** Chooses the record, or the records, inside the message. */
  each: Each | null
  refuse: readonly { holds: Condition; reason: string; detail: string }[]
  when: { holds: Condition; reason: string } | null
  device: DeviceRule
  /** Whose data it is, where the device table does not say; null for the one provider that there is. */
  provider: ((captures: readonly string[]) => string) | null
  /** Null where messages have no time of their own. */
  time: { read: ReadTime; raw: Read; orArrival: boolean; format: string } | null
  fix: Fix | null
  gps: WriteGps
  /** The same without the heading, which a receiver without a fix does not know. */
  gpsLastKnown: WriteGps
  /** By the family of the device's model. */
  signals: readonly WriteSignals[]
  extraFields: WriteExtraFields | null
  motion: MotionOptions | null
  coalesce: CompiledCoalesce | null
  thin: ThinOptions | null
  merge: { group: string; windowMs: number } | null
  /** Nothing to send is usual, and no reason for a dead letter. */
  emptyIsNormal: boolean
  /** What is left out for devices of no family, in words; null where nothing is. */
  withoutModel: string | null
  deviceOptions: DeviceEntryOptions
}

/** What a record says, before it is a payload. Used again for the next one. */
export type Reading = {
  /** NaN where the arrival time stands in. */
  time: EpochMs
  gps: string
  signals: readonly string[]
  fields: string
  /** Derived from the speed; null where it was not. */
  moving: boolean | null
}

/** What judges a device's time and motion; one for all sources, or for one. */
export type RecordChecks = {
  /** `restamp` puts the arrival time in its place; null where the message was quarantined. */
  checkTime(entry: DeviceEntry, time: EpochMs, arrivedAt: EpochMs, context: RecordContext): EpochMs | null
  isMovingAt: ((device: string, speed: number, time: EpochMs) => boolean | undefined) | null
}

/** Reads a record into `reading`; false where it was refused, ignored or quarantined. */
export function readRecord(
  source: CompiledSource,
  entry: DeviceEntry,
  record: unknown,
  root: unknown,
  up: Up,
  arrivedAt: EpochMs,
  checks: RecordChecks,
  context: RecordContext,
  reading: Reading,
): boolean {
  let time = source.time ? timeOf(source.time, record, root, up, context) : Number.NaN
  if (time === null) return false
  const ownTime = time
  if (!Number.isNaN(time)) {
    time = checks.checkTime(entry, time, arrivedAt, context)
    if (time === null) return false
  }
  context.motionSpeed = Number.NaN
  context.zeroPosition = false
  let gps: string | null = ''
  let fixed = true
  if (source.fix === null) {
    gps = source.gps(record, root, up, context)
  } else {
    const { fix } = source
    const taken = fix.time ? fix.time(record, root, up) : Number.NaN
    // By the device's own clock on both sides, whatever was made of its time.
    const stale = taken < ownTime - fix.maxAgeMs
    const valid = fix.valid === null || fix.valid(record, root, context.captures, up)
    fixed = valid && !stale
    // A place of which nobody knows when it was cannot be kept under any time.
    const kept = fix.keep && !(stale && isUnset(taken))
    if (fixed || kept) gps = (valid ? source.gps : source.gpsLastKnown)(record, root, up, context)
    if (stale && kept) time = taken
  }
  if (gps === null) return false
  const writeSignals = source.signals[entry.family]
  const signals = writeSignals ? writeSignals(record, root, up, context) : []
  if (gps === '' && signals.length === 0) {
    if (!fixed || context.zeroPosition) context.ignore('no fix')
    else if (source.emptyIsNormal) context.ignore('nothing to send')
    else context.refuse('NOTHING_TO_SEND', 'Neither a position nor a signal was found in the message.')
    return false
  }
  reading.time = time
  reading.gps = gps
  reading.signals = signals
  reading.fields = source.extraFields ? source.extraFields(record, root, up, context) : ''
  reading.moving =
    checks.isMovingAt && !Number.isNaN(context.motionSpeed)
      ? (checks.isMovingAt(entry.device, context.motionSpeed, Number.isNaN(time) ? arrivedAt : time) ?? null)
      : null
  return true
}

export function mappedRecordOf(
  source: CompiledSource,
  entry: DeviceEntry,
  { time, gps, signals, fields, moving }: Reading,
  arrivedAt: EpochMs,
): MappedRecord {
  const own = Number.isNaN(time) ? null : time
  return { source: source.name, device: entry.device, time: own, arrivedAt, gps, signals, fields, moving }
}

/**
 * The payload of what was read; null where the asset's profile leaves nothing of it. `namesBefore` are those of the
 * payloads that the message made before, null where it makes one.
 */
export function writePayload(
  source: CompiledSource,
  entry: DeviceEntry,
  reading: Reading,
  message: Message,
  index: number,
  namesBefore: Set<string> | null,
): MappedPayload | null {
  const { gps, signals, fields, moving } = reading
  const ownTime = !Number.isNaN(reading.time)
  const time = ownTime ? reading.time : message.arrivedAt
  let name = `${entry.nameHead}${time}${ownTime ? ']' : ',"arrival"]'}${gps}`
  for (const signal of signals) name += signal
  name += fields
  if (namesBefore) name = distinct(name, namesBefore, index)
  const digest = digestOf(name)
  const windowKey = ownTime ? windowKeyOf(digest) : partKeyOf(messageKeyOf(message), index)
  const duplicateRule = ownTime ? 'always' : 'resend'
  if (entry.withhold) {
    const half = mappedRecordOf(source, entry, reading, message.arrivedAt)
    return payloadOf(entry, half, digest, { windowKey, duplicateRule }, entry.withhold)
  }
  const payloadId = payloadIdOf(digest)
  const ids = signals.length === 0 ? '' : signalIdHeadOf(digest)
  const json =
    payloadHead +
    payloadId +
    entry.jsonBeforeTime +
    time +
    entry.jsonAfterTime +
    (moving === null || gps === '' ? gps : `${gps.slice(0, -1)},"inMotion":${moving}}`) +
    signalsText(signals, ids) +
    fields +
    '}'
  return {
    provider: entry.provider,
    device: entry.device,
    deviceTime: ownTime ? reading.time : null,
    payloadId,
    windowKey,
    duplicateRule,
    json,
  }
}

/** NaN where the arrival time stands in; null where the record was refused. */
function timeOf(
  time: NonNullable<CompiledSource['time']>,
  record: unknown,
  root: unknown,
  up: Up,
  context: RecordContext,
): number | null {
  const moment = time.read(record, root, up)
  if (moment < Number.POSITIVE_INFINITY) return moment
  if (Number.isNaN(moment))
    return time.orArrival ? moment : context.refuse('NO_TIME', 'The message has no time.')
  const raw = shown(time.raw(record, root, up))
  return context.refuse('BAD_TIME', `The time ${raw} is not in the format "${time.format}".`)
}

/**
 * Two records of one message that say the same are two readings: the position in the list tells them apart.
 */
function distinct(name: string, before: Set<string>, index: number): string {
  const own = before.has(name) ? `${name}#${index}` : name
  before.add(own)
  return own
}
