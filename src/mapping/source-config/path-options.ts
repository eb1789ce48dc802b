// path-options.ts: the schema of options that many fields have: the path to a value, values that mean none.

import { z } from 'zod'
import { nearest } from '../../std/nearest-word.ts'
import { quote } from '../../std/quote.ts'
import { unitOf } from '../plausibility/quantities.ts'

const expressionMax = 4096

export const text = (lengthMax: number) => z.string().min(1).max(lengthMax)

/** One path, or several of which the first that finds a value counts. */
export const paths = () => z.union([text(1024), z.array(text(1024)).min(1).max(64)])

/** `{ path: ... }` in the place of a template. */
export const pathOption = (description: string) => z.strictObject({ path: paths().describe(description) })

/** `{ path: ... }` or `{ expr: ... }`. */
export const foundBy = (what: string) =>
  [
    pathOption(`Path to ${what}.`),
    z.strictObject({ expr: text(expressionMax).describe(`An expression (CEL) that gives ${what}.`) }),
  ] as const

/** Of a field: each path of the list may have a condition. */
const fieldPaths = () =>
  z.union([
    text(1024),
    z
      .array(
        z.union([
          text(1024),
          z.strictObject({
            path: text(1024).describe('Path as elsewhere.'),
            when: text(1024).describe(
              'Condition as in `when` of the source. Where it is false, the path is passed over.',
            ),
          }),
        ]),
      )
      .min(1)
      .max(64),
  ])

export const path = () =>
  fieldPaths()
    .meta({ examples: ['gps.lat', '"position.latitude"', 'records[0].speed'] })
    .optional()
    .describe(
      'Path to the value in the message: keys joined by dots, a key with dots, blanks or brackets in ' +
        'quotes. `[0]` and `[-1]` are elements of a list, `list[id=5].val` is the first object of a list ' +
        'whose key has this value, `$first()` the value of the first key, `$split(",")[0]` a part of a ' +
        'text, `$entries()` an object as a list of { key, value }. Where `each` selects a part of the message, a leading `$.` starts at the ' +
        'whole message and `$up.` one level further out (`$up.$up.` two, up to the number of paths in `each`). In a list of paths the first one with a value is ' +
        'used; `{ path: speed.can, when: canOk == 1 }` in it counts only where its condition holds. Set one of `path`, `expr` and `value`.',
    )

/** Of a field, instead of its path. */
export const expr = () =>
  text(expressionMax)
    .meta({ examples: ['lo + hi * 256', 'valid == 1 ? speed.can : gps.speed'] })
    .optional()
    .describe(
      'An expression (CEL) that gives the value, instead of `path`. All other options of the field apply to its ' +
        'result. docs/mapping.md says what it can do.',
    )

export const absent = () =>
  z
    .array(z.union([z.number(), z.string().max(64)]))
    .max(32)
    .optional()
    .describe('Values that mean "no value", such as -1, "-" or the 255 of a byte.')

// What the fields of `map` have in common: the condition, the table of values, the scale.

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
