// remembered-values.ts: the option `remember`: values that a device sends only when they change, such as the
// lock of its receiver or the ignition. A message without them is read as if it had the last ones. What
// follows from it is no part of the name of a payload.

import type { EpochMs } from '../../std/clock.ts'
import type { CompiledPrevious, Fix, SourcePlan } from '../compile/source-plan.ts'
import type { Memory } from '../memory/memory.ts'
import {
  previousTextMax,
  type DeviceMemory,
  type Plain,
  type PreviousNote,
  type RememberedValue,
} from '../memory/device-memory.ts'
import { isRecord } from '../path/path-eval.ts'
import { booleanFrom, decimalFrom } from '../path/value.ts'
import type { Reading } from '../read/reading.ts'
import type { Place } from '../types.ts'
import { previousTimeName, type PreviousValues } from '../path/path.ts'
import { isUnsetNumber } from '../plausibility/unset-numbers.ts'
import type { Withhold } from '../privacy/privacy.ts'

type Remember = NonNullable<SourcePlan['remember']>

/** A longer text is no state of a device. */
const textLengthMax = 256

/** The place of the record with what was remembered by `time`; the same one where there is nothing to add. */
export function withRemembered(
  { names, forMs }: Pick<Remember, 'names' | 'forMs'>,
  memory: DeviceMemory | null,
  place: Place,
  time: EpochMs,
): Place {
  const { record, root, up, captures } = place
  if (memory === null || !isRecord(record)) return place
  let full = record
  for (const name of names) {
    const last = memory.values.get(name)
    if (last === undefined || isGiven(record[name])) continue
    if (last.time > time || time - last.time > forMs) continue
    if (full === record) full = { ...record }
    full[name] = last.value
  }
  return full === record ? place : { record: full, root: root === record ? full : root, up, captures }
}

