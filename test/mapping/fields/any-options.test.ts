// Any words together, on any messages: a config compiles or has problems, every message has a result, a payload
// has the types of the interface, and the explanation says what the payload has.

import {
  anything,
  array,
  assert,
  constant,
  constantFrom,
  dictionary,
  oneof,
  property,
  record,
  type Arbitrary,
} from 'fast-check'
import { expect, test } from 'vitest'
import { ZodError } from 'zod'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import type { MappingConfig } from '../../../src/mapping/config.ts'
import { noDevices } from '../../../src/mapping/devices/device-table.ts'
import { createExplainer } from '../../../src/mapping/explain/explain.ts'
import { valueIn } from '../../../src/mapping/explain/explain-record.ts'
import { createPayloadCheck, type JsonObject } from '../../../src/sandbox/payload-check.ts'
import {
  configOf,
  messageOf,
  openMapperOf,
  payloadsIn,
  sentIn,
  truckSource,
} from '../../support/mapping-world.ts'

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

const expression = constantFrom('a + b', 'a / c', 'bit(a, 3)', 'number(l[0]) * 2', 'c ? a : b')
/** Where previous values may be read. */
const anyExpression = oneof(expression, constantFrom('previous.a', 'b - previous.b', 'previous.time'))
const angle = field({
  ...reading(path),
  ...scaling,
  unit: constantFrom('deg', 'rad', 'ddmm', 'dms'),
  hemisphere: record({ path }),
})
const signal = record({
  type: constantFrom('OBD_LIFETIME_ODOMETER', 'T', 'U'),
  how: field({
    ...reading(path, anyExpression),
    ...scaling,
    default: constant('7.10'),
    unit: oneof(unitOf('km', 'mi'), constant('duration')),
  }),
}).map(({ type, how }) => ({ ...how, type }))
const extraField = oneof(
  field({ ...reading(path, anyExpression), ...scaling, unit: unitOf('mph', 'knots') }).map((how) => ({
    ...how,
    type: 'number',
  })),
  record({
    type: constantFrom('text', 'boolean'),
    how: field({ ...reading(path, anyExpression, oneof(anyResults, booleans)), scale: constant(2) }),
  }).map(({ type, how }) => ({
    ...how,
    type,
  })),
)
const map = record(
  {
    latitude: angle,
    speed: field({ ...reading(path), ...scaling, default: constant(5), unit: unitOf('mph', 'm/s') }),
    heading: field({ ...reading(path), ...scaling }),
    in_motion: field(reading(path, expression, booleans)),
    signals: array(signal, { maxLength: 2 }),
    fields: dictionary(constantFrom('x', 'z'), extraField, { maxKeys: 2 }),
  },
  { requiredKeys: [] },
)
const value = oneof(
  constantFrom<unknown>(
    1,
    0,
    -0.1,
    5,
    1e21,
    2 ** 53,
    4_294_967_295,
    'N',
    'S',
    '1',
    '1,5',
    '-12.50',
    '5231.0S',
    '52 31 N',
    '1e5',
    '',
    null,
    true,
  ),
  anything({ maxDepth: 1 }),
)
const message = record(
  { a: value, b: value, c: value, l: array(value, { maxLength: 2 }) },
  { requiredKeys: [] },
)

const checkPayload = createPayloadCheck(new Set(['payloadId', 'identity', 'content', 'timestamp'] as const))

/** Null for what the schema or the compiler refuses. */
function soundConfigOf(source: unknown): MappingConfig | null {
  try {
    const config = configOf([source])
    return compileSources(config).problems.length === 0 ? config : null
  } catch (error) {
    if (error instanceof ZodError) return null
    throw error
  }
}

test('any words have a result, a sound payload and its explanation, or a problem in the config', () => {
  let sound = 0
  assert(
    property(map, array(message, { minLength: 1, maxLength: 3 }), (fields, contents) => {
      const source = truckSource(fields)
      const config = soundConfigOf(source)
      if (config === null) return
      sound += 1
      const { mapper, explain } = createExplainer({ devices: noDevices }, compileSources(config), config)
      const usual = openMapperOf([source])
      for (const [second, content] of contents.entries()) {
        const arriving = messageOf({
          ts: 1_763_690_000_000 + second * 1000,
          lat: 52.5,
          lon: 13.4,
          ...content,
        })
        const result = usual.map(arriving)
        const explained = explain(arriving, mapper.map(arriving))
        if (result.kind !== 'payloads') continue
        const payload = JSON.parse(payloadsIn(result)[0]?.json ?? '') as JsonObject
        expect(checkPayload(payload, true)).toEqual([])
        for (const { value: sent } of sentIn(result).signals ?? []) expect(sent).toMatch(/^-?\d+(\.\d+)?$/)
        const fields = explained.records[0]?.fields ?? []
        for (const one of fields.filter((field) => field.value !== undefined))
          expect(valueIn(payload, one)).toEqual(one.value)
      }
    }),
    { numRuns: 100 },
  )
  expect(sound).toBeGreaterThan(20)
}, 120_000)
