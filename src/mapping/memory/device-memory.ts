// device-memory.ts: what is remembered of one device by one source. `settle` before `counters` are read.

import type { EpochMs } from '../../std/clock.ts'

export type Plain = string | number | boolean

export type RememberedValue = { time: EpochMs; value: Plain }

/** A longer text is no value that a later record is compared with. */
export const previousTextMax = 64

export type CounterReading = { time: EpochMs; value: number }

/** The newest plausible reading of a counter (counter-memory.ts). */
export type CounterState = CounterReading & {
  /** The readings that were withheld since; null for none. */
  run: {
    since: EpochMs
    withheld: number
    /** Those of them that count towards the most that may be withheld, and when the last one of them was. */
    counted: number
    countedAt: EpochMs
    /** How many of the last ones agree with each other, and since when. */
    agreeing: number
    agreeingSince: EpochMs
    last: CounterReading
    /** It began with a change by the factor of two units, and agrees with itself since. */
    isOtherUnit: boolean
  } | null
}

export type DeviceMemory = {
  /** Of its entry in the spool. */
  readonly key: string
  /** The asset of the last message. */
  asset: string
  /** By the names of `remember`, and `$previous.odo` of what the record before had. */
  values: Map<string, RememberedValue>
  /** By signal: `OBD_TOTAL_ENGINE_TIME ENGINE`. */
  counters: Map<string, CounterState>
  /** Those of `counters` at the places of the counters of the source; filled when they are used. */
  slots: (CounterState | undefined)[]
  /**
   * Time and value of each of `slots`, newer than there until `settle`; NaN where there is none, or readings
   * of it are withheld. They are side by side, since nearly every message is of another device, whose objects
   * are not in the cache of the processor.
   */
  levels: number[]
  /** False once it was forgotten. */
  inUse: boolean
}

/** What was known before a value of a record was noted for the next one. */
export type PreviousNote = { memory: DeviceMemory; name: string; before: RememberedValue | undefined }

/** Takes the newest readings over into `counters`. */
export function settle({ slots, levels }: DeviceMemory): void {
  for (let slot = 0; slot < slots.length; slot += 1) {
    const state = slots[slot]
    const time = levels[2 * slot] ?? Number.NaN
    if (state === undefined || Number.isNaN(time)) continue
    state.time = time
    state.value = levels[2 * slot + 1] ?? Number.NaN
  }
}

/** Fills them. Lists that grow would take four times as much. */
export function openSlots(memory: DeviceMemory, counters: readonly { readonly name: string }[]): void {
  memory.slots = counters.map(() => undefined)
  memory.levels = Array.from({ length: 2 * counters.length }, () => Number.NaN)
  for (const [slot, { name }] of counters.entries()) setLevel(memory, slot, memory.counters.get(name))
}

/** Notes the state of a counter at its place. */
export function setLevel(
  { slots, levels }: DeviceMemory,
  slot: number,
  state: CounterState | undefined,
): void {
  const isPlain = state !== undefined && state.run === null
  slots[slot] = state
  levels[2 * slot] = isPlain ? state.time : Number.NaN
  levels[2 * slot + 1] = isPlain ? state.value : Number.NaN
}
