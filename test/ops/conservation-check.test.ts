import { describe, expect, test } from 'vitest'
import { createConservationCheck, type Conservation } from '../../src/ops/conservation-check.ts'
import { createConditions } from '../../src/ops/conditions/conditions.ts'
import { handClock, ingestCounters, lane, opsWorld, stages, statusOf } from '../support/ops-world.ts'

function conservation(difference: number, laneDifference = 0): Conservation {
  const open = 4 - laneDifference
  return {
    messages: { received: 10, carried: 0, split: 0, accounted: 10 - difference, difference },
    payloads: { recovered: 0, appended: 0, gone: 0, open: 0, difference: 0 },
    lanes: [{ id: 1, appended: 7, settled: 3, open, difference: laneDifference }],
  }
}

describe('what was received is accounted for', () => {
  test('a difference of the messages that lasts is critical, until they add up', () => {
    const clock = handClock()
    const conditions = createConditions({ clock })
    const check = createConservationCheck({ clock, conditions })
    check(conservation(2))
    clock.move(9999)
    check(conservation(2))
    expect(conditions.open()).toEqual([])
    clock.move(1)
    check(conservation(2))
    expect(conditions.open()).toMatchObject([
      { code: 'CONSERVATION_BROKEN', key: 'messages', severity: 'critical' },
    ])
    check(conservation(0))
    expect(conditions.open()).toEqual([])
  })

  test('a difference of the payloads that lasts is critical, until they add up', () => {
    const clock = handClock()
    const conditions = createConditions({ clock })
    const check = createConservationCheck({ clock, conditions })
    const payloads = { recovered: 5, appended: 9, gone: 3, open: 2, difference: 9 }
    check({ ...conservation(0), payloads })
    clock.move(10_000)
    check({ ...conservation(0), payloads })
    expect(conditions.open()).toMatchObject([
      { code: 'CONSERVATION_BROKEN', key: 'payloads', what: expect.stringContaining('2 in the spool') },
    ])
    check(conservation(0))
    expect(conditions.open()).toEqual([])
  })

  test('a difference of the payloads that is seen while writes run, twice by chance, is none', () => {
    const clock = handClock()
    const conditions = createConditions({ clock })
    const check = createConservationCheck({ clock, conditions })
    const payloads = { recovered: 0, appended: 20, gone: 9, open: 10, difference: 1 }
    check({ ...conservation(0), payloads }, true)
    clock.move(20_000)
    check({ ...conservation(0), payloads: { ...payloads, appended: 22, gone: 11 } }, true)
    expect(conditions.open()).toEqual([])
    check({ ...conservation(0), payloads })
    clock.move(10_000)
    check({ ...conservation(0), payloads })
    expect(conditions.open()).toMatchObject([{ code: 'CONSERVATION_BROKEN', key: 'payloads' }])
  })

  test('payloads that are missing after a loss of the store do not add up any more', async () => {
    await using world = opsWorld()
    const recovered = { lanes: 1, batches: 0, bytes: 1, windowIds: 0, damaged: 0, tookMs: 1 }
    world.ops.emit({ kind: 'spool_recovered', ...recovered, payloads: 7, unconfirmedWrites: 0 })
    world.ops.attach(stages({ ingest: ingestCounters(), lanes: [] }))
    const sum = () => world.ops.status().internals.conservation.payloads
    const before = sum().difference
    world.ops.emit({ kind: 'spool_recovered', ...recovered, payloads: 0, unconfirmedWrites: 0 })
    expect(sum()).toMatchObject({ recovered: 7, difference: before })
    // A write that failed and is there all the same explains a difference.
    world.ops.emit({ kind: 'spool_recovered', ...recovered, payloads: 0, unconfirmedWrites: 1 })
    expect(sum()).toMatchObject({ difference: 0 })
  })

  test('a difference that changes is no fault', () => {
    const clock = handClock()
    const conditions = createConditions({ clock })
    const check = createConservationCheck({ clock, conditions })
    for (const difference of [1, 2, 1, 0, 1, 3]) {
      check(conservation(difference))
      clock.move(9000)
    }
    expect(conditions.open()).toEqual([])
  })

  test('a lane that does not add up is critical at once', () => {
    const clock = handClock()
    const conditions = createConditions({ clock })
    createConservationCheck({ clock, conditions })(conservation(0, 1))
    expect(conditions.open()).toMatchObject([
      { code: 'CONSERVATION_BROKEN', key: 'lane 1', severity: 'critical' },
    ])
    expect(conditions.open()[0]?.what).toBe('Lane 1: 7 appended, but 3 settled and 3 open.')
  })

  test('/status shows both sides for each lane and for messages', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const ingest = ingestCounters({ received: 10, mapped: 5, returned: 2, held: 3 })
    world.ops.attach(stages({ ingest, lanes: [lane(1, { appended: 7, settled: 3, open: 3 })] }))
    const { internals, conditions } = await statusOf(world.ops.url())
    expect(internals.conservation.messages).toEqual({
      received: 10,
      carried: 0,
      split: 0,
      accounted: 10,
      difference: 0,
    })
    expect(internals.conservation.lanes).toEqual([{ id: 1, appended: 7, settled: 3, open: 3, difference: 1 }])
    expect(conditions).toMatchObject([{ code: 'CONSERVATION_BROKEN', key: 'lane 1' }])
  })
})
