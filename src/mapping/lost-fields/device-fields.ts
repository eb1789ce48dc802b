// device-fields.ts: the fields of one device: the rhythm of each, and how long it is missing.
//
//   P P P C C C C P P P C C C C     P has the field, C lacks it: the gap is 5
//   P P P C C C C C C C C C         the first four C are usual, the next five weigh 1, and then each 1 / 5
//
// The gap is the longest usual one. A longer one counts at once, at most eight times the gap of before: a
// night without GPS is no rhythm. Then it shrinks with each record that has the field.

import type { EpochMs } from '../../std/clock.ts'

export type DeviceFields = {
  /** -1 where it is not known. */
  family: number
  heardAt: EpochMs
  /** Bits of the fields of which others of the options are in force since the device had them. */
  changed: number
  /** Bits of the fields that are missing and that it names otherwise now. */
  renamed: number
  /** Bits of the fields that it had again after it had named them otherwise. */
  returned: number
  /** By field: the longest usual number of records from one that has it to the next; 0 where none had it. */
  gaps: number[]
  /** By field: records since the last one that had it. */
  runs: number[]
  /** By field: how many of those came before the options changed. */
  runsBefore: number[]
  /** Its last record that was looked at, whether that lacked nothing, and how many like it came since. */
  present: number
  judged: number
  isWhole: boolean
  alike: number
}

/** A device that lacked a field for so many times its gap does not count. */
const gapsMax = 8
const gapShare = 1 / 128

export function newDevice(fields: number): DeviceFields {
  const zeros = () => Array.from({ length: fields }, () => 0)
  const counts = { gaps: zeros(), runs: zeros(), runsBefore: zeros() }
  const last = { present: 0, judged: 0, isWhole: false, alike: 0 }
  return { family: -1, heardAt: 0, changed: 0, renamed: 0, returned: 0, ...counts, ...last }
}

/** A record of the device has the field. */
export function noteHas(device: DeviceFields, index: number): void {
  const records = device.runs[index]! + 1
  const gap = device.gaps[index]!
  const shrunk = gap + (records - gap) * gapShare
  device.gaps[index] = gap === 0 ? records : Math.max(shrunk, Math.min(records, gapsMax * gap))
  device.runs[index] = 0
  device.runsBefore[index] = 0
  const bit = 1 << index
  device.changed &= ~bit
  device.renamed &= ~bit
}

/** Other options of the field are in force. */
export function noteChange(device: DeviceFields, index: number): void {
  device.runsBefore[index] = device.runs[index]!
  device.changed |= 1 << index
}

/** Whether the device had the field until the options changed, or until now. */
export function had({ gaps, runs, runsBefore, changed, renamed }: DeviceFields, index: number): boolean {
  const bit = 1 << index
  const missing = (renamed & bit) !== 0 ? 0 : (changed & bit) === 0 ? runs[index]! : runsBefore[index]!
  return gaps[index]! > 0 && missing <= gapsMax * gaps[index]!
}

/** How long the field is missing, in gaps beyond the usual one; nothing for a part of one. */
export function missingGaps({ gaps, runs, runsBefore }: DeviceFields, index: number, gapMin: number): number {
  const gap = Math.max(gapMin, Math.floor(gaps[index]!))
  const run = runs[index]!
  const beyond = Math.min(run - runsBefore[index]!, run - gap + 1) / gap
  return beyond < 1 ? 0 : beyond
}

// What is known of a source in the form in which it outlives a mapping or a process.

/** Of the devices that had a field, so many are most of them. */
const devicesShare = 0.8

export type LostField = {
  since: EpochMs
  devices: number
  /** One that nothing reads, and that may be the field. */
  key: string | null
  /** It is lost since the config of the source was changed. */
  isByMapping: boolean
  /** `key` is read, and its value is of another kind than before; not in those of earlier builds. */
  isKeyRead?: boolean
  /** Only devices that were seen to name it otherwise lack it; not in those of earlier builds. */
  isPartial?: boolean
}

export type FieldState = {
  name: string
  /** Of its options. */
  fingerprint: string
  /** Since when others of its options are in force; null where that is not known. */
  changedAt: EpochMs | null
  lastPresentAt: EpochMs
  lost: LostField | null
}

