// field-config.ts: what the fields of `map` have in common: the path, what counts as no value, the scale, and
// the words that compute a value (words/words.ts).

import { z } from 'zod'
import { bitMax, parseBits } from '../words/bits.ts'
import { paths, text } from './path-options.ts'

export const decimalComma = () =>
  z.boolean().optional().describe('Reads "48,85" as 48.85. Without it such a text is not a number.')

/** The keys of zod's enumeration, in their order. */
export const unitsOf = <Unit extends string>(units: Readonly<Record<Unit, unknown>>) =>
  z.enum(Object.keys(units) as [Unit, ...Unit[]])

export const scaling = {
  scale: z
    .number()
    .refine((value) => value !== 0, 'must not be 0')
    .default(1)
    .describe(
      'The value is multiplied by this before its unit is converted, such as 0.01 for steps of 10 m.',
    ),
  offset: z.number().default(0).describe('Added after scale and unit, in the unit that is sent.'),
}

export const constant = 'A constant instead of a path. Scale and unit apply to it too.'
export const instead =
  'The value for messages that have none. It does not replace a value that cannot be used.'

/** On every field. */
export const fieldWhen = () =>
  text(1024)
    .optional()
    .describe('Condition as in `when` of the source. Where it is false, the field is omitted.')

const bitOption = () =>
  z
    .union([z.int().min(0).max(bitMax), z.string()])
    .refine(
      (bit) => parseBits(String(bit)) !== undefined,
      `must be a bit from 0 to ${bitMax}, or a range of them such as 4-7`,
    )
    .optional()
    .describe(
      'A bit of a whole number, 0 or 1, or the number that a range of bits is: `bit: 3`, `bit: 4-7`. Bit 0 is the ' +
        'lowest. The number may be a text, also as 0x1F.',
    )

const table = <Value extends z.ZodType>(value: Value) =>
  z
    .record(z.string().max(200), value)
    .refine((values) => Object.keys(values).length > 0, 'must have at least one value')
    .refine((values) => Object.keys(values).length <= 256, 'must have at most 256 values')

const valuesOption = () =>
  table(
    z.union([z.boolean(), z.number(), z.string().max(200)]).describe('The value for this word or number.'),
  )
    .optional()
    .describe(
      'A table from the words or numbers of the message to other values: `values: { DRIVING: true, IDLE: false }`. ' +
        'The key `"*"` stands for every other value; without it, a value that the table does not have is omitted ' +
        'and counted.',
    )

/** What the words `bit` and `values` read. */
export const readingWords = () => ({ when: fieldWhen(), bit: bitOption(), values: valuesOption() })

const operand = (description: string) =>
  z
    .union([
      paths(),
      z.strictObject({
        path: paths().describe('Path to the second value.'),
        scale: z
          .number()
          .refine((value) => value !== 0, 'must not be 0')
          .default(1)
          .describe('The second value is multiplied by this, such as 65536 for the higher half of a number.'),
      }),
    ])
    .optional()
    .describe(description)

/** All words of a number. */
export const numberWords = () => ({
  ...readingWords(),
  negative: text(1024)
    .optional()
    .describe(
      'Condition as in `when` of the source. Where it holds, the number is negative: `negative: latDir == "S"`.',
    ),
  plus: operand(
    'Path to a second value, which is added before scale and unit: `path: trip, plus: odometerAtStart`. Where it is ' +
      'absent, the field is. `absent` and `decimal_comma` count for it, too. Sums and differences are exact decimals.',
  ),
  minus: operand('Path to a second value, which is subtracted before scale and unit.'),
  over: operand(
    'Path to a second value, by which the value is divided before scale and unit. A ratio that no decimal can express ' +
      'is rounded to six places. A division by zero is omitted and counted.',
  ),
})

/** A unit, or where the message names it. */
export const unitOption = <Unit extends string>(units: z.ZodType<Unit>) =>
  z.union([
    units,
    z.strictObject({
      path: paths().describe('Path to the name of the unit.'),
      values: table(units.clone().describe('The unit that this name means.')).describe(
        'From the names in the message to units: `{ kph: km/h, MPH: mph }`. With another name the value is omitted and counted.',
      ),
      default: units
        .optional()
        .describe('The unit of messages that name none. Without it their value is omitted and counted.'),
    }),
  ])
