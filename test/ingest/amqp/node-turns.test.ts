import { expect, test } from 'vitest'
import { createNodeTurns } from '../../../src/ingest/amqp/node-turns.ts'
import type { AmqpNode } from '../../../src/ingest/amqp/types.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const nodes = ['a', 'b', 'c'].map((host): AmqpNode => ({ scheme: 'amqp', host, port: 5672 }))

function openTurns(first = 0) {
  const deps = { clock: createFakeClock(), random: () => 1 }
  const turns = createNodeTurns(deps, { nodes, reconnectFirstMs: 1000, reconnectMaxMs: 60_000 }, first)
  /** Host, and the pause after it failed. */
  const tries = (count: number, openMs: number | null = null) =>
    Array.from({ length: count }, () => [turns.node().host, turns.failed({}, openMs)])
  return { turns, tries }
}

test('the nodes are tried one after the other, and the back-off comes when all have failed', () => {
  const { turns, tries } = openTurns(4)
  expect(tries(2)).toEqual([
    ['b', 100],
    ['c', 100],
  ])
  expect(turns.isRoundOver()).toBe(false)
  expect(tries(1)).toEqual([['a', 1000]])
  expect(turns.isRoundOver()).toBe(true)
  expect(tries(3)).toEqual([
    ['b', 100],
    ['c', 100],
    ['a', 2000],
  ])
})

test('a connection begins a new round, and the back-off again where it was open for long', () => {
  const { turns, tries } = openTurns()
  tries(5)
  turns.opened()
  expect(tries(3, 9999).at(-1)).toEqual(['b', 2000])
  turns.opened()
  expect(tries(3, 10_000).at(-1)).toEqual(['b', 1000])
  turns.reset()
  expect(tries(3).at(-1)).toEqual(['b', 1000])
})
