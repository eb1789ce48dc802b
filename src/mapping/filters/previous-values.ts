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
//   forgotten with the device, and when the device gets another asset
//
// A record that does not arrive now (it was kept, and is mapped again) sees no value and notes none: those
// that arrived meanwhile contain its difference.

import type { EpochMs } from '../../std/clock.ts'
import type { CompiledPrevious } from '../compile/source-plan.ts'
import { previousTimeName, type PreviousValues } from '../path/previous-record.ts'
import { decimalFrom } from '../path/value.ts'
import type { Withhold } from '../privacy/privacy.ts'
import {
  previousTextMax,
  type DeviceMemory,
  type Plain,
  type PreviousNote,
  type RememberedValue,
} from '../memory/device-memory.ts'
import type { Memory } from '../memory/memory.ts'
import type { Reading } from '../read/reading.ts'

/** A device time that is further ahead of ours is that of a wrong clock. */
const aheadMaxMs = 86_400_000

const head = '$previous.'

/** What a record of `time` sees; null where nothing is. `withhold`: of the privacy profile of its asset. */
export function previousBy(
  { names, forMs }: CompiledPrevious,
  { values }: DeviceMemory,
  time: EpochMs,
  withhold: Withhold | null,
): PreviousValues | null {
  let seen: Map<string, RememberedValue> | null = null
  for (const name of names) {
    const last = values.get(name)
    if (last === undefined || last.time >= time || time - last.time > forMs) continue
    if (withhold?.isPrivateAt(last.time) === true) continue
    seen ??= new Map()
    seen.set(name, last)
  }
  return seen
}

const noNames: ReadonlySet<string> = new Set()

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
  const { memory, at, live, record, root, up, arrivedAt, offsetMs } = reading
  if (memory === null || !live) return false
  takeAsset(reading, memory, { changed })
  const time = reading.moment
  // NaN while our time is not known.
  const latest = arrivedAt + (offsetMs ?? Number.NaN) + aheadMaxMs
  let isAny = values.length === 0
  for (const { name, read, isNumber } of values) {
    const value = read(record, root, up)
    if (!isKept(value, isNumber)) continue
    isAny = true
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
