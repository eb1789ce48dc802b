import { describe, expect, test } from 'vitest'
import { compileExpression, withinLimit } from '../../../src/mapping/expression/expression.ts'
import { StepLimit, stepsMax } from '../../../src/mapping/expression/step-budget.ts'
import { functionRows } from '../../../src/mapping/expression/functions/functions.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { placed } from '../../support/placed.ts'

/** Milliseconds of one evaluation. */
const timeMax = 5

/** `npm run test:system` has more. */
const messagesMax = Number(process.env['HOSTILE_MESSAGES'] ?? 60)

/** Evaluations until the code is compiled. */
const warmUp = 200

const examples = [
  'lo + hi * 256',
  'data.filter(d, has(d.lat) && d.lat != 0)',
  'data.exists(d, data.exists(e, e.id == d.id && e.lat > d.lat))',
  'data.map(d, {"lat": d.lat, "text": name + name + string(d.id)})',
  'data.map(d, name.replace("a", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"))',
  'data.all(d, name.split(",").exists(p, p == d.id))',
  'data.exists(d, d.id.matches("^(([a-z])+.)+[A-Z]([a-z])+$"))',
  'name.matches("(a+)+$") || id.matches("(a|aa)*b")',
  '[name, name, name].join(name)',
  ...functionRows.map(({ example }) => example),
]

const names = `lo hi x id name data trip start fuel din status temperature age lat ns vin state odo
  latlng date time positions samples a b`.split(/\s+/)

describe('hostile messages', () => {
  test.each(examples)(`take at most ${timeMax} ms each: %s`, (text) => {
    const read = compileExpression(text, ['kind'])
    const random = createRandom(7)
    const messages = Array.from({ length: warmUp + messagesMax }, () => hostileRecord(random))
    const evaluate = (message: unknown) => withinLimit(() => read(placed(message, { captures: ['kind'] })))
    for (const message of messages.slice(0, warmUp)) evaluate(message)
    for (const message of messages.slice(warmUp)) {
      expect(sizeOf(evaluate(message))).toBeLessThan(400_000)
      expect(quickestMs(() => evaluate(message))).toBeLessThan(timeMax)
    }
  })
})

test('a list that needs more steps than an evaluation has ends it', () => {
  const read = compileExpression('data.exists(d, d == 7)', [])
  const listOf = (length: number) => ({ data: Array.from({ length }, () => 1) })
  expect(read(placed(listOf(stepsMax)))).toBe(false)
  expect(() => read(placed(listOf(stepsMax + 1)))).toThrow(StepLimit)
  expect(read(placed(listOf(1)))).toBe(false)
})

/** Of at most fifty times: another process, or a collection of garbage, may fall into one. */
function quickestMs(evaluate: () => unknown): number {
  const times: number[] = []
  do {
    const before = performance.now()
    evaluate()
    times.push(performance.now() - before)
  } while (times.length < 50 && Math.min(...times) >= timeMax)
  return Math.min(...times)
}

function hostileRecord(random: Random): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, hostileValue(random)]))
}

const long = 'a'.repeat(200_000)
const commas = ','.repeat(100_000)
const list = Array.from({ length: 10_000 }, (_, id) => ({ id, lat: id % 180 }))
const texts = Array.from({ length: 10_000 }, () => ({ id: 'a'.repeat(250) }))
let deep: unknown = 1
for (let level = 0; level < 1000; level += 1) deep = [deep]
const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`key${at}`, [at]]))

function hostileValue(random: Random): unknown {
  return random.pick<unknown>([
    1,
    -0,
    1e308,
    -1e308,
    5e-324,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    null,
    true,
    '',
    hostileText(random),
    list,
    texts,
    deep,
    wide,
    {},
    [],
    [[[]]],
    { a: wide, b: list },
  ])
}

function hostileText(random: Random): string {
  return random.pick([
    long,
    commas,
    'a'.repeat(256),
    '1'.repeat(40),
    '9'.repeat(5000),
    '0x'.padEnd(18, 'f'),
    '12,5',
    '\u0000\ud800',
    '-',
  ])
}

/** Values and characters. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (!Array.isArray(value)) return 1
  return value.reduce<number>((sum, one) => sum + (typeof one === 'string' ? one.length : 1), 0)
}
