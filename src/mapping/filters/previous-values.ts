// previous-values.ts: the values that paths with `$previous` read: of each of them the newest one that the
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

import type { CompiledPrevious } from '../compile/source-plan.ts'
import { previousTimeName, type PreviousValues } from '../path/path.ts'
import { decimalFrom } from '../path/value.ts'
import { isUnsetNumber } from '../plausibility/unset-numbers.ts'
import type { Withhold } from '../privacy/privacy.ts'
import type { Memory } from '../memory/memory.ts'
import {
  previousTextMax,
  type DeviceMemory,
  type Plain,
  type PreviousNote,
  type RememberedValue,
} from '../memory/device-memory.ts'
import type { Reading } from '../read/reading.ts'

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
