// extract-config.ts: the option `extract` of a source: values that stand packed inside others.

import { z } from 'zod'
import { isGroup, j1939Types } from './j1939.ts'
import { layoutTypes } from './binary-layout.ts'

const text = (lengthMax: number) => z.string().min(1).max(lengthMax)

const fieldsMax = 256

/** `about` and the fields by name; a name is one key of the result. */
function named<Field extends z.ZodType>(field: Field, about: string) {
  return z
    .record(text(100), field)
    .refine((fields) => Object.keys(fields).length > 0, 'must have at least one field')
    .refine((fields) => Object.keys(fields).length <= fieldsMax, `must have at most ${fieldsMax} fields`)
    .describe(about)
}

const bits = {
  bit: z
    .int()
    .min(0)
    .max(63)
    .optional()
    .describe(
      'With `type: bits`: the lowest bit; 0 is the lowest of the byte at `at`, 8 that of the next byte.',
    ),
  length: z
    .int()
    .min(1)
    .max(32)
    .optional()
    .describe('With `type: bits`: how many bits, as an unsigned number; 1 where it is not said.'),
}

const scaling = {
  scale: z
    .number()
    .refine((value) => value !== 0, 'must not be 0')
    .default(1)
    .describe('The number is multiplied by this, exactly, such as 1e-7 for degrees or 0.05 for hours.'),
  offset: z.number().default(0).describe('Added after the scale.'),
  absent: z
    .array(z.number())
    .max(16)
    .default([])
    .describe('Numbers, before scale and offset, that mean "not there", such as 0x7fffffff.'),
}

type Bits = { type: string; bit?: number | undefined; length?: number | undefined }

const hasItsBit = (field: Bits) => field.type !== 'bits' || field.bit !== undefined
const hasNoBits = (field: Bits) =>
  field.type === 'bits' || (field.bit === undefined && field.length === undefined)
const bitMissing = { path: ['bit'], message: 'is required with the type bits' }
const bitTooMuch = { path: ['type'], message: 'must be bits where `bit` or `length` is given' }

const layoutField = z
  .strictObject({
    at: z
      .int()
      .min(-65_536)
      .max(65_535)
      .describe('The first byte, counted from 0; below zero from the end: -1 is the last byte.'),
    type: z
      .enum(layoutTypes)
      .describe(
        'How the number is written: unsigned or signed (`u8`, `i8`, `u16le`, ... `i32be`), floating (`f32le` ... ' +
          '`f64be`), or `bits`. `le` has the lowest byte first, `be` the highest.',
      ),
    ...bits,
    ...scaling,
  })
  .refine(hasItsBit, bitMissing)
  .refine(hasNoBits, bitTooMuch)

const j1939Signal = z
  .strictObject({
    pgn: z
      .int()
      .min(0)
      .max(0x3ffff)
      .refine(isGroup, 'must be a parameter group: one below 0xF000 that is addressed to somebody ends in 00')
      .describe('Parameter group number, such as 65253 for engine hours.'),
    at: z
      .int()
      .min(0)
      .max(1784)
      .describe('The first byte, counted from 0, while the standard counts from 1.'),
    type: z
      .enum(j1939Types)
      .describe(
        'How the number is written; its highest values (FB to FF in the highest byte, the two highest of `bits`) ' +
          'say that there is none.',
      ),
    ...bits,
    ...scaling,
  })
  .refine(hasItsBit, bitMissing)
  .refine(hasNoBits, bitTooMuch)

const common = {
  from: z
    .union([text(1024), z.array(text(1024)).min(1).max(16)])
    .describe(
      'Path to the packed value, or a list of paths of which the first with a value is taken. Where it is not ' +
        'there or cannot be unpacked, nothing is added.',
    ),
  into: text(256)
    .meta({ examples: ['raw', 'decoded'] })
    .describe(
      'The key under which the result stands in the message for all other options. Dots are part of the key. A key ' +
        'that the message has already is left as it is.',
    ),
  when: text(1024).optional().describe('Condition as in `when` of the source; unpacked only where it holds.'),
}

const packed = z.strictObject({
  as: z.enum(['base64', 'hex']).describe('How the bytes are written.'),
  ...common,
  layout: named(
    layoutField,
    'Which numbers stand where in the bytes. Without it the result is the bytes as text.',
  ).optional(),
})

const j1939 = z.strictObject({
  as: z.literal('j1939').describe('Frames of a CAN bus: `{ id, data }` each, or a list of them.'),
  ...common,
  signals: named(
    j1939Signal,
    'Which values are taken from which parameter group. Of several frames the first that has the value gives it.',
  ),
})

const json = z.strictObject({ as: z.literal('json').describe('JSON that stands in a text.'), ...common })

export const extractSchema = z
  .array(z.discriminatedUnion('as', [packed, j1939, json]))
  .max(64)
  .default([])
  .describe(
    'Unpacks values inside the message before anything else is read from it: binary fields, CAN frames, JSON in a ' +
      'text. One after the other: a later one may unpack what an earlier one added.',
  )

export type ExtractConfig = z.output<typeof extractSchema>[number]
