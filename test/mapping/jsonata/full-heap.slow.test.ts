import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/std/clock.ts'
import { createEvaluator } from '../../../src/mapping/jsonata/jsonata.ts'

// On a slow machine the heap is collected for long before it is full.
test(
  'an expression that exhausts the heap ends its thread, not the process',
  { timeout: 120_000 },
  async () => {
    const text =
      '( $f := function($n, $l) { $n = 0 ? $count($l) : $f($n - 1, $map([1..9999], function($i) {' +
      ' $pad($string($n), 5000, $string($i)) })) }; $f(1000, []) )'
    const evaluator = createEvaluator(
      { clock: systemClock },
      {
        expressions: new Map([
          ['heap', text],
          ['good', 'a'],
        ]),
        limits: { timeoutMs: 100_000, depthMax: 100, sequenceMax: 10_000, resultTextMax: 1_000_000 },
        queueMax: 100,
        memoryMiB: 32,
      },
    )
    onTestFinished(() => evaluator.close())
    expect(await evaluator.evaluate('heap', {})).toMatchObject({
      kind: 'refused',
      reason: 'EXPRESSION_LIMIT',
    })
    expect(await evaluator.evaluate('good', { a: 1 })).toEqual({ kind: 'value', value: 1 })
  },
)
