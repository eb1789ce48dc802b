// extract-config.ts: the schema of the option `extract` of a source: values that are packed inside others.

import { z } from 'zod'
import { isGroup, j1939Types } from './j1939.ts'
import { layoutTypes } from './binary-layout.ts'
import { text } from '../source-config/path-options.ts'

const fieldsMax = 256

/** The fields by name; each name becomes a key of the result. */
function named<Field extends z.ZodType>(field: Field, description: string) {
  return z
    .record(text(100), field)
    .refine((fields) => Object.keys(fields).length > 0, 'must have at least one field')
    .refine((fields) => Object.keys(fields).length <= fieldsMax, `must have at most ${fieldsMax} fields`)
    .describe(description)
}

const bits = {
  bit: z
    .int()
    .min(0)
    .max(63)
    .optional()
    .describe(
      'With `type: bits`: the lowest bit. 0 is the lowest bit of the byte at `at`, 8 that of the next byte.',
    ),
  length: z
    .int()
    .min(1)
    .max(32)
    .optional()
    .describe('With `type: bits`: number of bits; they are one unsigned number. Default: 1.'),
}

const scaling = {
  scale: z
    .number()
    .refine((value) => value !== 0, 'must not be 0')
    .default(1)
    .describe(
      'The number is multiplied by this without rounding error, such as 1e-7 for degrees or 0.05 for hours.',
    ),
  offset: z.number().default(0).describe('Added after the scale.'),
  absent: z
    .array(z.number())
    .max(16)
    .default([])
    .describe('Numbers before scale and offset that mean "no value", such as 0x7fffffff.'),
}

type Bits = { type: string; bit?: number | undefined; length?: number | undefined }

/** A number in bytes. `place`: what tells which bytes, and its first byte. */
function numberIn<Place extends z.ZodRawShape, Type extends string>(
  place: Place,
  types: readonly Type[],
  typeText: string,
) {
  return z
    .strictObject({ ...place, type: z.enum(types).describe(typeText), ...bits, ...scaling })
    .refine((field) => (field as Bits).type !== 'bits' || (field as Bits).bit !== undefined, {
      path: ['bit'],
      message: 'is required with the type bits',
    })
    .refine(
      (field) => {
        const { type, bit, length } = field as Bits
        return type === 'bits' || (bit === undefined && length === undefined)
      },
      { path: ['type'], message: 'must be bits where `bit` or `length` is given' },
    )
}

const firstByte = (least: number, most: number, description: string) => ({
  at: z.int().min(least).max(most).describe(description),
})

const layoutField = numberIn(
  firstByte(
    -65_536,
    65_535,
    'The first byte, counted from 0. A negative number counts from the end: -1 is the last byte.',
  ),
  layoutTypes,
  'Binary type of the number: unsigned or signed (`u8`, `i8`, `u16le`, ... `i32be`), floating ' +
    '(`f32le` ... `f64be`), or `bits`. `le` has the lowest byte first, `be` the highest.',
).describe('A number in the bytes. Its name is a key of the result.')

const sourceAddress = z.union([z.int().min(0).max(255), z.literal('any')])

const j1939Signal = numberIn(
  {
    pgn: z
      .int()
      .min(0)
      .max(0x3ffff)
      .refine(
        isGroup,
        'must be a parameter group number: one below 0xF000 is addressed to a node and ends in 00',
      )
      .describe('Parameter group number, such as 65253 for engine hours.'),
    source: z
      .union([sourceAddress, z.array(sourceAddress).min(1).max(16)])
      .default(0)
      .describe(
        'Source address of the frames, such as 0 for the engine, 1 for a second engine, 23 for the instrument ' +
          'cluster, 238 for the tachograph; `any` for every address. In a list the first address that has a ' +
          'value is used, such as [0, any]. Default: 0.',
      ),
    ...firstByte(0, 1784, 'The first byte, counted from 0. The standard counts from 1.'),
  },
  j1939Types,
  'Binary type of the number. Its highest values (FB to FF in the highest byte, FA too where there are ' +
    'several bytes; the two highest of `bits`) mean that there is no value.',
).describe('A value of a parameter group. Its name is a key of the result.')

