// attempt.ts: what the parts of a mapping say when they cannot go on: a refusal ends the message, an omission
// leaves out one field of it and is counted. Both are words from a closed list, so counters stay bounded.

/** Why a message became no payload; with one sentence each for the README's table. */
export const unmappableReasons = {
  NO_SOURCE: 'No source of the config has a topic pattern that matches.',
  NOT_UTF8: 'The bytes are not UTF-8.',
  NOT_JSON: 'The text is not JSON; the detail names the place.',
  TOO_DEEP: 'Objects and lists are nested deeper than any device nests them.',
  NOT_AN_OBJECT: 'The message, or what `each` selects in it, holds no fields.',
  TOO_MANY: 'The list that `each` selects is longer than a message may make payloads.',
  NO_DEVICE: 'What names the device is missing or empty.',
  BAD_DEVICE: 'What names the device is no name: too long, or a number that was rounded on the way.',
  NO_TIME: 'The time is missing, and the source does not allow the arrival time instead.',
  BAD_TIME: 'The time is not in the format that the source names, or is no time at all.',
  BAD_VALUE: 'Latitude or longitude is there but is no number.',
  OUT_OF_RANGE: 'Latitude is beyond 90 degrees or longitude beyond 180.',
  HALF_POSITION: 'One of latitude and longitude is missing.',
  NOTHING_TO_SEND: 'Neither a position nor a signal was found.',
} as const

export type UnmappableReason = keyof typeof unmappableReasons

export type Attempt = {
  /** Gives up on the message. */
  refuse(reason: UnmappableReason, detail: string): null
  /** Leaves out a field and counts it; `key` is `source|field|why`, made when the source was compiled. */
  omit(key: string): undefined
}
