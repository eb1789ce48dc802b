// record-memory.ts: what memory says about the record at hand: the values that its device did not repeat.
// One instance serves all records of a mapper; `begin` starts the next one.

import type { EpochMs } from '../../std/clock.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { DeviceMemory } from '../memory/device-memory.ts'
import type { Memory } from '../memory/memory.ts'
import { lacksRemembered, remember, withRemembered } from '../memory/remembered-values.ts'
import type { RecordContext } from '../types.ts'
import type { CompiledSource, Fix } from './compiled-source.ts'

export type RecordMemory = {
  /** `time`: of the record, or its arrival. */
  begin(source: CompiledSource, entry: DeviceEntry, time: EpochMs): void
  /** The record lacks remembered values, so that its position is named whether they make it valid or not. */
  readonly mayChangeFix: boolean
  /** Whether the position is valid, with what is remembered. */
  isValid(fix: Fix, isValid: boolean): boolean
  /** The motion by a remembered value; null where there is none. */
  motion(): boolean | null
  /** Notes the values of the record. */
  note(): void
}

export function createRecordMemory(memory: Memory, context: RecordContext): RecordMemory {
  let source: CompiledSource | null = null
  let device: DeviceMemory | null = null
  let time: EpochMs = Number.NaN
  let mayChangeFix = false
  let full: unknown
  return {
    begin,
    get mayChangeFix() {
      return mayChangeFix
    },
    isValid,
    motion,
    note,
  }

  function begin(next: CompiledSource, entry: DeviceEntry, moment: EpochMs): void {
    source = null
    mayChangeFix = false
    if (next.remember === null) return
    source = next
    time = moment
    device = context.live ? memory.of(next.name, entry) : memory.known(next.name, entry)
    const { record } = context
    full = withRemembered(next.remember, device, record, time)
    mayChangeFix = next.fix !== null && lacksRemembered(next.remember, record)
  }

  function isValid({ validWithMemory }: Fix, isValidAlone: boolean): boolean {
    const { record, root, captures, up } = context
    if (source === null || validWithMemory === null || full === record) return isValidAlone
    return validWithMemory(full, root === record ? full : root, captures, up)
  }

  function motion(): boolean | null {
    const read = source?.remember?.motion ?? null
    const { record, root, up } = context
    if (read === null || full === record) return null
    return read(full, root === record ? full : root, up) ?? null
  }

  function note(): void {
    if (source === null || source.remember === null || device === null || !context.live) return
    if (remember(source.remember, device, context.record, time)) memory.changed(device)
  }
}
