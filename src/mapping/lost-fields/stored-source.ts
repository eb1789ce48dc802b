// stored-source.ts: what is known of a source in the form in which it outlives a mapping or a process.

import type { EpochMs } from '../../std/clock.ts'
import { gapsMax, type DeviceFields } from './device-fields.ts'

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
export type StoredNumbers = readonly number[]

export function numbersOf({ gaps, runs, family, renamed, changed }: DeviceFields): StoredNumbers {
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
