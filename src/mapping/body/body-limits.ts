// body-limits.ts: what the body of a message may need, for all encodings. A message with more is refused,
// with the option that allows it: while one message is read, all others wait.
//
//   unpackedBytesMax   `max_unpacked_bytes`: its size after it was unpacked
//   bytesMax           its size as it came: 2 KiB for each of `max_records`
//   valuesMax          texts and numbers in it, fields of CSV; an object or a list counts as two. They follow
//                      `max_records`: a record of a vehicle has some ten values, and an empty object is three
//                      bytes of a message and 60 of memory

import { refused } from '../reasons.ts'

export type BodyLimits = {
  readonly unpackedBytesMax: number
  readonly bytesMax: number
  readonly valuesMax: number
}

const bytesPerRecord = 2048
const valuesPerRecord = 128
/** Also where a message may have few records. */
const recordsMin = 1000

export const usualLimits: BodyLimits = limitsOf(256 * 1024, recordsMin)

export function limitsOf(unpackedBytesMax: number, recordsMax: number): BodyLimits {
  const records = Math.max(recordsMin, recordsMax)
  return { unpackedBytesMax, bytesMax: bytesPerRecord * records, valuesMax: valuesPerRecord * records }
}

type Refused = ReturnType<typeof refused>

export function tooManyValues({ valuesMax }: BodyLimits): Refused {
  return refused('TOO_MANY', moreThan(valuesMax, 'values', valuesPerRecord))
}

export function tooManyBytes({ bytesMax }: BodyLimits): Refused {
  return refused('TOO_LARGE', moreThan(bytesMax, 'bytes', bytesPerRecord))
}

function moreThan(most: number, what: string, perRecord: number): string {
  return `The message has more than ${most} ${what}: ${perRecord} for each of ${most / perRecord} records (max_records of the source).`
}
