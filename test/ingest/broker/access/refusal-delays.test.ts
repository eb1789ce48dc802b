import { describe, expect, test } from 'vitest'
import { createAuthFailures } from '../../../../src/ingest/broker/access/auth-failures.ts'
import { createRefusalDelays } from '../../../../src/ingest/broker/access/refusal-delays.ts'
import type { GatewayEvent } from '../../../../src/domain/event.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'

function openDelays() {
  const clock = createFakeClock()
  const delays = createRefusalDelays({ clock }, { delayMs: 1000, delayMaxMs: 10_000 })
  const answered: string[] = []
  const refuse = (pair: string, attemptedMs = clock.monotonic()) => {
    const [address = '', userName = ''] = pair.split('/')
    delays.refused({ address, userName, attemptedMs }, () => answered.push(pair))
  }
  return { clock, delays, answered, refuse }
}

describe('the answer to a wrong password', () => {
  test('waits twice as long for each further one of the same address and user, up to the bound', async () => {
    const { clock, answered, refuse } = openDelays()
    for (const expectedMs of [1000, 2000, 4000, 8000, 10_000, 10_000]) {
      answered.length = 0
      refuse('a/u')
      await clock.advance(expectedMs - 1)
      expect(answered).toEqual([])
      await clock.advance(1)
      expect(answered).toEqual(['a/u'])
    }
  })

  test('waits from the attempt on, however long the check took', async () => {
    const { clock, answered, refuse } = openDelays()
    const attemptedMs = clock.monotonic()
    await clock.advance(300)
    refuse('a/known', attemptedMs)
    await clock.advance(699)
    expect(answered).toEqual([])
    await clock.advance(1)
    expect(answered).toEqual(['a/known'])
  })

  test('does not delay another user of the address, or the user at another address', async () => {
    const { clock, answered, refuse, delays } = openDelays()
    for (let index = 0; index < 5; index += 1) refuse('a/u')
    refuse('a/v')
    refuse('b/u')
    await clock.advance(1000)
    expect(answered).toEqual(['a/u', 'a/v', 'b/u'])
    expect(delays.isSuspect('a', 'u')).toBe(true)
    expect(delays.isSuspect('a', 'w')).toBe(false)
  })

  test('is short again after the client was admitted, or ten quiet minutes', async () => {
    const { clock, answered, refuse, delays } = openDelays()
    refuse('a/u')
    delays.admitted('a', 'u')
    expect(delays.isSuspect('a', 'u')).toBe(false)
    refuse('a/u')
    await clock.advance(1000)
    expect(answered).toHaveLength(2)
    await clock.advance(600_000)
    expect(delays.isSuspect('a', 'u')).toBe(false)
    refuse('a/u')
    await clock.advance(1000)
    expect(answered).toHaveLength(3)
  })

  test('is sent early at the bound of waiting answers, the oldest first', async () => {
    const { answered, refuse, delays } = openDelays()
    for (let index = 0; index < 2001; index += 1) refuse(`a/${index}`)
    expect(answered).toEqual(['a/0'])
    expect(delays.waiting()).toBe(2000)
  })
})

describe('failures of clients to log in', () => {
  function openFailures() {
    const clock = createFakeClock()
    const events: GatewayEvent[] = []
    const failures = createAuthFailures({ clock, emit: (event) => events.push(event) })
    return { clock, events, failures }
  }

  test('are reported from the tenth on, then at most every ten seconds', async () => {
    const { clock, events, failures } = openFailures()
    for (let index = 0; index < 9; index += 1) failures.note('10.0.0.7', 'truck-7')
    expect(events).toEqual([])
    for (let index = 0; index < 100; index += 1) failures.note('10.0.0.8', null)
    expect(events).toHaveLength(1)
    await clock.advance(10_000)
    expect(events).toHaveLength(2)
    expect(events[1]).toEqual({
      kind: 'auth_failures',
      count: 99,
      addresses: ['10.0.0.8 (100)', '10.0.0.7 (9)'],
      users: ['(unknown user) (100)', 'truck-7 (9)'],
    })
    await clock.advance(60_000)
    expect(events).toHaveLength(2)
    expect(failures.view().failures).toBe(109)
  })
})
