import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/std/clock.ts'
import { createEvaluator, type Evaluator } from '../../../src/mapping/jsonata/jsonata.ts'
import { checkExpression } from '../../../src/mapping/jsonata/jsonata-expression.ts'

const limits = { timeoutMs: 250, depthMax: 100, sequenceMax: 10_000, resultTextMax: 1_000_000 }

/** Backtracks practically without end. */
const endless = '$match(text, /^(a+)+$/)'
const attack = { text: `${'a'.repeat(60)}b` }

let evaluator: Evaluator | null = null
afterEach(() => evaluator?.close())

function open(expressions: Record<string, string>, options = {}): Evaluator {
  evaluator = createEvaluator(
    { clock: systemClock },
    {
      expressions: new Map(Object.entries(expressions)),
      limits: { ...limits, ...options },
      queueMax: 100,
      memoryMiB: 64,
      ...options,
    },
  )
  return evaluator
}

const failed = (reason: string) => ({
  kind: 'refused',
  reason,
  detail: expect.stringMatching(/\.$/) as string,
})

describe('an expression', () => {
  test('makes an object or a list of objects from a message', async () => {
    const { evaluate } = open({
      one: '{ "lat": pos[0], "when": $number(t) * 1000 }',
      many: 'readings.{ "lat": $[0], "n": $count($) }',
    })
    expect(await evaluate('one', { pos: [48.1, 11.5], t: '17' })).toEqual({
      kind: 'value',
      value: { lat: 48.1, when: 17_000 },
    })
    expect(await evaluate('many', { readings: [{ a: 1 }, { a: 2 }] })).toEqual({
      kind: 'value',
      value: [
        { lat: { a: 1 }, n: 1 },
        { lat: { a: 2 }, n: 1 },
      ],
    })
  })

  test('reads the user properties of its message as $properties, and never those of the message', async () => {
    const { evaluate } = open({ all: '{ "vin": $properties.vin, "n": $count($keys($properties)) }' })
    const userProperties = Object.assign(Object.create(null) as Record<string, string>, { vin: 'V1' })
    const forged = { properties: { vin: 'forged' }, $properties: { vin: 'forged' } }
    expect(await evaluate('all', forged, { message: { userProperties } })).toMatchObject({
      value: { vin: 'V1', n: 1 },
    })
    // Those of the message before are gone.
    expect(await evaluate('all', forged)).toMatchObject({ value: { n: 0 } })
    expect(await evaluate('all', forged, { message: { userProperties: null } })).not.toHaveProperty(
      'value.vin',
    )
  })

  test('reads the other properties of its message as $packet', async () => {
    const { evaluate } = open({ all: '{ "type": $packet.content_type, "n": $count($keys($packet)) }' })
    const message = { properties: { contentType: 'text/csv', expiryS: 60 } }
    const forged = { packet: { content_type: 'forged' }, $packet: { content_type: 'forged' } }
    expect(await evaluate('all', forged, { message })).toMatchObject({ value: { type: 'text/csv' } })
    expect(await evaluate('all', forged)).toEqual({ kind: 'value', value: { n: 0 } })
  })

  test('that selects nothing gives an undefined value', async () => {
    expect(await open({ none: 'a.b' }).evaluate('none', {})).toEqual({ kind: 'value', value: undefined })
  })

  test('that fails refuses its message with the error of JSONata', async () => {
    const { evaluate } = open({ sum: '$sum(a)' })
    expect(await evaluate('sum', { a: ['x'] })).toEqual({
      kind: 'refused',
      reason: 'EXPRESSION_FAILED',
      detail: expect.stringContaining('Argument 1 of function "sum"') as string,
    })
    expect(await evaluate('sum', { a: [1, 2] })).toEqual({ kind: 'value', value: 3 })
  })

  test.each([
    ['recurses without end', '( $f := function($n) { 1 + $f($n) }; $f(1) )', 'EXPRESSION_LIMIT'],
    ['loops without end', '( $f := function($n) { $f($n) }; $f(1) )', 'EXPRESSION_TIMEOUT'],
    ['makes a long list', '[1..100000]', 'EXPRESSION_LIMIT'],
    ['makes many lists', '$map([1..1000], function($i) { [1..1000] })', 'EXPRESSION_LIMIT'],
    ['makes long texts', '$map([1..9000], function($i) { $pad("", 1000, "x") })', 'EXPRESSION_LIMIT'],
    ['returns a function', '{ "f": function($x) { $x } }', 'EXPRESSION_FAILED'],
  ])('that %s refuses its message, and the next one is evaluated', async (_, text, reason) => {
    // Another limit than the time must refuse it, however slow the machine is.
    const timeoutMs = reason === 'EXPRESSION_TIMEOUT' ? limits.timeoutMs : 20_000
    const { evaluate, counters } = open({ bad: text, good: 'a' }, { timeoutMs })
    const [bad, good] = await Promise.all([evaluate('bad', {}), evaluate('good', { a: 1 })])
    expect(bad).toEqual(failed(reason))
    expect(good).toEqual({ kind: 'value', value: 1 })
    expect(counters()).toMatchObject({ evaluated: 2, refused: 1, waiting: 0 })
  })

  test('with a syntax error is reported with its position when the config is read', () => {
    expect(() => checkExpression('{ "lat": lat }')).not.toThrow()
    expect(() => checkExpression('a.b[')).toThrow(
      'is not a JSONata expression: Expected "]" before end of expression at position 4 near "a.b["',
    )
    expect(() => checkExpression('$match(a, /(/)')).toThrow('is not a JSONata expression')
  })
})

