// field-config.ts: what the fields of `map` have in common: the condition, the table of values, the scale.

import { z } from 'zod'
import { nearest } from '../../std/nearest-word.ts'
import { quote } from '../../std/quote.ts'
import { unitOf } from '../plausibility/quantities.ts'
import { absent, expr, path, text } from './path-options.ts'

/** The keys of zod's enumeration, in their order. */
export const unitsOf = <Word extends string>(
  units: Readonly<Record<Word, unknown>>,
  /** What to write for a unit of another quantity, whose word is known to the interface. */
  otherwise?: (unit: string) => string,
) => {
  const words = Object.keys(units) as [Word, ...Word[]]
  return z.enum(words, {
    error: ({ input }) => {
      if (typeof input !== 'string' || nearest(input, words) !== undefined) return undefined
      const found = `must be one of ${words.join(', ')}, found ${quote(input, 40)}`
      return otherwise && `${found}. ${otherwise(unitOf(input) ?? input.toUpperCase())}`
    },
  })
}

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

/** On every field. */
export const fieldWhen = () =>
  text(1024)
    .optional()
    .describe('Condition as in `when` of the source. Where it is false, the field is omitted.')

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

/** What every field of a value has: where the value is, or a constant. */
export const foundShape = <Value extends z.ZodType>(
  value: Value,
  description = 'A constant instead of a path.',
) => ({
  path: path(),
  expr: expr(),
  value: value.optional().describe(description),
  absent: absent(),
  when: fieldWhen(),
  values: valuesOption(),
})
