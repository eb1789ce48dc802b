// merge.ts: makes one payload of the data of several sources about one asset: the position of a phone, the
// odometer of a dongle that reads the vehicle's bus.
//
//   mapped record  the data of one source: a position, signals, or both
//   group          the sources whose records are merged; a payload has at most one record of each
//   closed         when every source of the group sent one, when the window is over, when a source sends
//                  another one, or when the times of two records differ by more than the window
//
// Rules, durability and bounds are those of coalesce.ts, with the asset as owner and the sources as names. Of
// two positions the one of the first source in the config is sent; likewise of two signals of one type and
// part, and of two extra fields of one name. The time is that of the record with the position, else of the
// first record. A single record is sent as it is.

import { isRecord } from '../path/path-eval.ts'
import type { MappedRecord, Withheld } from '../write.ts'
import { createCoalescer, type CoalesceBounds, type Step } from './coalesce.ts'
import { storedFormOf } from './open-record.ts'

export type MergeOptions = {
  /** The sources of the group in the order of the config. */
  sources: readonly string[]
  windowMs: number
}

export type Merger = ReturnType<typeof createMerger>

export function createMerger({ sources, windowMs }: MergeOptions, bounds: CoalesceBounds) {
  const rules = {
    require: [],
    complete: sources,
    latest: [],
    windowMs,
    pairWithinMs: windowMs,
    position: null,
  }
  const { fits, add: addValue, ...rest } = createCoalescer(rules, bounds)
  return { ...rest, add, join }

  function add(
    asset: string,
    mapped: MappedRecord,
    messages: number,
    step: Step,
  ): 'taken' | 'duplicate' | 'too large' {
    const { source: name, arrivedAt, time } = mapped
    const stored = storedFormOf(name, mapped)
    if (stored === null || !fits(name, stored.text)) return 'too large'
    return addValue(asset, { name, ...stored, time: time ?? Number.NaN, arrivedAt, messages }, step)
  }

  /** Merges the mapped records of a closed record; null where one of them cannot be read. */
  function join(record: Readonly<Record<string, unknown>>): MappedRecord | null {
    const records: MappedRecord[] = []
    for (const source of sources) {
      const mapped = record[source]
      if (mapped === undefined) continue
      if (!isMappedRecord(mapped)) return null
      records.push(mapped)
    }
    const [first, ...others] = records
    if (first === undefined || others.length === 0) return first ?? null
    const withPosition = records.find(({ gps }) => gps !== '') ?? first
    const joined = { ...withPosition, signals: allSignals(records), fields: allFields(records) }
    const hidden = records.flatMap(({ withheld }) => withheld?.signals ?? [])
    if (hidden.length > 0) joined.withheld = { gps: withPosition.withheld?.gps ?? false, signals: hidden }
    return joined
  }
}

function allSignals(records: readonly MappedRecord[]): readonly string[] {
  const found = new Map<string, string>()
  for (const { signals } of records) {
    for (const signal of signals) {
      const { type, assetPart } = JSON.parse(`{"id":"${signal}`) as { type: string; assetPart?: string }
      const key = JSON.stringify([type, assetPart])
      if (!found.has(key)) found.set(key, signal)
    }
  }
  return [...found.values()]
}

function allFields(records: readonly MappedRecord[]): string {
  const texts = records.map(({ fields }) => fields).filter((fields) => fields !== '')
  if (texts.length < 2) return texts[0] ?? ''
  const all = texts.toReversed().map((fields) => JSON.parse(`{${fields.slice(1)}}`) as Fields)
  return `,${JSON.stringify(all.reduce((below, above) => nested(above, below))).slice(1, -1)}`
}

type Fields = Readonly<Record<string, unknown>>

/** The fields of both, also where these are in one object; of the same field that of `above`. */
function nested(above: Fields, below: Fields): Fields {
  const all: Record<string, unknown> = { ...below }
  for (const [key, value] of Object.entries(above)) {
    const other = Object.hasOwn(below, key) ? below[key] : undefined
    all[key] = isRecord(value) && isRecord(other) ? nested(value, other) : value
  }
  return all
}

/** Records come back from the disk, so they are checked again. */
function isMappedRecord(value: unknown): value is MappedRecord {
  if (typeof value !== 'object' || value === null) return false
  const { source, device, provider, time, arrivedAt, gps, signals, fields, moving, withheld } =
    value as Partial<MappedRecord>
  return (
    typeof source === 'string' &&
    typeof device === 'string' &&
    typeof provider === 'string' &&
    typeof arrivedAt === 'number' &&
    (time === null || typeof time === 'number') &&
    (moving === null || typeof moving === 'boolean') &&
    (withheld === undefined || isWithheld(withheld)) &&
    (gps === '' || (typeof gps === 'string' && isJson(`{"":0${gps}}`))) &&
    (fields === '' || (typeof fields === 'string' && isJson(`{"":0${fields}}`))) &&
    Array.isArray(signals) &&
    signals.every((signal) => typeof signal === 'string' && isJson(`{"id":"${signal}`))
  )
}

function isWithheld({ gps, signals }: Partial<Withheld>): boolean {
  return typeof gps === 'boolean' && Array.isArray(signals)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    if (error instanceof SyntaxError) return false
    throw error
  }
}
