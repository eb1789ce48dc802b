// read.ts: from a record of a message to what is stored and written of it, the entry file of the folder.
//
//   message-records.ts   a message as records, and the results of its records as one result
//   reading.ts           what is known of one record, while it is read and judged
//   map-result.ts        results without a payload, and what a dead letter says about a value that is missing
//
// The parts of the plan of its source run in the order in which they decide, between the filters
// (../filters/filters.ts). What follows from memory is no part of the name: the same message has the same
// name whatever came before it (../write.ts).

import type { ClockCheck } from '../devices/device-clocks.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { hasSentValues, recall, type FilterDeps } from '../filters/filters.ts'
import { readPosition, takeTimeOfOldFix } from '../filters/fix.ts'
import { position } from '../lost-fields/watched-fields.ts'
import { timeOfRecord } from '../filters/record-time.ts'
import type { FieldWatch } from '../lost-fields/lost-fields.ts'
import type { Route, SourceRuntime } from '../routing/routing.ts'
import { Reading, type Counts, type MessageAt } from './reading.ts'
import { quote } from '../../std/quote.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import { withinLimit, limitRejection } from '../expression/expression.ts'
import { isRecord } from '../path/path-eval.ts'
import { notAnObject, hintedRejection } from './map-result.ts'
import { noteRemembered } from '../filters/remembered-values.ts'
import type { CollectedReader } from '../state/record-closing.ts'
import type { DeviceNotes } from '../types.ts'

export type ReadDeps = FilterDeps & {
  checkTime: ClockCheck['checkTime']
  /** Null where the messages do not arrive now. */
  fieldWatch: FieldWatch | null
}

/** Reads a record of a device; false where it was rejected. */
export function readRecord(
  reading: Reading,
  runtime: SourceRuntime,
  entry: DeviceEntry,
  deps: ReadDeps,
): boolean {
  reading.entry = entry
  reading.device = entry.device
  entry.records += 1
  reading.isRead = isReadable(reading, runtime, entry, deps)
  if (deps.fieldWatch !== null && reading.live && reading.judged !== 0)
    deps.fieldWatch.note(runtime.source.name, entry, reading)
  return reading.isRead
}

function isReadable(
  reading: Reading,
  { source, isMovingAt }: SourceRuntime,
  entry: DeviceEntry,
  deps: ReadDeps,
): boolean {
  if (!hasTime(reading, source, entry, deps.checkTime)) return false
  const { moment } = reading
  recall(reading, source, entry, deps.memory)
  const hasPosition = readPosition(reading, source, entry.zone)
  reading.signals = source.signals[entry.family]?.(reading) ?? reading.signals
  if (source.previous !== null) {
    reading.laterSignals = source.previous.signals[entry.family]?.(reading) ?? reading.laterSignals
    reading.laterFields = source.previous.fields?.(reading) ?? ''
  }
  reading.judged = source.watched.ownBits
  if (!hasPosition && !isSentWithout(reading, source)) return false
  if (!hasSentValues(reading, source, entry, deps)) return false
  reading.fields = source.extraFields?.(reading) ?? ''
  reading.judged = source.watched.judgedBits(reading.present)
  takeTimeOfOldFix(reading, source.fix?.oldTime ?? 'fix')
  if (reading.moving !== null || isMovingAt !== null) {
    const isInMessage = reading.gps?.includes(',"inMotion":') === true
    if (isInMessage) reading.moving = null
    else if (isMovingAt && reading.speed !== null)
      reading.moving ??= isMovingAt(entry.device, reading.speed, moment) ?? null
  }
  noteRead(reading, source, entry)
  return true
}

function hasTime(
  reading: Reading,
  { time, timeBit }: SourcePlan,
  entry: DeviceEntry,
  checkTime: ClockCheck['checkTime'],
): boolean {
  const own = time === null ? Number.NaN : timeOfRecord(time, reading, entry.zone)
  if (own === null) return false
  reading.ownTime = own
  reading.isTimed = !Number.isNaN(own)
  if (reading.isTimed) reading.present |= timeBit
  const checked = reading.isTimed ? checkTime(entry.device, own, reading) : own
  if (checked === null) return false
  reading.isTimed = !Number.isNaN(checked)
  reading.isStoredTime = !reading.isTimed && reading.stored !== null
  reading.time = reading.isStoredTime ? reading.stored!.at : checked
  reading.moment = Number.isNaN(reading.time) ? reading.arrivedAt : reading.time
  return true
}

/** Without a position that can be used the signals are sent; without them the record is refused for it. */
function isSentWithout(reading: Reading, { name }: SourcePlan): boolean {
  const fault = reading.positionFault
  if (fault !== null) reading.rejection = fault
  if (reading.signals.length + reading.laterSignals.length === 0) return false
  if (fault?.kind === 'refused') reading.omit(`${name}|gps|${fault.reason}`)
  return true
}

