// any-fields.ts: the fields of a source with any options together, and any messages for them. Not all of them
// compile: options that exclude each other are a problem of the config.

import {
  anything,
  array,
  constant,
  constantFrom,
  dictionary,
  oneof,
  record,
  type Arbitrary,
} from 'fast-check'
import { ZodError } from 'zod'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import type { MappingConfig } from '../../../src/mapping/config.ts'
import { configOf } from '../../support/mapping-world.ts'

const path = constantFrom('a', 'b', 'c', 'l[0]', '$.b', 'a.$split(",")[0]')
const condition = constantFrom('a == 1', 'b > c', 'has(b)', '!b', 'a in ["N", 5]')
const pathOf = (one: Arbitrary<string>) =>
  oneof(one, array(oneof(one, record({ path: one, when: condition })), { minLength: 1, maxLength: 3 }))
const tableOf = <Value>(values: Arbitrary<Value>) =>
  dictionary(constantFrom('N', '1', 'true', '*', '-0.5'), values, { minKeys: 1, maxKeys: 3 })
const anyResults = constantFrom<unknown>('x', '12.50', 7, -1e-7, 1e21, true, '4294967295')
/** Of another kind than the field they are a problem of the config. */
const numbers = constantFrom<unknown>('12.50', 7, -1e-7, '')
const booleans = constantFrom<unknown>(true, 'no', 0, '')

const expression = constantFrom('a + b', 'a / c', 'bit(a, 3)', 'number(l[0]) * 2', 'c ? a : b')
/** Where previous values may be read. */
const anyExpression = oneof(expression, constantFrom('previous.a', 'b - previous.b', 'previous.time'))

const reading = (one: Arbitrary<string>, expr: Arbitrary<string> = expression, results = numbers) => ({
  path: pathOf(one),
  expr,
  values: tableOf(results),
  when: condition,
  absent: array(constantFrom(-1, '-', 5), { maxLength: 2 }),
})
const scaling = { scale: constantFrom(0.001, -3, 1e-30), offset: constantFrom(-40, 0.1) }
const unitOf = (...names: string[]) => constantFrom(...names)
const field = <Shape>(shape: { [Key in keyof Shape]: Arbitrary<Shape[Key]> }) =>
  record(shape, { requiredKeys: ['path' as keyof Shape] }).map((one) =>
    'expr' in one ? { ...one, path: undefined } : one,
  )

const angle = field({
  ...reading(path),
  ...scaling,
  unit: constantFrom('deg', 'rad', 'ddmm', 'dms'),
  hemisphere: record({ path }),
})
const quantity = constantFrom('none', 'temperature', 'battery')
const signal = record({
  type: constantFrom('OBD_LIFETIME_ODOMETER', 'T', 'U'),
  how: field({
    ...reading(path, anyExpression),
    ...scaling,
    unit: oneof(unitOf('km', 'mi'), constant('duration')),
    part: constant('ENGINE'),
    quantity,
  }),
}).map(({ type, how }) => ({ ...how, type }))
const extraField = oneof(
  field({ ...reading(path, anyExpression), ...scaling, unit: unitOf('mph', 'knots'), quantity }).map(
    (how) => ({ ...how, type: 'number' }),
  ),
  record({
    type: constantFrom('text', 'boolean'),
    how: field({ ...reading(path, anyExpression, oneof(anyResults, booleans)), scale: constant(2) }),
  }).map(({ type, how }) => ({ ...how, type })),
)
const motion = oneof(
  field(reading(path, expression, booleans)),
  record({ from: constant('speed'), above: constantFrom(0, 60), below: constant(0) }),
)
const time = oneof(
  constant({ path: 'ts', format: 'ms' }),
  record({
    path: constantFrom('ts', 'a', 'b'),
    format: constantFrom<unknown>('auto', ['iso', 'ms'], ['ms', 'words'], ['s', 'dmy']),
    zone: constantFrom('utc', 'device', 'Europe/Berlin'),
    missing: constant('arrival'),
    shift: constantFrom('-2h', '7168d'),
  }),
)

export const anyMap = record(
  {
    time,
    latitude: angle,
    speed: field({ ...reading(path), ...scaling, unit: unitOf('mph', 'm/s') }),
    heading: field({ ...reading(path), ...scaling }),
    in_motion: motion,
    signals: array(signal, { maxLength: 2 }),
    fields: dictionary(constantFrom('x', 'z'), extraField, { maxKeys: 2 }),
  },
  { requiredKeys: [] },
)

const value = oneof(
  constantFrom<unknown>(1, 0, -0.1, 5, 1e21, 2 ** 53, 4_294_967_295, null, true),
  constantFrom('N', 'S', '1', '1,5', '-12.50', '5231.0S', '52 31 N', '1e5', '', '13.05.2024 07:46:12'),
  anything({ maxDepth: 1 }),
)

export const anyMessage = record(
  { a: value, b: value, c: value, l: array(value, { maxLength: 2 }) },
  { requiredKeys: [] },
)

/** Null for what the schema or the compiler refuses. */
export function soundConfigOf(source: unknown): MappingConfig | null {
  try {
    const config = configOf([source])
    return compileSources(config).problems.length === 0 ? config : null
  } catch (error) {
    if (error instanceof ZodError) return null
    throw error
  }
}
