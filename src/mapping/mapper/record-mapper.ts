// record-mapper.ts: makes a reading of the current record, and a payload of the reading.
//
// The parts of the source were compiled once (compile/) and run in the order in which they decide: the time,
// whether the position is valid, the position, the signals, extra fields. Then one hash makes the ids, and
// the text is written in one go.
//
// What follows from memory (motion by the speed, what reads `$previous`) is no part of the name: the same
// message has the same name whatever came before it.

import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { ClockCheck } from '../devices/clock-check.ts'
import { isUnset } from '../devices/device-clocks.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { digestOf, distinct, messageKeyOf, numbered, partKeyOf, windowKeyOf } from '../identity.ts'
import type { FieldWatch } from '../lost-fields/lost-fields.ts'
import { position } from '../lost-fields/watched-fields.ts'
import type { MappedRecord } from '../state/merge.ts'
import { payloadOf } from '../state/record-payload.ts'
import type { DeviceNotes, RecordContext } from '../types.ts'
import { isBeyondLimit } from './admission.ts'
import type { CompiledSource, Fix } from './compiled-source.ts'
import type { RecordMemory } from './record-memory.ts'
import { isByAge, timeOfRecord, timesOf } from './record-time.ts'
import type { SourceRuntime } from '../routing/routing.ts'

export type RecordMapper = {
  /** Reads the record at hand; false where it was rejected. The other functions use the last one read. */
  read(runtime: SourceRuntime, entry: DeviceEntry): boolean
  /** For a source that thins or merges. */
  mapped(source: CompiledSource, entry: DeviceEntry): MappedRecord
  /**
   * The reason where there is none: the profile of the asset leaves nothing of it, or it repeats the last
   * fix, which the message sent before. `namesBefore` are those of the payloads that the message made before,
   * null where it makes one.
   */
  payload(
    source: CompiledSource,
    entry: DeviceEntry,
    message: Message,
    index: number,
    namesBefore: Set<string> | null,
  ): MappedPayload | 'privacy' | 'repeated fix'
}

type Deps = {
  context: RecordContext
  checkTime: ClockCheck['checkTime']
  memory: RecordMemory
  /** Null where the messages do not arrive now. */
  fieldWatch: FieldWatch | null
}

const noSignals: readonly string[] = []

