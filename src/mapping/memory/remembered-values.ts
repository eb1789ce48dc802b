// remembered-values.ts: the option `remember`: values that a device sends only when they change, such as the
// lock of its receiver or the ignition. A message without them is read as if it had the last ones.

import type { EpochMs } from '../../std/clock.ts'
import type { ReadBoolean } from '../fields/gps.ts'
import { isRecord } from '../path/path-eval.ts'
import type { DeviceMemory, Plain } from './device-memory.ts'

export type Remember = { names: readonly string[]; forMs: number }

export type CompiledRemember = Remember & {
  /** The motion in a message; null where `map` reads none. */
  motion: ReadBoolean | null
}

/** A longer text is no state of a device. */
const textLengthMax = 256

/** Whether the record lacks one of the values, so that it depends on the memory how it is read. */
export function lacksRemembered({ names }: Remember, record: unknown): boolean {
  return isRecord(record) && names.some((name) => (record[name] ?? null) === null)
}

/** The record with what was remembered by `time`; the same one where there is nothing to add. */
export function withRemembered(
  { names, forMs }: Remember,
  memory: DeviceMemory | null,
  record: unknown,
  time: EpochMs,
): unknown {
  if (memory === null || !isRecord(record)) return record
  let full = record
  for (const name of names) {
    const last = memory.values.get(name)
    if (last === undefined || (record[name] ?? null) !== null) continue
    if (last.time > time || time - last.time > forMs) continue
    if (full === record) full = { ...record }
    full[name] = last.value
  }
  return full
}

/** Notes the values of the record; whether something changed. */
export function remember({ names }: Remember, memory: DeviceMemory, record: unknown, time: EpochMs): boolean {
  if (!isRecord(record)) return false
  let isChanged = false
  for (const name of names) {
    const value = record[name]
    if (!isPlain(value)) continue
    const last = memory.values.get(name)
    if (last !== undefined && (last.time > time || (last.time === time && last.value === value))) continue
    memory.values.set(name, { time, value })
    isChanged = true
  }
  return isChanged
}

function isPlain(value: unknown): value is Plain {
  if (typeof value === 'string') return value.length <= textLengthMax
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}
