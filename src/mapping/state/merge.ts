// merge.ts: one payload of what several sources say about one asset: the position of a phone, the odometer of
// a box that reads the vehicle's bus.
//
//   half     what one source says: a position, signals, or both
//   group    the sources whose halves go together; at most one half of each is in a payload
//   closed   when every source of the group contributed, when the window is over, when a source speaks again,
//            or when the times of two halves are further apart than the window
//
// The rules are those of coalesce.ts, with the asset as owner and the sources as names; so are durability and
// bounds. Of two positions the one of the source that stands first in the config is sent, of two signals of
// one type and part, and of two further fields of one name, likewise. The time is that of the half with the
// position, else of the first half; a half that is alone is sent as it is.

import type { EpochMs } from '../../std/clock.ts'
import type { ProviderName } from '../../domain/ids.ts'
import { createCoalescer, type CoalesceBounds, type Coalescer, type Step } from './coalesce.ts'
import { keepable } from './open-record.ts'

export type MappedRecord = {
  source: string
  device: string
  /** Null where the message had no time of its own: then `arrivedAt` counts. */
  time: EpochMs | null
  arrivedAt: EpochMs
  /** `,"gps":{...}` or ''. */
  gps: string
  /** What follows each signal's id: `","type":...}`. */
  signals: readonly string[]
  /** Further fields, `,"name":...` each, or ''. */
  fields: string
  /** What was derived and is no part of the payload's name; null where nothing was. */
  moving: boolean | null
}

/** As it is kept: who delivers it has to be known again later. */
export type StoredMappedRecord = MappedRecord & { provider: ProviderName }

export type MergeOptions = {
  /** The group's sources in the order of the config. */
  sources: readonly string[]
  windowMs: number
}

export type Merger = Omit<Coalescer, 'add' | 'fits'> & {
  /** False where the half is too large to be kept. */
  add(
    asset: string,
    half: StoredMappedRecord,
    messages: number,
    step: Step,
  ): 'taken' | 'duplicate' | 'too large'
  /** What the halves of a closed record say together; null where one of them cannot be read. */
  join(record: Readonly<Record<string, unknown>>): StoredMappedRecord | null
}

export function createMerger({ sources, windowMs }: MergeOptions, bounds: CoalesceBounds): Merger {
  const rules = { require: [], complete: sources, latest: [], windowMs, pairWithinMs: windowMs }
  const { fits, add: addValue, ...rest } = createCoalescer(rules, bounds)
  return { ...rest, add, join }

  function add(
    asset: string,
    half: StoredMappedRecord,
    messages: number,
    step: Step,
  ): 'taken' | 'duplicate' | 'too large' {
    const { source: name, arrivedAt, time } = half
    const kept = keepable(name, half)
    if (kept === null || !fits(name, kept.text)) return 'too large'
    return addValue(asset, { name, ...kept, time: time ?? Number.NaN, arrivedAt, messages }, step)
  }

  function join(record: Readonly<Record<string, unknown>>): StoredMappedRecord | null {
    const halves: StoredMappedRecord[] = []
    for (const source of sources) {
      const half = record[source]
      if (half === undefined) continue
      if (!isHalf(half)) return null
      halves.push(half)
    }
    const [first, ...others] = halves
    if (first === undefined || others.length === 0) return first ?? null
    const placed = halves.find(({ gps }) => gps !== '') ?? first
    return { ...placed, signals: allSignals(halves), fields: allFields(halves) }
  }
}

function allSignals(halves: readonly StoredMappedRecord[]): readonly string[] {
  const found = new Map<string, string>()
  for (const { signals } of halves) {
    for (const signal of signals) {
      const { type, assetPart } = JSON.parse(`{"id":"${signal}`) as { type: string; assetPart?: string }
      const key = JSON.stringify([type, assetPart])
      if (!found.has(key)) found.set(key, signal)
    }
  }
  return [...found.values()]
}

function allFields(halves: readonly StoredMappedRecord[]): string {
  const texts = halves.map(({ fields }) => fields).filter((fields) => fields !== '')
  if (texts.length < 2) return texts[0] ?? ''
  const all = texts
    .toReversed()
    .map((fields) => JSON.parse(`{${fields.slice(1)}}`) as Record<string, unknown>)
  return `,${JSON.stringify(Object.assign({}, ...all)).slice(1, -1)}`
}

/** Halves come back from the disk, so they are looked at once more. */
function isHalf(value: unknown): value is StoredMappedRecord {
  if (typeof value !== 'object' || value === null) return false
  const { source, device, provider, time, arrivedAt, gps, signals, fields, moving } =
    value as Partial<StoredMappedRecord>
  return (
    typeof source === 'string' &&
    typeof device === 'string' &&
    typeof provider === 'string' &&
    typeof arrivedAt === 'number' &&
    (time === null || typeof time === 'number') &&
    (moving === null || typeof moving === 'boolean') &&
    (gps === '' || (typeof gps === 'string' && isJson(`{"":0${gps}}`))) &&
    (fields === '' || (typeof fields === 'string' && isJson(`{"":0${fields}}`))) &&
    Array.isArray(signals) &&
    signals.every((signal) => typeof signal === 'string' && isJson(`{"id":"${signal}`))
  )
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
