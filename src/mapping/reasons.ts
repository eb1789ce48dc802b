// reasons.ts: what the parts of a mapping say when they cannot go on: a refusal ends the message, an omission
// leaves out one field of it and is counted. Both are words from a closed list, so counters stay bounded.

/** Why a message became no payload; with one sentence each for the README's table. */
export const unmappableReasons = {
  NO_SOURCE: 'No source of the config has a topic pattern that matches.',
  NOT_UTF8: 'The bytes are not UTF-8.',
  NOT_JSON: 'The text is not JSON; the detail names the place.',
  TOO_DEEP: 'Objects and lists are nested deeper than any device nests them.',
  TRUNCATED: 'The binary message ends in the middle of what it announces.',
  BAD_CHECKSUM: 'The checksum of the frame is wrong: the bytes were damaged on the way.',
  BAD_FRAME: 'The bytes are no message of the encoding that the source names; the detail says what is wrong.',
  NO_BIRTH: 'A Sparkplug message uses what only the birth certificate of its node or device explains.',
  NOT_AN_OBJECT: 'The message, or what `each` selects in it, holds no fields.',
  TOO_MANY: 'The list that `each` selects is longer than a message may make payloads.',
  NO_NAME: 'What names the value of a source with `coalesce` is missing or empty.',
  TOO_LARGE: 'A value is larger than what can be collected of one device.',
  DAMAGED_STATE: 'Values that were collected cannot be read any more; what is left of them is kept.',
  UNKNOWN_PROVIDER: 'The source names a provider that the config does not have.',
  EXPRESSION_TIMEOUT: 'The JSONata expression of the source took too long.',
  EXPRESSION_LIMIT: 'The JSONata expression of the source went too deep or made too much.',
  EXPRESSION_FAILED: 'The JSONata expression of the source failed.',
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

/** Why a message is kept whole until something about it is known. */
export const quarantineReasons = {
  UNKNOWN_DEVICE: 'The device is not in the device table.',
  FUTURE: 'The device time lies further ahead than `clocks.future_max`.',
  UNSET_CLOCK: 'The device time is that of a clock that was never set.',
} as const

export type QuarantineReason = keyof typeof quarantineReasons
