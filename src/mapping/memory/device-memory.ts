// device-memory.ts: what is remembered of one device by one source.

import type { EpochMs } from '../../std/clock.ts'

export type Plain = string | number | boolean

export type RememberedValue = { time: EpochMs; value: Plain }

export type DeviceMemory = {
  /** Of its entry in the spool. */
  readonly key: string
  /** The asset of the last message. */
  asset: string
  /** By the names of `remember`. */
  values: Map<string, RememberedValue>
}
