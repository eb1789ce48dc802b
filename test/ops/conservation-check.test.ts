import { expect, test } from 'vitest'
import { ConservationCheck, type Conservation } from '../../src/ops/conservation-check.ts'
import { createConditions } from '../../src/ops/conditions/conditions.ts'
import { handClock, ingestCounters, opsWorld, stages, startedOps } from '../support/ops-world.ts'

const payloads = { recovered: 5, appended: 9, gone: 3, open: 2, difference: 9 }

function conservation(difference: number, more: Partial<Conservation> = {}): Conservation {
  return {
    messages: { received: 10, carried: 0, split: 0, accounted: 10 - difference, difference },
    payloads: { recovered: 0, appended: 0, gone: 0, open: 0, difference: 0 },
    lanes: [],
    ...more,
  }
}

function world() {
  const clock = handClock()
  const conditions = createConditions({ clock })
  const conservation = new ConservationCheck(clock)
  return {
    check: (numbers: Conservation, isUncertain?: boolean) => {
      conservation.check(numbers, isUncertain)
      conditions.look(conservation.causes())
    },
    move: clock.move,
    open: () => conditions.open(),
  }
}

test.each([
  ['messages', conservation(2), /./],
  ['payloads', conservation(0, { payloads }), /2 in the spool/],
])('a difference of the %s that lasts is critical, until they add up', (key, wrong, what) => {
  const { check, move, open } = world()
  check(wrong)
  move(9999)
  check(wrong)
  expect(open()).toEqual([])
  move(1)
  check(wrong)
  expect(open()).toMatchObject([{ code: 'CONSERVATION_BROKEN', key, severity: 'critical' }])
  expect(open()[0]?.what).toMatch(what)
  check(conservation(0))
  expect(open()).toEqual([])
})

test('a difference of the payloads that is seen while writes run, twice by chance, is none', () => {
  const { check, move, open } = world()
  check(conservation(0, { payloads }), true)
  move(20_000)
  check(conservation(0, { payloads: { ...payloads, appended: 22, gone: 11 } }), true)
  expect(open()).toEqual([])
  check(conservation(0, { payloads }))
  move(10_000)
  check(conservation(0, { payloads }))
  expect(open()).toMatchObject([{ code: 'CONSERVATION_BROKEN', key: 'payloads' }])
})

test('a difference that changes is no fault', () => {
  const { check, move, open } = world()
  for (const difference of [1, 2, 1, 0, 1, 3]) {
    check(conservation(difference))
    move(9000)
  }
  expect(open()).toEqual([])
})

test('a lane that does not add up is critical at once', () => {
  const { check, open } = world()
  check(conservation(0, { lanes: [{ id: 1, appended: 7, settled: 3, open: 3, difference: 1 }] }))
  expect(open()).toMatchObject([{ code: 'CONSERVATION_BROKEN', key: 'lane 1', severity: 'critical' }])
  expect(open()[0]?.what).toBe('Lane 1: 7 appended, but 3 settled and 3 open.')
})

test('payloads that are missing after a loss of the store do not add up any more', async () => {
  await using of = opsWorld()
  const recovered = { lanes: 1, batches: 0, bytes: 1, windowIds: 0, damaged: 0, tookMs: 1 }
  const recover = (payloads: number, unconfirmedWrites: number) =>
    of.ops.emit({ kind: 'spool_recovered', ...recovered, payloads, unconfirmedWrites })
  recover(7, 0)
  of.ops.attach(stages({ ingest: ingestCounters(), lanes: [] }))
  const sum = () => of.ops.status().internals.conservation.payloads
  const before = sum().difference
  recover(0, 0)
  expect(sum()).toMatchObject({ recovered: 7, difference: before })
  // A write that failed and is there all the same explains a difference.
  recover(0, 1)
  expect(sum()).toMatchObject({ difference: 0 })
})

test('a sum that does not add up is in the log within 30 s, though nobody asks', async () => {
  await using world = await startedOps()
  world.ops.attach(stages({ ingest: ingestCounters({ received: 3 }) }))
  world.clock.move(30_000)
  const broken = world.output.lines().filter(({ code }) => code === 'CONSERVATION_BROKEN')
  expect(broken).toMatchObject([{ event: 'condition_raised', level: 'error', key: 'messages' }])
})