describe('a regular expression that never ends', () => {
  test('blocks neither the event loop nor other messages', async () => {
    const { evaluate, counters } = open({ regex: endless, good: 'a' })
    await evaluate('good', {})
    const order: number[] = []
    const calls = [
      evaluate('good', { a: 1 }),
      evaluate('regex', attack),
      evaluate('good', { a: 2 }),
      evaluate('regex', { text: 'aaa' }),
    ]
    for (const [index, call] of calls.entries()) void call.then(() => order.push(index))
    const all = Promise.all(calls)
    const loop = { isPending: true, turns: 0 }
    void all.then(() => (loop.isPending = false))
    for (; loop.isPending; loop.turns += 1) await new Promise(setImmediate)
    const outcomes = await all
    expect(outcomes[0]).toEqual({ kind: 'value', value: 1 })
    expect(outcomes[1]).toEqual(failed('EXPRESSION_TIMEOUT'))
    expect(outcomes[2]).toEqual({ kind: 'value', value: 2 })
    expect(outcomes[3]).toMatchObject({ kind: 'value', value: { match: 'aaa' } })
    expect(order).toEqual([0, 1, 2, 3])
    // If the expression ran in this thread, the loop would not turn until it ends.
    expect(loop.turns).toBeGreaterThan(20)
    expect(counters()).toMatchObject({ timeouts: 1, started: 2, waiting: 0 })
  })

  test('is terminated when the evaluator closes', async () => {
    const { evaluate, close } = open({ regex: endless }, { timeoutMs: 60_000 })
    const answer = evaluate('regex', attack)
    await close()
    expect(await answer).toEqual({ kind: 'later', why: 'closed' })
    expect(await evaluate('regex', attack)).toEqual({ kind: 'later', why: 'closed' })
  })
})

test('beyond the bound of the queue a call is refused with `later`', async () => {
  const opened = open({ good: 'a' }, { queueMax: 2 })
  const calls = [opened.evaluate('good', { a: 1 }), opened.evaluate('good', { a: 2 })]
  expect(opened.full()).toBe(true)
  expect(await opened.evaluate('good', { a: 3 })).toEqual({ kind: 'later', why: 'full' })
  expect(await Promise.all(calls)).toEqual([
    { kind: 'value', value: 1 },
    { kind: 'value', value: 2 },
  ])
  expect(opened.full()).toBe(false)
})

test('an aborted call is not evaluated', async () => {
  const { evaluate, counters } = open({ good: 'a' })
  const stop = new AbortController()
  const answer = evaluate('good', { a: 1 }, stop)
  stop.abort()
  expect(await answer).toEqual({ kind: 'later', why: 'aborted' })
  expect(await evaluate('good', { a: 1 }, stop)).toEqual({ kind: 'later', why: 'aborted' })
  expect(counters().evaluated).toBe(0)
})