function noteRead(reading: Reading, { watched }: SourcePlan, entry: DeviceEntry): void {
  const {
    at: { notes },
    moment,
    gps,
    oldTime,
    oldAgeMs,
  } = reading
  if (notes === null) return
  if (gps === null || gps === '' || reading.isGpsWithheld) {
    notes.read(entry, watched.names[0] === position)
  } else {
    const taken = oldTime ?? moment - oldAgeMs
    notes.readPosition(entry, taken, reading.isCurrentFix, reading)
  }
}

// Decides whether a record and its device are mapped.

/** The device of a record; null where the record was rejected. `broken`: records that could not be read. */
export function admitRecord(
  { runtime, entry, provider }: Route,
  reading: Reading,
  broken: ReadonlyMap<unknown, string> | undefined,
): DeviceEntry | null {
  const { source, devices } = runtime
  const { record, at } = reading
  const fault = broken?.get(record)
  if (fault !== undefined) return reading.refuse('NOT_JSON', fault)
  if (!isRecord(record)) return reading.refuse('NOT_AN_OBJECT', notAnObject(source, record))
  const damage = reading.badByteAt === 0 ? null : source.findDamage(reading)
  if (damage !== null) return reading.refuse('NOT_UTF8', damage)
  for (const { holds, reason, detail } of source.refuse)
    if (holds(reading)) {
      reading.refusedBy = reason
      reading.rejection = { kind: 'refused', reason, detail }
      return null
    }
  // Collected values are judged when their record is complete.
  if (source.coalesce === null && !isWanted(reading, source.when)) return null
  if (entry) return admitted(entry, reading)
  const name = deviceNamed(source.device, reading)
  if (name === null) return null
  const named = devices.entryOf(name, provider)
  at.owner = named
  at.notes?.heard(named)
  return admitted(named, reading)
}

/** The name of the device, also of a record that is rejected; null where there is none. */
export function deviceNameIn({ device }: SourcePlan, reading: Reading): string | null {
  return withinLimit(() => deviceNamed(device, reading)) ?? null
}

/** False where `when` does not hold: the record is ignored. */
function isWanted(reading: Reading, when: Route['runtime']['source']['when']): boolean {
  if (when === null) return true
  reading.isWanted = when.holds(reading)
  if (!reading.isWanted) reading.ignore(when.reason)
  return reading.isWanted
}

/** A payload of a provider that is not in the config would never be sent. Null where it was refused. */
function admitted(entry: DeviceEntry, reading: Reading): DeviceEntry | null {
  reading.entry = entry
  if (entry.deliverable || entry.ignored) return entry
  return reading.refuse('UNKNOWN_PROVIDER', `The config has no provider ${quote(entry.provider, 80)}.`)
}

// Reads records that were collected from several messages, when they close (../state/).

type Deps = {
  counts: Counts
  read: ReadDeps
  notes: DeviceNotes | null
  onReading: ((reading: Reading, source: SourcePlan) => void) | null
}

export function createCollectedReader(deps: Deps): CollectedReader {
  const { counts, read, notes, onReading } = deps
  return {
    note({ source }, entry, { record, time, arrivedAt }) {
      const at = { arrivedAt, offsetMs: null, live: true }
      const reading = withinLimit(() => readingOf(source, record, at))
      if (reading === undefined) return
      reading.entry = entry
      reading.moment = Number.isNaN(time) ? arrivedAt : time
      recall(reading, source, entry, read.memory)
      noteRemembered(reading, source, reading.moment, read.memory)
    },
    read(runtime, entry, record, at) {
      const { source } = runtime
      try {
        const reading = readingOf(source, record, at)
        reading.device = entry.device
        reading.notes = source.notes?.begin() ?? null
        onReading?.(reading, source)
        if (!isWanted(reading, source.when) || admitted(entry, reading) === null) return reading.rejection
        reading.countOthers(source.name)
        if (readRecord(reading, runtime, entry, read)) return reading.mapped(source.name, entry)
        return hintedRejection(source, reading.rejection, reading, entry)
      } catch (error) {
        return limitRejection(error)
      }
    },
  }

  function readingOf(
    { captures: names, extract }: SourcePlan,
    record: unknown,
    when: Pick<MessageAt, 'arrivedAt' | 'offsetMs' | 'live'>,
  ): Reading {
    const captures = names.map(() => '')
    const others: MessageAt['others'] = []
    const whole = extract === null ? record : extract(record, { captures, others })
    const of = { captures, root: whole, others, notes: when.live ? notes : null }
    const at = { message: null, ...when, ...of, flagged: null, owner: null, isLossNoted: false, noted: null }
    return new Reading(counts, at, whole, undefined)
  }
}
