import { describe, expect, test } from 'vitest'
import { createConservationCheck, type Conservation } from '../../src/ops/conservation-check.ts'
import { createConditions } from '../../src/ops/conditions/conditions.ts'
import { handClock, ingestCounters, lane, opsWorld, stages, statusOf } from '../support/ops-world.ts'

function conservation(difference: number, laneDifference = 0): Conservation {
  const open = 4 - laneDifference
  return {
    messages: { received: 10, carried: 0, accounted: 10 - difference, difference },
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
      accounted: 10,
      difference: 0,
    })
    expect(internals.conservation.lanes).toEqual([{ id: 1, appended: 7, settled: 3, open: 3, difference: 1 }])
    expect(conditions).toMatchObject([{ code: 'CONSERVATION_BROKEN', key: 'lane 1' }])
  })
})
