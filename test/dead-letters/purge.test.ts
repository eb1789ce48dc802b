// Purge: dead letters deleted by an operator or by age.

import { describe, expect, test } from 'vitest'
import { purgeByAge } from '../../src/dead-letters/dead-letters.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { openDeadLettersWorld, refusedMessage, refusedPayload } from '../support/dead-letters-world.ts'

const never = new AbortController().signal

describe('purge', () => {
  test('deletes what is selected with an event and a counter, and a dry run deletes nothing', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedPayload('b'), refusedMessage('one', { device: 'one' }))
    const dry = await world.operations.purge({ stage: 'delivery' }, { dryRun: true }, never)
    expect(dry).toEqual({ dryRun: true, deadLetters: 2, shared: 0, reasons: { 'delivery Validation': 2 } })
    expect(await world.left()).toEqual(['a', 'b', 'one'])
    expect(world.eventsOf('dead_letters_purged')).toEqual([])
    await world.operations.purge({ stage: 'delivery' }, { dryRun: false }, never)
    expect(await world.left()).toEqual(['one'])
    expect(world.eventsOf('dead_letters_purged')).toEqual([
      { kind: 'dead_letters_purged', deadLetters: 2, by: 'operator', reasons: '2 delivery Validation' },
    ])
    expect(world.operations.counters().purged).toEqual({ operator: 2, age: 0 })
  })
})

describe('dead letters older than dead_letters.retention', () => {
  const dayMs = 86_400_000

  async function aged(offsetMs: number | null) {
    const world = await openDeadLettersWorld()
    const { operations } = world
    // Of its own: other timers of the spool come and go.
    const clock = createFakeClock()
    const now = clock.now()
    await world.add(
      refusedPayload('unset clock', { at: 1000 }),
      refusedPayload('old', { at: now - 3 * dayMs }),
      refusedPayload('young', { at: now - dayMs / 2 }),
    )
    const purging = purgeByAge({ operations, clock, clockOffsetMs: () => offsetMs }, { retentionMs: dayMs })
    const timers = clock.pending()
    await clock.advance(600_000)
    // The next check is planned when this one has ended.
    await eventually(() => clock.pending() === timers)
    await purging.stop()
    return world
  }

  test('are deleted with an event while the clock is known; one with an impossible time stays', async () => {
    const world = await aged(0)
    expect(await world.left()).toEqual(['unset clock', 'young'])
    expect(world.eventsOf('dead_letters_purged')).toMatchObject([{ deadLetters: 1, by: 'age' }])
    expect(world.operations.counters().purged).toEqual({ operator: 0, age: 1 })
  })

  test('stay while the true time is unknown', async () => {
    const world = await aged(null)
    expect(await world.left()).toEqual(['unset clock', 'old', 'young'])
  })

  test.each([
    ['ahead of the service', -5 * dayMs],
    ['behind the service', 5 * dayMs],
  ])('a clock that is days %s makes no dead letter too old', async (_, offsetMs) => {
    const world = await aged(offsetMs)
    expect(await world.left()).toContain('young')
  })

  test('are kept where the config sets no retention', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('old', { at: world.clock.now() - 1000 * dayMs }))
    await world.clock.advance(10 * 600_000)
    expect(await world.left()).toEqual(['old'])
  })
})
