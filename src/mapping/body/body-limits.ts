// body-limits.ts: what the body of a message may need, for all encodings. A message with more is refused,
// with the option that allows it: while one message is read, all others wait.
//
//   unpackedBytesMax   `max_unpacked_bytes`: its size after it was unpacked
//   valuesMax          texts and numbers in it, fields of CSV; an object or a list counts as two. They follow
//                      `max_records`: a record of a vehicle has some ten values, and an empty object is three
//                      bytes of a message and 60 of memory

import { refused } from '../reasons.ts'

export type BodyLimits = { readonly unpackedBytesMax: number; readonly valuesMax: number }

const valuesPerRecord = 128
/** Also where a message may have few records. */
const recordsMin = 1000

export const usualLimits: BodyLimits = limitsOf(256 * 1024, recordsMin)

export function limitsOf(unpackedBytesMax: number, recordsMax: number): BodyLimits {
  return { unpackedBytesMax, valuesMax: valuesPerRecord * Math.max(recordsMin, recordsMax) }
}

export function tooManyValues({ valuesMax }: BodyLimits): ReturnType<typeof refused> {
  const records = valuesMax / valuesPerRecord
  const detail = `The message has more than ${valuesMax} values: ${valuesPerRecord} for each of ${records} records (max_records of the source).`
  return refused('TOO_MANY', detail)
}