const obdSignal = numberIn(
  {
    service: z
      .int()
      .min(1)
      .max(0x3e)
      .default(1)
      .describe('OBD service of the answer: 1 is current data, 0x22 data of the maker.'),
    pid: z
      .int()
      .min(0)
      .max(0xffff)
      .describe('Identifier of the value, such as 0xA6 for the odometer; in service 0x22 it has two bytes.'),
    ...firstByte(0, 4092, 'The first byte behind the identifier, counted from 0. The standard calls it A.'),
  },
  layoutTypes,
  'Binary type of the number. OBD sends the highest byte first (`be`).',
).describe('A value of an answer. Its name is a key of the result.')

const common = {
  from: z
    .union([text(1024), z.array(text(1024)).min(1).max(16)])
    .describe(
      'Path to the packed value, or a list of paths of which the first one with a value is used. If ' +
        'there is no value, or it cannot be unpacked, nothing is added.',
    ),
  into: text(256)
    .meta({ examples: ['raw', 'decoded'] })
    .describe(
      'The key of the result in the message, for all other options. Dots are part of the key. If the ' +
        'message already has this key, nothing is changed.',
    ),
  when: text(1024)
    .optional()
    .describe('Condition as in `when` of the source. The value is unpacked only where it is true.'),
}

/** Of `as: WORD`. */
const unpacks = <Word extends string>(word: Word, description: string) => ({
  as: z.literal(word).describe(description),
  ...common,
})

const packed = z.strictObject({
  as: z.enum(['base64', 'hex']).describe('Encoding of the bytes.'),
  ...common,
  layout: named(
    layoutField,
    'The numbers in the bytes. Without it the result is the bytes as text.',
  ).optional(),
})

const j1939 = z.strictObject({
  ...unpacks('j1939', 'Frames of a CAN bus: `{ id, data }` each, or a list of them.'),
  signals: named(
    j1939Signal,
    'The values of parameter groups. Of several frames of one `source` the first one that has the value is ' +
      'used.',
  ),
})

const obd = z.strictObject({
  ...unpacks(
    'obd',
    'Answers to OBD requests in frames of a CAN bus: `{ id, data }` each, or a list of them.',
  ),
  signals: named(
    obdSignal,
    'The values of answers. Where several control units answer, that with the lowest identifier counts.',
  ),
})

const positions = z.strictObject(
  unpacks(
    'positions',
    'The positions in the object that a decoder made, whatever it calls them, as a list of records: each is ' +
      'a copy of the object that holds `from`, with `fix`: latitude, longitude, time (ms), ageMs and ' +
      'valid. A stored position, which has a time of its own, has its own part in the place of `from`.',
  ),
)

const json = z.strictObject(unpacks('json', 'JSON in a text.'))

const nmea = z.strictObject(
  unpacks(
    'nmea',
    'Sentences of NMEA 0183 in a text, or in a list of texts. The result is that of the encoding nmea: ' +
      '`records` with a record for each fix, `damaged` and `unchecked`.',
  ),
)

const secretbox = z.strictObject(
  unpacks(
    'secretbox',
    'A box of libsodium (XSalsa20 and Poly1305): base64 of a nonce of 24 bytes and the box, at most 64 KiB. It is ' +
      'opened with `keys` of the source. The result is `text`, and `json` where the text is JSON, or `fault`: ' +
      '"no key", "wrong key", "no box", "too large", "no text". It replaces a key of that name in the message.',
  ),
)

export const extractSchema = z
  .array(z.discriminatedUnion('as', [packed, j1939, obd, positions, json, nmea, secretbox]))
  .max(64)
  .default([])
  .describe(
    'Unpacks values inside the message before anything else is read from it: binary fields, CAN frames, ' +
      'JSON and NMEA sentences in a text, positions of decoders. They run in order: a later one may unpack what an earlier one added.',
  )

export type ExtractConfig = z.output<typeof extractSchema>[number]
