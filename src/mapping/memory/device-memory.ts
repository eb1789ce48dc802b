// device-memory.ts: what is remembered of one device by one source.

import type { EpochMs } from '../../std/clock.ts'

export type Plain = string | number | boolean

export type RememberedValue = { time: EpochMs; value: Plain }

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
  } | null
}

export type DeviceMemory = {
  /** Of its entry in the spool. */
  readonly key: string
  /** The asset of the last message. */
  asset: string
  /** By the names of `remember`. */
  values: Map<string, RememberedValue>
  /** By signal: `OBD_TOTAL_ENGINE_TIME ENGINE`. */
  counters: Map<string, CounterState>
  /** Those of `counters` at the places of the counters of the source; filled when they are used. */
  slots: (CounterState | undefined)[]
  /** False once it was forgotten. */
  inUse: boolean
}
