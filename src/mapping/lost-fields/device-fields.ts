// device-fields.ts: what is known of the fields of each device of a source: a row of numbers, and the form in
// which it outlives a mapping or a process.

import type { EpochMs } from '../../std/clock.ts'

/** The numbers of one field in a row. Behind those of all fields stands when the device was heard last. */
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

/** Stored of each source: the devices that were heard last. */
const storedMax = 256

export type LostField = {
  since: EpochMs
  devices: number
  /** One that nothing reads, and that may be the field. */
  key: string | null
  /** It is lost since the config of the source was changed. */
  isByMapping: boolean
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

/** `devices`: by device the gap and the run of each field. */
export type StoredSource = {
  name: string
  unread: readonly string[]
  fields: readonly StoredField[]
  devices: readonly (readonly [device: string, numbers: readonly number[]])[]
}

type Source = {
  unread: ReadonlySet<string>
  states: StoredSource['fields']
  devices: ReadonlyMap<string, Float64Array>
}

export function deviceRow(fields: number): Float64Array {
  const row = new Float64Array(fields * columns + 1)
  // None is that of a field.
  for (let at = column.epoch; at < row.length; at += columns) row[at] = -1
  return row
}

export function storedOf(name: string, source: Source, devicesMax = storedMax): StoredSource {
  const heardAt = ([, row]: [string, Float64Array]) => row.at(-1)!
  const last = [...source.devices].sort((a, b) => heardAt(b) - heardAt(a)).slice(0, devicesMax)
  return {
    name,
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
  return Array.from({ length: fields }, (_, index) => index * columns).flatMap((at) => [
    Math.round(row[at + column.gap]! * 1000) / 1000,
    row[at + column.run]!,
  ])
}

/** Adds what was known of the field `from` to the field `to` of a device, which had no record with it yet. */
export function takeNumbers(row: Float64Array, to: number, numbers: readonly number[], from: number): void {
  const at = to * columns
  if (row[at + column.gap]! > 0) return
  row[at + column.gap] = numbers[2 * from] ?? 0
  row[at + column.run]! += numbers[2 * from + 1] ?? 0
}

/** Whether a value from the disk is one. */
export function isStoredSource(value: unknown): value is StoredSource {
  if (typeof value !== 'object' || value === null) return false
  const { name, unread, fields, devices } = value as Partial<StoredSource>
  return typeof name === 'string' && [unread, fields, devices].every((list) => Array.isArray(list))
}
