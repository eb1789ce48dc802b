// device-memory.ts: what is remembered of one device by one source.

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
  /** False once it was forgotten. */
  inUse: boolean
}

/** What was known before a value of a record was noted for the next one. */
export type PreviousNote = { memory: DeviceMemory; name: string; before: RememberedValue | undefined }
