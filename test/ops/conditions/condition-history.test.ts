import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createConditionHistory } from '../../../src/ops/conditions/condition-history.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import type { RecordsStore } from '../../../src/device-records/device-records.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { newFolder } from '../../support/folders.ts'

const day = 86_400_000

async function storeOf(): Promise<RecordsStore & { isClosed: boolean }> {
  const store = await openLevelStore(join(await newFolder(), 'records'))
  onTestFinished(() => store.close())
  const own: RecordsStore & { isClosed: boolean } = {
    isClosed: false,
    use: async (work) => (own.isClosed ? null : work(store)),
  }
  return own
}

const over = (code: string, since: number) => ({
  code,
  key: null,
  severity: 'error' as const,
  since,
  what: 'W.',
})

describe('conditions that are over', () => {
  test('are kept over restarts, the newest first, also those of before the records were open', async () => {
    const clock = createFakeClock()
    const store = await storeOf()
    const first = createConditionHistory({ clock, ourNow: clock.now })
    for (const code of ['A', 'B']) first.cleared(over(code, clock.now()))
    await first.save(store)
    const second = createConditionHistory({ clock, ourNow: clock.now })
    second.cleared(over('C', clock.now()))
    store.isClosed = true
    await second.save(store)
    store.isClosed = false
    await second.save(store)
    second.cleared(over('D', clock.now()))
    await second.save(store)
    const third = createConditionHistory({ clock, ourNow: clock.now })
    await Promise.all([third.save(store), third.save(store)])
    expect(third.past(10).conditions.map(({ code }) => code)).toEqual(['D', 'C', 'B', 'A'])
    expect(third.past(3)).toMatchObject({ more: true })
  })

  test('are forgotten after 30 days, and beyond a thousand', async () => {
    const clock = createFakeClock()
    const store = await storeOf()
    const past = createConditionHistory({ clock, ourNow: clock.now })
    past.cleared(over('OLD', clock.now()))
    await clock.advance(31 * day)
    for (let n = 0; n < 1100; n += 1) past.cleared(over(`C_${n}`, clock.now()))
    await past.save(store)
    const again = createConditionHistory({ clock, ourNow: clock.now })
    await again.save(store)
    const { conditions } = again.past(5000)
    expect(conditions).toHaveLength(1000)
    expect(conditions[0]?.code).toBe('C_1099')
    expect(conditions.some(({ code }) => code === 'OLD')).toBe(false)
  })
})

test('a condition that is over has the text of when most had it', () => {
  const clock = createFakeClock()
  const past = createConditionHistory({ clock, ourNow: clock.now })
  const conditions = createConditions({ clock, history: past })
  for (const silent of [12, 19, 15]) {
    const cause = { key: 'all', what: `${silent} of 20 devices are silent.`, why: 'w.', present: silent }
    conditions.look([{ code: 'FLEET_PART_SILENT', cause }])
    expect(conditions.open()).toMatchObject([{ what: cause.what }])
  }
  conditions.look([])
  expect(past.past(9).conditions).toMatchObject([{ what: '19 of 20 devices are silent.' }])
})

test('what was open at a kill goes on after it with its first `since`, and what does not is over since then', async () => {
  const clock = createFakeClock()
  const store = await storeOf()
  const run = () => {
    const past = createConditionHistory({ clock, ourNow: clock.now, register: () => conditions })
    const conditions = createConditions({ clock, history: past })
    return { past, conditions }
  }
  const bridge = { code: 'MESSAGE_SOURCE_DISCONNECTED', cause: { key: 'far', why: 'w.' } } as const
  const service = { code: 'ENDPOINT_UNAVAILABLE', cause: { key: 'north', why: 'w.' } } as const
  const first = run()
  const since = clock.now()
  first.conditions.look([bridge, service])
  first.conditions.apply(eventSamples.messages_dropped)
  first.conditions.apply(eventSamples.gateway_ended_unclean)
  await clock.advance(1000)
  const killedAt = clock.now()
  await first.past.save(store)
  const { what } = first.conditions.open().find(({ code }) => code === 'MESSAGES_DROPPED')!

  await clock.advance(60_000)
  const { past, conditions } = run()
  await past.save(store)
  expect(conditions.open()).toMatchObject([{ code: 'MESSAGES_DROPPED', since, what }])
  conditions.look([bridge])
  expect(conditions.open().map((one) => [one.code, one.since])).toEqual([
    ['MESSAGES_DROPPED', since],
    ['MESSAGE_SOURCE_DISCONNECTED', since],
  ])
  const of = { code: 'ENDPOINT_UNAVAILABLE', key: 'north' }
  expect(past.endOf(of)).toEqual({ at: killedAt, isSure: false })
  past.settle()
  expect(past.endOf(of)).toEqual({ at: killedAt, isSure: true })
  const ended = { since, clearedAt: killedAt, interrupted: 'stop' }
  expect(past.past(9).conditions.toSorted((a, b) => a.code.localeCompare(b.code))).toMatchObject([
    { ...of, ...ended },
    { code: 'LAST_RUN_ENDED_UNCLEAN', ...ended },
  ])
  // An hour after it happened last, as without the kill.
  await clock.advance(3_600_000 - 62_000)
  expect(conditions.open().map(({ code }) => code)).toContain('MESSAGES_DROPPED')
  await clock.advance(3000)
  expect(conditions.open().map(({ code }) => code)).not.toContain('MESSAGES_DROPPED')
})