export type StoredSource = {
  name: string
  /** As in WatchedFields. Before 0.2 there were none. */
  topics?: string
  device?: string
  unread: readonly string[]
  fields: readonly FieldState[]
  devices: readonly (readonly [device: string, numbers: StoredNumbers])[]
}

/** Whether a value from the disk is one. */
export function isStoredSource(value: unknown): value is StoredSource {
  if (typeof value !== 'object' || value === null) return false
  const { name, unread, fields, devices } = value as Partial<StoredSource>
  return typeof name === 'string' && [unread, fields, devices].every((list) => Array.isArray(list))
}

/** By field the gap and the run, the family, and the bits of `renamed` and `changed`. */
type StoredNumbers = readonly number[]

function numbersOf({ gaps, runs, family, renamed, changed }: DeviceFields): StoredNumbers {
  const ofFields = gaps.flatMap((gap, at) => [Math.round(gap * 1000) / 1000, runs[at]!])
  return [...ofFields, family, renamed, changed]
}

export type StoredField = ReturnType<typeof storedField>

/** What the numbers of a device say of one of `fields` fields. Those of earlier builds have no bits. */
export function storedField(numbers: StoredNumbers, index: number, fields: number) {
  const [gap = 0, run = 0] = numbers.slice(2 * index)
  const [family = -1, renamed = 0, changed = 0] = numbers.slice(2 * fields)
  const bit = 1 << index
  return { gap, run, family, isRenamed: (renamed & bit) !== 0, isChanged: (changed & bit) !== 0 }
}

/**
 * Devices have other names now: the gap of a field that each is taken to have when it is heard for the first
 * time. 0 unless most devices had the field.
 */
export function commonGap(devices: readonly StoredField[]): number {
  const having = devices.filter(({ gap, run }) => gap > 0 && run <= gapsMax * gap)
  return having.length >= devicesShare * devices.length ? Math.max(0, ...having.map(({ gap }) => gap)) : 0
}

// The devices of a source by name, in bounded memory.

export type DeviceBounds = {
  devicesMax: number
  /** A record of a device beyond those. */
  beyond: () => void
}

/** Where all places are taken, a device that was silent for this long loses its place to a new one. */
const silentMs = 86_400_000
/** The devices that were heard last. */
const storedMax = 256

export class WatchedDevices {
  readonly #bounds: DeviceBounds
  readonly #create: () => DeviceFields
  readonly #devices = new Map<string, DeviceFields>()

  constructor(bounds: DeviceBounds, create: () => DeviceFields) {
    this.#bounds = bounds
    this.#create = create
  }

  get(name: string): DeviceFields | undefined {
    return this.#devices.get(name)
  }

  all(): Iterable<DeviceFields> {
    return this.#devices.values()
  }

  /** Null where there is no room for another one. */
  of(name: string, now: EpochMs): DeviceFields | null {
    const known = this.#devices.get(name)
    if (known !== undefined) return known
    if (this.#devices.size >= this.#bounds.devicesMax && !this.#makeRoom(now)) {
      this.#bounds.beyond()
      return null
    }
    const device = this.#create()
    this.#devices.set(name, device)
    return device
  }

  /** Devices that had the field, counted to `most`. */
  countHad(index: number, most = Infinity, heardAfter = 0): number {
    let count = 0
    for (const device of this.#devices.values()) {
      if (count === most) break
      if (device.heardAt > heardAfter && had(device, index)) count += 1
    }
    return count
  }

  stored(most = storedMax): (readonly [device: string, numbers: StoredNumbers])[] {
    const last = [...this.#devices].sort(([, a], [, b]) => b.heardAt - a.heardAt).slice(0, most)
    return last.map(([name, device]) => [name, numbersOf(device)])
  }

  /**
   * Removes the first device if it was silent for a day. Otherwise it moves to the end and stays, so that
   * invented names cannot replace devices that send.
   */
  #makeRoom(now: EpochMs): boolean {
    const [first] = this.#devices
    if (first === undefined) return false
    const [name, device] = first
    this.#devices.delete(name)
    const isSilent = Math.abs(now - device.heardAt) > silentMs
    if (!isSilent) this.#devices.set(name, device)
    return isSilent
  }
}
