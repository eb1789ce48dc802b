import { describe, expect, test } from 'vitest'
import { createDelayedWills, type Will } from '../../../../src/ingest/broker/version5/delayed-wills.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'

function senderOf(clientId: string, identity: string | null = null) {
  return { clientId, identity, userName: identity, certificateName: null }
}

function willOf(clientId: string, { text = clientId, identity = null as string | null } = {}): Will {
  const bytes = Buffer.from(text)
  const sender = senderOf(clientId, identity)
  return { topic: `status/${clientId}`, bytes, retain: false, sender, address: null }
}

function openWills(bounds?: { countMax: number; bytesMax: number }) {
  const clock = createFakeClock()
  const taken: string[] = []
  const wills = createDelayedWills({ clock, take: ({ bytes }) => taken.push(bytes.toString()) }, bounds)
  return { clock, taken, wills }
}

describe('a will with a delay', () => {
  test('does not hear of another identity with the same client id', async () => {
    const { clock, taken, wills } = openWills()
    wills.wait(willOf('van', { identity: 'alice' }), 5000)
    wills.clientConnected(senderOf('van', 'bob'), true)
    wills.clientConnected(senderOf('van'), false)
    expect(taken).toEqual([])
    await clock.advance(5000)
    expect(taken).toEqual(['van'])
  })

  test('is taken before the next one of its client waits', async () => {
    const { clock, taken, wills } = openWills()
    wills.wait(willOf('van', { text: 'first' }), 5000)
    wills.wait(willOf('van', { text: 'second' }), 5000)
    expect(taken).toEqual(['first'])
    await clock.advance(5000)
    expect(taken).toEqual(['first', 'second'])
  })
})

describe('wills with a delay', () => {
  test('have a bound: those that have waited longest are taken early, and counted', () => {
    const { taken, wills } = openWills({ countMax: 3, bytesMax: 1024 ** 2 })
    for (const name of ['a', 'b', 'c', 'd', 'e']) wills.wait(willOf(name), 5000)
    expect(taken).toEqual(['a', 'b'])
    expect(wills.counters()).toEqual({ willsDelayed: 3, willsTakenEarly: 2 })
  })

  test('have a bound in bytes, which one alone may exceed', () => {
    const { taken, wills } = openWills({ countMax: 100, bytesMax: 10_000 })
    const large = 'x'.repeat(4000)
    for (const name of ['a', 'b', 'c']) wills.wait(willOf(name, { text: name + large }), 5000)
    expect(taken.map(([first]) => first)).toEqual(['a'])
    wills.wait(willOf('d', { text: 'd'.repeat(20_000) }), 5000)
    expect(wills.counters()).toEqual({ willsDelayed: 1, willsTakenEarly: 3 })
    wills.clientConnected(senderOf('d'), true)
    for (const name of ['e', 'f']) wills.wait(willOf(name, { text: name + large }), 5000)
    expect(wills.counters()).toEqual({ willsDelayed: 2, willsTakenEarly: 3 })
  })

  test('are dropped when the gateway stops, and none waits after that', async () => {
    const { clock, taken, wills } = openWills()
    wills.wait(willOf('van'), 5000)
    wills.close()
    wills.wait(willOf('bus'), 5000)
    await clock.advance(60_000)
    expect([taken, clock.pending(), wills.counters().willsDelayed]).toEqual([[], 0, 0])
  })
})