export function createRecordMapper({ context, checkTime, memory, fieldWatch }: Deps): RecordMapper {
  // The reading. It is used again for the next record, so that none is allocated.
  /** NaN where the arrival time is used instead. */
  let time: EpochMs = Number.NaN
  /** `time` is the one at which a server had stored the message, which has none of its own. */
  let isStoredTime = false
  /** The arrival time is sent less this age of the position. */
  let agedMs = 0
  /** Those of an old position that is kept; NaN and 0 without one. */
  let oldTime: EpochMs = Number.NaN
  let oldAgeMs = 0
  let gps = ''
  let signals: readonly string[] = []
  /** The same list, or one with '' for signals that are named and not sent, by what is remembered. */
  let sentSignals: readonly string[] = []
  let extraFields = ''
  /** What reads previous values: behind the others, so that the ids of those do not depend on it. */
  let laterSignals: readonly string[] = []
  let laterFields = ''
  /** Derived from the speed; null where it was not. */
  let moving: boolean | null = null
  /** The position is an old one, sent with its own time: records that repeat it are no new readings. */
  let isLastFix = false
  /** The position is part of the name and is not sent, by what is remembered of the device. */
  let isGpsWithheld = false
  /** The position is valid and of the time of the message. */
  let isCurrentFix = true
  return { read, mapped, payload }

  function read(runtime: SourceRuntime, entry: DeviceEntry): boolean {
    context.present = 0
    context.judged = 0
    const isRead = readRecord(runtime, entry)
    if (fieldWatch !== null && context.live && context.judged !== 0)
      fieldWatch.note(runtime.source.name, entry, context)
    return isRead
  }

  function readRecord({ source, isMovingAt }: SourceRuntime, entry: DeviceEntry): boolean {
    const { record, root, up, arrivedAt } = context
    context.device = entry.device
    context.entry = entry
    entry.records += 1
    context.leftOut = false
    const ownTime = source.time ? timeOfRecord(source.time, context, entry.zone) : Number.NaN
    if (ownTime === null) return false
    context.isTimed = !Number.isNaN(ownTime)
    if (context.isTimed) context.present |= source.timeBit
    const checked = context.isTimed ? checkTime(entry.device, ownTime, context) : ownTime
    if (checked === null) return false
    context.isTimed = !Number.isNaN(checked)
    isStoredTime = Number.isNaN(checked) && context.stored !== null
    time = isStoredTime ? context.stored!.at : checked
    agedMs = 0
    oldTime = Number.NaN
    oldAgeMs = 0
    context.motionSpeed = Number.NaN
    context.zeroPosition = false
    isLastFix = false
    isGpsWithheld = false
    const moment = Number.isNaN(time) ? arrivedAt : time
    memory.begin(source, entry, moment)
    isCurrentFix = true
    let isGpsRefused = false
    if (source.fix === null) {
      const text = source.gps(record, root, up, context)
      gps = text ?? ''
      isGpsRefused = text === null
    } else {
      const found = readGpsWithFix(source, source.fix, ownTime, entry)
      isCurrentFix = found ?? false
      isGpsRefused = found === null
    }
    const refusal = context.rejection
    const writeSignals = source.signals[entry.family]
    signals = writeSignals ? writeSignals(record, root, up, context) : []
    readLater(source, entry)
    if (isBeyondLimit(context)) return false
    context.judged = source.watched.ownBits
    if (isGpsRefused) {
      // Without signals nothing is left to send, and the record is refused for its position.
      context.rejection = refusal
      if (signals.length + laterSignals.length === 0) return false
      if (refusal.kind === 'refused') context.omit(`${source.name}|gps|${refusal.reason}`)
    }
    if (gps !== '' && !isGpsWithheld) memory.compareWithFleet(source.name, entry, gps)
    sentSignals = memory.plausible(signals)
    moving = memory.motion()
    memory.note()
    if (isNothingSent()) {
      context.ignore(signals.length === 0 ? 'no fix' : 'not plausible')
      return false
    }
    if (gps === '' && signals.length + laterSignals.length === 0) {
      if (source.previous?.hasSignals === true && memory.notePrevious()) context.ignore('no previous value')
      else if (context.leftOut) context.ignore(notPlausible(source))
      else if (!isCurrentFix || context.zeroPosition) context.ignore('no fix')
      else if (source.emptyIsNormal) context.ignore('nothing to send')
      else context.refuse('NOTHING_TO_SEND', 'Neither a position nor a signal was found in the message.')
      return false
    }
    extraFields = source.extraFields ? source.extraFields(record, root, up, context) : ''
    if (isBeyondLimit(context)) return false
    context.judged = source.watched.judgedBits(context.present)
    if (isLastFix) takeTimeOfOldFix(source.fix?.oldTime ?? 'fix')
    if (moving !== null && gps.includes(',"inMotion":')) moving = null
    else if (isMovingAt && !Number.isNaN(context.motionSpeed))
      moving ??= isMovingAt(entry.device, context.motionSpeed, moment) ?? null
    if (context.notes !== null) noteRead(context.notes, entry, moment)
    return true
  }

  function readLater({ previous }: CompiledSource, { family }: DeviceEntry): void {
    laterSignals = noSignals
    laterFields = ''
    if (previous === null) return
    const { record, root, up } = context
    laterSignals = previous.signals[family]?.(record, root, up, context) ?? noSignals
    laterFields = previous.fields?.(record, root, up, context) ?? ''
  }

  function noteRead(notes: DeviceNotes, entry: DeviceEntry, moment: EpochMs): void {
    if (gps === '' || isGpsWithheld) {
      notes.read(entry)
      return
    }
    const at = Number.isNaN(oldTime) ? moment - oldAgeMs : oldTime
    notes.readPosition(entry, at, isCurrentFix, context)
  }

  /** Whether the position is valid and of the time of the message; null where the record was refused. */
  function readGpsWithFix(
    source: CompiledSource,
    fix: Fix,
    ownTime: EpochMs,
    entry: DeviceEntry,
  ): boolean | null {
    const { record, root, up, captures } = context
    // Both are times of the device's own clock, whatever was made of them.
    const { messageTime, fixTime } = timesOf(fix, ownTime, context, entry.zone)
    const isOld = fixTime < messageTime - fix.maxAgeMs
    const isValid = fix.valid === null || fix.valid(record, root, captures, up)
    const isValidNow = memory.isValid(fix, isValid)
    const isNamedValid = isValid || memory.mayChangeFix()
    // An old position whose time is unknown cannot be kept under any time.
    const isTimely = !isOld || (fix.keepOld && !isUnset(fixTime))
    const isNamed = isTimely && (isNamedValid || fix.keep)
    gps = ''
    const { present } = context
    if (isNamed) {
      const text = (isNamedValid ? source.gps : source.gpsLastKnown)(record, root, up, context)
      // A position that is only named cannot refuse the record.
      if (text === null && (isValid || isValidNow || fix.keep)) return null
      gps = text ?? ''
    }
    isGpsWithheld = gps !== '' && !isValidNow && !fix.keep
    if (isGpsWithheld) context.present = present
    if (isOld && isNamed) {
      if (Number.isNaN(ownTime) && isByAge(fix, context, entry.zone)) oldAgeMs = messageTime - fixTime
      else oldTime = fixTime
      isLastFix = true
    }
    return isValidNow && !isOld
  }

  /** An old position has its own time; other values of the message have that of the message. */
  function takeTimeOfOldFix(oldTimeIs: Fix['oldTime']): void {
    const isOfMessage =
      oldTimeIs === 'message' ||
      (oldTimeIs === 'fix of a position alone' && (signals.length > 0 || extraFields !== ''))
    isLastFix = !isOfMessage
    if (isOfMessage) return
    if (isStoredTime) time -= oldAgeMs
    else agedMs = oldAgeMs
    if (!Number.isNaN(oldTime)) time = oldTime
  }

  function mapped({ name: source }: CompiledSource, { device, provider }: DeviceEntry): MappedRecord {
    const arrivedAt = context.arrivedAt - agedMs
    const own = Number.isNaN(time) ? null : time
    const record = {
      source,
      device,
      time: own,
      arrivedAt,
      gps,
      signals,
      fields: extraFields,
      moving,
      provider,
    }
    if (!isGpsWithheld && sentSignals === signals) return record
    const hidden = signals.filter((_signal, index) => sentSignals[index] === '')
    return { ...record, withheld: { gps: isGpsWithheld, signals: hidden } }
  }

  /** What stands behind the time in the name, and says which time it is. */
  function timeMark({ serial = 0, stored }: Message): string {
    if (isStoredTime) return numbered('stored', stored?.serial ?? 0)
    return Number.isNaN(time) ? numbered('arrival', serial) : ']'
  }

  /** Where a path finds nothing, values that are not plausible are not all that is wrong. */
  function notPlausible({ watched }: CompiledSource): string {
    const lacksPosition = watched.names[0] === position && isCurrentFix && !context.zeroPosition
    return lacksPosition ? 'not plausible, and no position where the mapping reads it' : 'not plausible'
  }

  /** All that the record has is withheld. */
  function isNothingSent(): boolean {
    if ((gps !== '' && !isGpsWithheld) || (!isGpsWithheld && sentSignals === signals)) return false
    if (laterSignals.length > 0) return false
    return sentSignals.every((signal) => signal === '')
  }

  function payload(
    source: CompiledSource,
    entry: DeviceEntry,
    message: Message,
    index: number,
    namesBefore: Set<string> | null,
  ): ReturnType<RecordMapper['payload']> {
    const hasOwnTime = !Number.isNaN(time)
    const sentTime = hasOwnTime ? time : message.arrivedAt - agedMs
    let name = `${entry.nameHead}${sentTime}${timeMark(message)}${gps}`
    for (const signal of signals) name += signal
    name += extraFields
    if (isLastFix && namesBefore?.has(name)) {
      context.omit(`${source.name}|gps|repeated fix`)
      return 'repeated fix'
    }
    if (namesBefore) name = distinct(name, namesBefore, index)
    memory.notePrevious()
    const digest = digestOf(name)
    const windowKey = hasOwnTime ? windowKeyOf(digest) : partKeyOf(messageKeyOf(message), index)
    const duplicateRule = hasOwnTime ? 'always' : 'resend'
    const later = source.previous === null ? null : { signals: laterSignals, fields: laterFields }
    const record = { entry, mapped: mapped(source, entry), later }
    return payloadOf(record, digest, { windowKey, duplicateRule }, entry.withhold) ?? 'privacy'
  }
}
