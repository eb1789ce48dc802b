// reasons.ts: the reasons of dead letters and of quarantine. Both are closed lists of stable codes, so that
// counters stay bounded; the sentences make the table in the documentation.

/** Why a message is unmappable. */
export const unmappableReasons = {
  BAD_TOPIC: 'The topic has "#", "+" or NUL, or is not UTF-8. A bridge got it from its broker.',
  OVERSIZED:
    'The message is larger than `max_packet_bytes` of its bridge. Beyond 80 KiB its bytes are not kept.',
  NO_SOURCE: 'No source of the config has a topic pattern that matches.',
  NOT_UTF8: 'The bytes are not UTF-8; or a text that the source reads has bytes that are not.',
  NOT_JSON: 'The text is not JSON; the detail names the place.',
  TOO_DEEP: 'Objects and lists are nested too deeply.',
  TRUNCATED: 'The binary message is shorter than it says.',
  BAD_CHECKSUM: 'The checksum of the frame is wrong: bytes were damaged in transfer.',
  BAD_FRAME: 'The bytes are not a message in the encoding of the source; the detail says what is wrong.',
  NO_BIRTH: 'The birth certificate that explains a Sparkplug message is missing.',
  NOT_AN_OBJECT: 'The message, or what `each` selects in it, is not an object with fields.',
  RECORD_CHANGED: 'The record that was kept is not at its place in the list any more: `each` was changed.',
  TOO_MANY: 'The message has more records, values or different keys than a message may have.',
  NO_NAME: 'The name of a value of a source with `coalesce` is missing or empty.',
  TOO_LARGE:
    'A value is too large to be collected, or a message has more bytes than `max_unpacked_bytes` or `max_records` allow.',
  DAMAGED_STATE: 'Collected values cannot be read any more; the bytes are kept.',
  UNKNOWN_PROVIDER: 'The config has no provider of this name.',
  EXPRESSION_LIMIT: 'An expression of the source needs more steps for this message than it may have.',
  NO_DEVICE: 'The device name is missing, empty, or a word that means none, such as null.',
  BAD_DEVICE: 'The device name is too long, or is not a text or whole number.',
  NO_TIME:
    'The time is missing, or stands for none (0001-01-01), and the source does not allow the arrival time instead.',
  BAD_TIME:
    'The time is not in the format of the source; the detail names the unit of a number in another one.',
  NO_ZONE:
    'The time has no zone, and neither has its device: no `zone` in the device table or in `defaults`.',
  BAD_VALUE: 'Latitude or longitude is not a number, or its hemisphere is unknown or contradicts it.',
  OUT_OF_RANGE: 'Latitude is beyond 90 degrees, or longitude beyond 180.',
  HALF_POSITION: 'One of latitude and longitude is missing.',
  FIELD_LOST:
    'It was sent without a field that the devices of the source had before. Mapped again, it gives what is missing, and no more.',
  NOTHING_TO_SEND: 'The message has neither a position nor a signal.',
} as const

export type UnmappableReason = keyof typeof unmappableReasons

/** Why a message is quarantined. */
export const quarantineReasons = {
  UNKNOWN_DEVICE: 'The device is not in the device table.',
  FUTURE: 'The device time is ahead by more than `clocks.future_max`.',
  PAST: 'The device time is behind by more than `clocks.past_max`. The detail names a cause where it is known.',
  UNSET_CLOCK: 'The device time is the time of a clock that was never set.',
} as const

export type QuarantineReason = keyof typeof quarantineReasons

/** The reasons that decoders give. */
export type DecodeFault =
  | 'NOT_UTF8'
  | 'NOT_JSON'
  | 'TOO_DEEP'
  | 'TOO_MANY'
  | 'TOO_LARGE'
  | 'TRUNCATED'
  | 'BAD_CHECKSUM'
  | 'BAD_FRAME'
  | 'NO_BIRTH'

export function refused(reason: DecodeFault, detail: string) {
  return { kind: 'refused', reason, detail } as const
}
