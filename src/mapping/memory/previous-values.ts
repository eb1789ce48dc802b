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
import type { WriteExtraFields } from '../fields/extra-fields.ts'
import type { WriteSignals } from '../fields/signals.ts'
import type { Read } from '../path/path.ts'
import { previousTimeName, type PreviousValues } from '../path/previous-record.ts'
import { decimalFrom } from '../path/value.ts'
import type { Withhold } from '../privacy/privacy.ts'
import type { MapResult } from '../types.ts'
import type { DeviceMemory, Plain, RememberedValue } from './device-memory.ts'

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
  fields: WriteExtraFields | null
}

/** A longer text is no value that a later record is compared with. */
export const previousTextMax = 64

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

export function forgetPrevious(memory: DeviceMemory): void {
  forgetOthers(noNames, memory)
}

const noNames: ReadonlySet<string> = new Set()

/** Those that the source had before, so that they do not add up. */
function forgetOthers(names: ReadonlySet<string>, { values }: DeviceMemory): void {
  for (const name of values.keys()) if (name.startsWith(head) && !names.has(name)) values.delete(name)
}

type Noted = { memory: DeviceMemory; name: string; before: RememberedValue | undefined }

type Place = Parameters<Read>

/** Notes the values of records, until their message ends. */
export function createPreviousNotes(changed: (memory: DeviceMemory) => void) {
  let noted: Noted[] = []
  /** Of the message that ended last. */
  let last: Noted[] = []
  return { note, ended, undo }

  /** Whether the record has any of the values. `now`: our time; NaN while it is not known. */
  function note(
    { values, names }: CompiledPrevious,
    memory: DeviceMemory,
    { time, now }: { time: EpochMs; now: EpochMs },
    place: Place,
  ): boolean {
    const latest = now + aheadMaxMs
    let isAny = values.length === 0
    for (const { name, read, isNumber } of values) {
      const value = read(...place)
      if (!isKept(value, isNumber)) continue
      isAny = true
      if (put(memory, name, { time, value }, latest)) forgetOthers(names, memory)
    }
    if (isAny && names.has(previousTimeName)) put(memory, previousTimeName, { time, value: time }, latest)
    return isAny
  }

  /** Whether the device had none of this name. */
  function put(memory: DeviceMemory, name: string, value: RememberedValue, latest: EpochMs): boolean {
    const before = memory.values.get(name)
    const isLate = before !== undefined && before.time >= value.time
    if (isLate && !(before.time > latest && value.time <= latest)) return false
    memory.values.set(name, value)
    noted.push({ memory, name, before })
    changed(memory)
    return before === undefined
  }

  /** All of a message becomes payloads, or nothing. */
  function ended({ kind }: MapResult): void {
    last = noted
    if (noted.length === 0) return
    noted = []
    if (kind === 'unmappable' || kind === 'quarantined') undo()
  }

  /** The message that ended last is kept as a whole. */
  function undo(): void {
    for (const { memory, name, before } of last.toReversed())
      if (before === undefined) memory.values.delete(name)
      else memory.values.set(name, before)
    last = []
  }
}

function isKept(value: unknown, isNumber: boolean): value is Plain {
  if (typeof value === 'string' && (value === '' || value.length > previousTextMax)) return false
  if (isNumber) return decimalFrom(value) !== undefined
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'string' || typeof value === 'boolean'
}
