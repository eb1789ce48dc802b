// turns.test.ts: what one connection and all of them may read in one turn, and when a turn ends.

import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns, type TurnBudget } from '../../../../src/ingest/broker/gate/turns.ts'

const unused = (): TurnBudget => ({ turn: 0, packets: 0, control: 0, bytes: 0 })
const immediates = () => process.getActiveResourcesInfo().filter((name) => name === 'Immediate').length

/** Of a connection, as the reader does it. */
function read(turns: ReturnType<typeof createTurns>, budget: TurnBudget, bytes: number): boolean {
  turns.refill(budget)
  budget.packets -= 1
  return turns.spendBytes(budget, bytes)
}

test('a few small reads need no turn of their own', async () => {
  const turns = createTurns()
  const before = immediates()
  for (let connection = 0; connection < 7; connection += 1) expect(read(turns, unused(), 351)).toBe(false)
  expect(immediates()).toBe(before)
})

test('after a turn with many reads, a few small ones need none again', async () => {
  const turns = createTurns()
  for (let connection = 0; connection < 20; connection += 1) read(turns, unused(), 351)
  await turn()
  const before = immediates()
  for (let connection = 0; connection < 7; connection += 1) read(turns, unused(), 351)
  expect(immediates()).toBe(before)
})

test('many small reads of many connections end the turn', async () => {
  const turns = createTurns()
  const budget = unused()
  for (let connection = 0; connection < 20; connection += 1) read(turns, unused(), 351)
  read(turns, budget, 351)
  expect(budget.packets).toBe(255)
  await turn()
  read(turns, budget, 351)
  expect(budget.packets).toBe(255)
})

test.each(['packets', 'control', 'bytes'] as const)(
  'a connection that has used half of its %s gets new ones in the next turn',
  async (kind) => {
    const turns = createTurns()
    const budget = unused()
    turns.refill(budget)
    const full = { ...budget }
    budget[kind] = Math.floor(full[kind] / 2) - 1
    turns.refill(budget)
    await turn()
    turns.refill(budget)
    expect(budget[kind]).toBe(full[kind])
  },
)

test('control packets of all connections: half of them used, and the next turn has all again', async () => {
  const turns = createTurns()
  const all = turns.controlLeft()
  turns.spendControl(all / 2 + 1)
  await turn()
  expect(turns.controlLeft()).toBe(all)
})

test('bytes of all connections: after them one read each, until the next turn', async () => {
  const turns = createTurns()
  const budgets = Array.from({ length: 33 }, unused)
  for (const budget of budgets) read(turns, budget, 64 * 1024)
  expect(read(turns, unused(), 8 * 1024)).toBe(true)
  await turn()
  expect(read(turns, unused(), 8 * 1024)).toBe(false)
})

test('a connection at its bound reads on in the next turn', async () => {
  const turns = createTurns()
  const budget = unused()
  expect(read(turns, budget, 64 * 1024)).toBe(true)
  let resumed = 0
  turns.resumeLater({ nextTurn: () => (resumed += 1) })
  await turn()
  expect(resumed).toBe(1)
  expect(read(turns, budget, 351)).toBe(false)
})

test('connections that find no control packets left read in the turn after, whoever else comes', async () => {
  const turns = createTurns()
  const order: string[] = []
  const connection = (name: string) => ({
    nextTurn() {
      order.push(name)
      turns.spendControl(200)
    },
  })
  for (const name of ['a', 'b', 'c']) turns.resumeLater(connection(name))
  await turn()
  expect(order).toEqual(['a', 'b'])
  await turn()
  expect(order).toEqual(['a', 'b', 'c'])
})

test('connections that could not read come before those that wait since then', async () => {
  const turns = createTurns()
  const order: string[] = []
  const connection = (name: string) => ({
    nextTurn() {
      order.push(name)
      turns.spendControl(200)
    },
  })
  for (const name of ['a', 'b', 'c']) turns.resumeLater(connection(name))
  await turn()
  turns.resumeLater(connection('d'))
  await turn()
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('connections that find no bytes left read in the turn after', async () => {
  const turns = createTurns()
  let resumed = 0
  const connection = () => ({
    nextTurn() {
      resumed += 1
      read(turns, unused(), 2 * 1024 ** 2)
    },
  })
  turns.resumeLater(connection())
  turns.resumeLater(connection())
  await turn()
  expect(resumed).toBe(1)
  await turn()
  expect(resumed).toBe(2)
})
