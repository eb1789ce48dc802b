// remembered-values.ts: the option `remember`: values that a device sends only when they change, such as the
// lock of its receiver or the ignition. A message without them is read as if it had the last ones. What
// follows from it is no part of the name of a payload.

import type { EpochMs } from '../../std/clock.ts'
import type { Fix, SourcePlan } from '../compile/source-plan.ts'
import type { Memory } from '../memory/memory.ts'
import type { DeviceMemory, Plain } from '../memory/device-memory.ts'
import { isRecord } from '../path/path-eval.ts'
import { booleanFrom } from '../path/value.ts'
import type { Reading } from '../read/reading.ts'
import type { Place } from '../types.ts'

type Remember = NonNullable<SourcePlan['remember']>

/** A longer text is no state of a device. */
const textLengthMax = 256

/** The place of the record with what was remembered by `time`; the same one where there is nothing to add. */
export function withRemembered(
  { names, forMs }: Pick<Remember, 'names' | 'forMs'>,
  memory: DeviceMemory | null,
  place: Place,
  time: EpochMs,
): Place {
  const { record, root, up, captures } = place
  if (memory === null || !isRecord(record)) return place
  let full = record
  for (const name of names) {
    const last = memory.values.get(name)
    if (last === undefined || isGiven(record[name])) continue
    if (last.time > time || time - last.time > forMs) continue
    if (full === record) full = { ...record }
    full[name] = last.value
  }
  return full === record ? place : { record: full, root: root === record ? full : root, up, captures }
}

/** The record lacks remembered values, so that its position is named whether they make it valid or not. */
export function mayChangeFix({ record }: Reading, { remember }: SourcePlan): boolean {
  return remember !== null && isRecord(record) && remember.names.some((name) => !isGiven(record[name]))
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Whether the position is valid, with what is remembered. */
export function isValidByMemory(reading: Reading, { valid }: Fix, isValidAlone: boolean): boolean {
  return valid === null || reading.full === reading ? isValidAlone : valid(reading.full)
}

/** The motion by a remembered value; null where there is none. */
export function motionByMemory(reading: Reading, { remember }: SourcePlan): boolean | null {
  const read = remember?.motion ?? null
  if (read === null || reading.full === reading) return null
  return booleanFrom(read(reading.full)) ?? null
}

/** Notes the values of the record. */
export function noteRemembered(
  { memory, record, live }: Reading,
  { remember }: SourcePlan,
  time: EpochMs,
  { changed }: Pick<Memory, 'changed'>,
): void {
  if (remember === null || memory === null || !live || !isRecord(record)) return
  let isChanged = false
  for (const name of remember.names) {
    const value = record[name]
    if (!isPlain(value)) continue
    const last = memory.values.get(name)
    if (last !== undefined && (last.time > time || (last.time === time && last.value === value))) continue
    memory.values.set(name, { time, value })
    isChanged = true
  }
  if (isChanged) changed(memory)
}

function isPlain(value: unknown): value is Plain {
  if (typeof value === 'string') return value.length <= textLengthMax
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}