/** The record lacks remembered values, so that its position is named whether they make it valid or not. */
export function mayChangeFix({ record }: Reading, { remember }: SourcePlan): boolean {
  return remember !== null && isRecord(record) && remember.names.some((name) => !isGiven(record[name]))
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Whether the position is valid, with what is remembered. */
export function isValidByMemory(reading: Reading, { valid }: Fix, isValidAlone: boolean): boolean {
  return valid === null || reading.full === reading ? isValidAlone : valid(reading.full)
}

/** The motion by a remembered value; null where there is none. */
export function motionByMemory(reading: Reading, { remember }: SourcePlan): boolean | null {
  const read = remember?.motion ?? null
  if (read === null || reading.full === reading) return null
  return booleanFrom(read(reading.full)) ?? null
}

/** Notes the values of the record. */
export function noteRemembered(
  { memory, record, live }: Reading,
  { remember }: SourcePlan,
  time: EpochMs,
  { changed }: Pick<Memory, 'changed'>,
): void {
  if (remember === null || memory === null || !live || !isRecord(record)) return
  let isChanged = false
  for (const name of remember.names) {
    const value = record[name]
    if (!isPlain(value)) continue
    const last = memory.values.get(name)
    if (last !== undefined && (last.time > time || (last.time === time && last.value === value))) continue
    memory.values.set(name, { time, value })
    isChanged = true
  }
  if (isChanged) changed(memory)
}

function isPlain(value: unknown): value is Plain {
  if (typeof value === 'string') return value.length <= textLengthMax
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}

// The values that paths with `$previous` read: of each of them the newest one that the
// device sent, with its time. They are kept beside those of `remember`, under names such as `$previous.odo`,
// which no key of a message can have there.
//
//   seen      by a record that is newer than the value, at most `forMs`; in the order of the device times. A
//             value of the private hours of a privacy profile is seen by none
//   noted     when the payload of the record is made, where the record is newer than what is known. A record
//             that gives no payload is not noted, so that the next difference contains it. One of equal time
//             neither sees nor replaces it: it would be counted twice. One that is more than a day ahead of
//             our time came from a wrong clock: the next record that is not ahead replaces it
//   undone    where the message is refused or kept as a whole after one of its records was noted
//   neither   where it is computed with, and the record has a placeholder in its place, such as 0
//             (../plausibility/unset-numbers.ts): else the whole counter would be a difference when it is
//             back. The next difference contains what the counter grew by meanwhile
//   forgotten with the device, and when the device gets another asset
//
// A record that does not arrive now (it was kept, and is mapped again) sees no value and notes none: those
// that arrived meanwhile contain its difference.

/** A device time that is further ahead of ours is that of a wrong clock. */
const aheadMaxMs = 86_400_000

const head = '$previous.'

/** What the record sees; null where nothing is. `withhold`: of the privacy profile of its asset. */
export function previousBy(
  { names, forMs }: CompiledPrevious,
  { values }: DeviceMemory,
  { moment: time }: Reading,
  withhold: Withhold | null,
  without: ReadonlySet<string>,
): PreviousValues | null {
  let seen: Map<string, RememberedValue> | null = null
  for (const name of names) {
    const last = values.get(name)
    if (last === undefined || last.time >= time || time - last.time > forMs || without.has(name)) continue
    if (withhold?.isPrivateAt(last.time) === true) continue
    seen ??= new Map()
    seen.set(name, last)
  }
  return seen
}

const noNames: ReadonlySet<string> = new Set()

/** Values that are computed with and that the record has as a placeholder. They are counted. */
export function placeholdersIn(
  reading: Reading,
  source: string,
  { values }: CompiledPrevious,
): ReadonlySet<string> {
  let found: Set<string> | null = null
  for (const { name, read, isNumber } of values)
    if (isNumber && isPlaceholder(read(reading))) {
      reading.omit(`${source}|${name.slice(1)}|a placeholder`)
      found ??= new Set()
      found.add(name)
    }
  return found ?? noNames
}

function isPlaceholder(value: unknown): boolean {
  return isUnsetNumber(Number(decimalFrom(value) ?? Number.NaN))
}

/** Those that the source had before, so that they do not add up. */
function forgetOthers(names: ReadonlySet<string>, { values }: DeviceMemory): void {
  for (const name of values.keys()) if (name.startsWith(head) && !names.has(name)) values.delete(name)
}

/** The tracker may be in another vehicle now: then its counters and values are those of that one. */
export function takeAsset(
  { live, entry }: Reading,
  own: DeviceMemory,
  { changed }: Pick<Memory, 'changed'>,
): void {
  if (!live || entry === null || own.asset === entry.assetId) return
  own.asset = entry.assetId
  own.counters.clear()
  forgetOthers(noNames, own)
  changed(own)
}

/** Whether the record has any of the values. */
export function notePrevious(
  reading: Reading,
  { values, names }: CompiledPrevious,
  { changed }: Pick<Memory, 'changed'>,
): boolean {
  const { memory, at, live, arrivedAt, offsetMs } = reading
  if (memory === null || !live) return false
  takeAsset(reading, memory, { changed })
  const time = reading.moment
  // NaN while our time is not known.
  const latest = arrivedAt + (offsetMs ?? Number.NaN) + aheadMaxMs
  let isAny = values.length === 0
  for (const { name, read, isNumber } of values) {
    const value = read(reading)
    if (!isKept(value, isNumber)) continue
    isAny = true
    if (isNumber && isPlaceholder(value)) continue
    if (put(name, { time, value })) forgetOthers(names, memory)
  }
  if (isAny && names.has(previousTimeName)) put(previousTimeName, { time, value: time })
  return isAny

  /** Whether the device had none of this name. */
  function put(name: string, value: RememberedValue): boolean {
    const before = memory!.values.get(name)
    const isLate = before !== undefined && before.time >= value.time
    if (isLate && !(before.time > latest && value.time <= latest)) return false
    memory!.values.set(name, value)
    at.noted ??= []
    at.noted.push({ memory: memory!, name, before })
    changed(memory!)
    return before === undefined
  }
}

/** The message is kept as a whole, or becomes no payload. */
export function undoPrevious(noted: readonly PreviousNote[]): void {
  for (const { memory, name, before } of noted.toReversed())
    if (before === undefined) memory.values.delete(name)
    else memory.values.set(name, before)
}

function isKept(value: unknown, isNumber: boolean): value is Plain {
  if (typeof value === 'string' && (value === '' || value.length > previousTextMax)) return false
  if (isNumber) return decimalFrom(value) !== undefined
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'string' || typeof value === 'boolean'
}
