import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { createExpressionSwitch } from '../../../src/ingest/expressions/expression-switch.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

function world() {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const switches = createExpressionSwitch({ clock, emit: (event) => void events.push(event) })
  const timeOut = (times: number, source = 'phones') => {
    for (let n = 0; n < times; n += 1) switches.ended(source, 'cost')
  }
  return { clock, events, switches, timeOut }
}

describe('an expression that times out', () => {
  test('ten times in a row is switched off for its source only', () => {
    const { switches, timeOut, events } = world()
    timeOut(9)
    expect(switches.isOff('phones')).toBe(false)
    timeOut(1)
    expect([switches.isOff('phones'), switches.isOff('vans')]).toEqual([true, false])
    timeOut(20)
    expect(events).toEqual([
      { kind: 'expressions_switched_off', source: 'phones', timeouts: 10, retryInMs: 60_000 },
    ])
  })

  test('now and then stays on: one value begins the count again', () => {
    const { switches, timeOut, events } = world()
    for (let n = 0; n < 10; n += 1) {
      timeOut(9)
      switches.ended('phones', 'in time')
    }
    expect(switches.isOff('phones')).toBe(false)
    expect(events).toEqual([])
  })

  test('is tried again after a minute; one timeout then doubles the time, at most to ten minutes', async () => {
    const { clock, switches, timeOut, events } = world()
    timeOut(10)
    const times: number[] = []
    for (let n = 0; n < 5; n += 1) {
      const last = events.at(-1)
      if (last?.kind !== 'expressions_switched_off') throw new Error('it is not switched off')
      times.push(last.retryInMs / 60_000)
      await clock.advance(last.retryInMs - 1)
      expect(switches.isOff('phones')).toBe(true)
      await clock.advance(1)
      expect(switches.isOff('phones')).toBe(false)
      timeOut(1)
    }
    expect(times).toEqual([1, 2, 4, 8, 10])
  })

  test('is on again with the first value, and with another mapping', async () => {
    const { clock, switches, timeOut, events } = world()
    timeOut(10)
    await clock.advance(60_000)
    switches.ended('phones', 'in time')
    expect(events.at(-1)).toEqual({ kind: 'expressions_switched_on', source: 'phones' })
    timeOut(10)
    switches.reset()
    expect(switches.isOff('phones')).toBe(false)
    expect(events.at(-1)).toEqual({ kind: 'expressions_switched_on', source: 'phones' })
  })
})
