// device-fields.ts: what is known of the fields of each device of a source: a row of numbers, and the form in
// which it outlives a mapping or a process.

import type { EpochMs } from '../../std/clock.ts'
import type { WatchedFields } from './watched-fields.ts'

/**
 * The numbers of one field in a row. Behind those of all fields stand the family of the device, and when it
 * was heard last.
 */
export const column = {
  /** The longest usual number of records from one that has the field to the next; 0 where none had it. */
  gap: 0,
  /** Records since the last one that had it. */
  run: 1,
  /** Of them: since any device had it. `epoch` says since which time that was. */
  missing: 2,
  weight: 3,
  epoch: 4,
} as const

export const columns = 5

/** Of a row: -1 where the family is not known. */
export const familyAt = (row: Float64Array) => row.length - 2

/** A device that lacked a field for so many times its gap does not count. */
export const gapsMax = 8

/** Of the devices that had a field, so many are most of them. */
export const devicesShare = 0.8

/** Stored of each source: the devices that were heard last. */
const storedMax = 256

export type LostField = {
  since: EpochMs
  devices: number
  /** One that nothing reads, and that may be the field. */
  key: string | null
  /** It is lost since the config of the source was changed. */
  isByMapping: boolean
  /** `key` is read, and its value is of another kind than before; not in those of earlier builds. */
  isKeyRead?: boolean
}

export type StoredField = {
  name: string
  /** Of its options. */
  fingerprint: string
  /** Since when others of its options are in force; null where that is not known. */
  changedAt: EpochMs | null
  lastPresentAt: EpochMs
  lost: LostField | null
}

/** `devices`: by device the gap and the run of each field, and behind them the family. */
export type StoredSource = {
  name: string
  /** As in WatchedFields. Before 0.2 there were none. */
  topics?: string
  device?: string
  unread: readonly string[]
  fields: readonly StoredField[]
  devices: readonly (readonly [device: string, numbers: readonly number[]])[]
}

type Source = {
  fields: Pick<WatchedFields, 'topics' | 'device'>
  unread: ReadonlySet<string>
  states: StoredSource['fields']
  devices: ReadonlyMap<string, Float64Array>
}

export function deviceRow(fields: number): Float64Array {
  const row = new Float64Array(fields * columns + 2)
  // None is that of a field.
  for (let at = column.epoch; at < row.length; at += columns) row[at] = -1
  row[familyAt(row)] = -1
  return row
}

export function storedOf(name: string, source: Source, devicesMax = storedMax): StoredSource {
  const heardAt = ([, row]: [string, Float64Array]) => row.at(-1)!
  const last = [...source.devices].sort((a, b) => heardAt(b) - heardAt(a)).slice(0, devicesMax)
  const { topics, device: rule } = source.fields
  return {
    name,
    topics,
    device: rule,
    unread: [...source.unread],
    fields: source.states.map(({ name: field, fingerprint, changedAt, lastPresentAt, lost }) => ({
      name: field,
      fingerprint,
      changedAt,
      lastPresentAt,
      lost,
    })),
    devices: last.map(([device, row]) => [device, numbersOf(row, source.states.length)]),
  }
}

function numbersOf(row: Float64Array, fields: number): number[] {
  const numbers = Array.from({ length: fields }, (_, index) => index * columns).flatMap((at) => [
    Math.round(row[at + column.gap]! * 1000) / 1000,
    row[at + column.run]!,
  ])
  return [...numbers, row[familyAt(row)]!]
}

/** Adds what was known of the field `from` to the field `to` of a device, which had no record with it yet. */
export function takeNumbers(row: Float64Array, to: number, numbers: readonly number[], from: number): void {
  const at = to * columns
  if (row[at + column.gap]! > 0) return
  row[at + column.gap] = numbers[2 * from] ?? 0
  row[at + column.run]! += numbers[2 * from + 1] ?? 0
}

/**
 * Devices have other names now. Of the field `from`: the gap that each is taken to have when it is heard for
 * the first time; 0 unless most devices had the field.
 */
export function commonGap({ devices }: StoredSource, from: number): number {
  const gaps = devices.map(([, numbers]) => {
    const [gap = 0, run = 0] = numbers.slice(2 * from)
    return run <= gapsMax * gap ? gap : 0
  })
  const having = gaps.filter((gap) => gap > 0)
  return having.length >= devicesShare * gaps.length ? Math.max(0, ...having) : 0
}

/** Whether a value from the disk is one. */
export function isStoredSource(value: unknown): value is StoredSource {
  if (typeof value !== 'object' || value === null) return false
  const { name, unread, fields, devices } = value as Partial<StoredSource>
  return typeof name === 'string' && [unread, fields, devices].every((list) => Array.isArray(list))
}
