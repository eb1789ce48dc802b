// previous-record.ts: what paths that begin with `$previous` read: values of the newest earlier record of the
// device. They are put on the record at hand under a symbol, so that they are no key of the message, and no
// message can have them.

import type { EpochMs } from '../../std/clock.ts'

/** By the path of the value, such as `$previous.odo`. */
export type PreviousValues = ReadonlyMap<string, { readonly time: EpochMs; readonly value: unknown }>

/** The time of the newest earlier record, in milliseconds. */
export const previousTimeName = '$previous.$time'

const key = Symbol('previous')

type Carrier = { [key]?: PreviousValues | null }

/** A record that is no object has none. */
export function setPrevious(record: unknown, values: PreviousValues | null): void {
  if (typeof record === 'object' && record !== null && Object.isExtensible(record))
    (record as Carrier)[key] = values
}

/** All of a record; null where there are none. */
export function previousValuesOf(record: unknown): PreviousValues | null {
  return typeof record === 'object' && record !== null ? ((record as Carrier)[key] ?? null) : null
}

export function previousIn(record: unknown, name: string): unknown {
  return previousValuesOf(record)?.get(name)?.value
}
