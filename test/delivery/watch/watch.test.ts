// What stands still has a condition. The clock is moved by the test; the spool is real.

import { afterEach, describe, expect, test } from 'vitest'
import { zonedTime } from '../../../src/std/clock.ts'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll, failAll } from '../../support/scripted-service.ts'
import type { Reply, Script } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000
const refuse =
  (status: number, headers: Record<string, string> = {}): Script =>
  () => ({ status, headers, body: { requestId: 'request-9', message: `answer ${status}` } })

const conditions = () => world.conditions()
const codes = () => world.codes()

async function publishBatches(count: number, name = 'p'): Promise<void> {
  for (let n = 0; n < count; n += 1) await world.publish(`${name}${n}a`, `${name}${n}b`, `${name}${n}c`)
}

describe('a service that hangs', () => {
  const hang: Script = () => 'hang'

  test('has a condition after 10 s while no answer is known, with what waits, since when and where', async () => {
    world = await createDeliveryWorld({ script: hang, provider: { timeoutMs: 240_000, maxInFlight: 2 } })
    await publishBatches(4)
    const since = zonedTime(world.clock.now())
    await world.pass(9000)
    expect(codes()).toEqual([])
    await world.pass(2000)
    expect(conditions()).toMatchObject([
      {
        code: 'SERVICE_HANGING',
        count: 2,
        what:
          `The service does not answer: 2 requests to ${world.service.url} without an answer, ` +
          `the oldest since ${since}.`,
      },
    ])
  })

  test('has it after a second where the service was fast, and loses it with the next answer', async () => {
    world = await createDeliveryWorld({ provider: { timeoutMs: 20_000, maxInFlight: 1 } })
    await publishBatches(20)
    await world.pass(10)
    world.service.answer(hang)
    await publishBatches(1, 'q')
    await world.pass(900)
    expect(codes()).toEqual([])
    await world.pass(10_200)
    expect(codes()).toEqual(['SERVICE_HANGING'])
    await world.pass(15_000)
    expect(codes()).toEqual(['SERVICE_HANGING'])
    world.service.answer(acceptAll)
    await world.pass(minuteMs)
    expect(codes()).toEqual([])
    expect(world.changes('SERVICE_HANGING')).toEqual({ raised: 1, cleared: 1 })
  })

  test.each([
    ['that hangs at the proxy', { fails: 'TUNNEL_TIMEOUT', afterMs: 10_010 }],
    ['whose TLS handshake hangs', { fails: 'UND_ERR_CONNECT_TIMEOUT', afterMs: 10_010 }],
    ['that closes the connection late', { fails: 'ECONNRESET', afterMs: 10_010 }],
    ['that hangs at the proxy for less than a late request', { fails: 'TUNNEL_TIMEOUT', afterMs: 3000 }],
    ['that hangs for less than a late request', { fails: 'UND_ERR_CONNECT_TIMEOUT', afterMs: 9990 }],
  ] satisfies [string, Reply][])(
    '%s has a condition within 30 s and without a gap, until something succeeds',
    async (_name, reply) => {
      for (const batches of [1, 30]) {
        if (batches === 30) await world.end()
        world = await createDeliveryWorld({ script: () => reply, provider: { timeoutMs: 30_000 } })
        await publishBatches(batches)
        await world.pass(30_000)
        const silent: number[] = []
        for (let second = 30; second < 5 * 60; second += 1) {
          if (codes().length === 0) silent.push(second)
          await world.pass(1000)
        }
        expect(silent).toEqual([])
        expect(world.changes('SERVICE_HANGING').raised).toBeLessThanOrEqual(1)
        expect(world.changes('SERVICE_HANGING').cleared).toBe(0)
        world.service.answer(acceptAll)
        await world.pass(3 * minuteMs)
        expect(codes()).toEqual([])
      }
    },
  )
})

describe('Retry-After', () => {
  test('of a day shows what was asked, what the gateway does and until when, and goes when it is over', async () => {
    world = await createDeliveryWorld({ script: refuse(503, { 'retry-after': '86400' }) })
    await publishBatches(6)
    await world.pass(1000)
    const shown = conditions().find(({ code }) => code === 'RETRY_AFTER')
    expect(shown?.what).toMatch(
      /^The service asked for a wait of .*(24 h|1 d).*\. The gateway waits 10 min, until \d{4}-\d\d-\d\d [\d:]+ \S+\.$/,
    )
    world.service.answer(acceptAll)
    await world.pass(9 * minuteMs)
    expect(codes()).toContain('RETRY_AFTER')
    await world.pass(2 * minuteMs)
    expect(codes()).toEqual([])
  })

  test('of a few seconds is not worth a condition', async () => {
    world = await createDeliveryWorld({ script: refuse(429, { 'retry-after': '5' }) })
    await publishBatches(1)
    await world.pass(1000)
    expect(codes()).toEqual([])
  })
})

describe('a delivery that stands still', () => {
  test.each([
    ['400 for everything', refuse(400)],
    ['413 for everything', refuse(413)],
    ['409 for everything', refuse(409)],
    ['403 for everything', refuse(403)],
    ['500 for everything', refuse(500)],
    ['418 for everything', refuse(418)],
    ['resets', () => 'reset' as const],
    ['an answer that names no payload', () => ({ status: 200, body: { accepted: [], failed: [] } })],
    ['HTML', () => ({ status: 200, body: '<html>' })],
  ] satisfies [string, Script][])(
    'by %s always has a condition, with one batch and with many',
    async (_name, script) => {
      for (const batches of [1, 30]) {
        if (batches === 30) await world.end()
        world = await createDeliveryWorld({ script })
        await publishBatches(batches)
        await world.pass(30_000)
        const silent: number[] = []
        for (let second = 30; second < 20 * 60; second += 10) {
          // Within 30 s of the last accepted payload or cut; nothing is accepted here.
          if (codes().length === 0) silent.push(second)
          await world.pass(10_000)
        }
        expect(silent).toEqual([])
      }
    },
  )
})

describe('a service that answers 200 and accepts nothing', () => {
  test('is an error in its own words after three batches, with current numbers, until something is accepted', async () => {
    world = await createDeliveryWorld({ script: failAll('Validation'), provider: { maxInFlight: 1 } })
    await publishBatches(2)
    await world.pass(1000)
    expect(codes()).not.toContain('NOTHING_ACCEPTED')
    await publishBatches(1, 'q')
    await world.pass(1000)
    const shown = () => conditions().find(({ code }) => code === 'NOTHING_ACCEPTED')
    expect(shown()).toMatchObject({
      severity: 'error',
      count: 3,
      what: 'The service accepted none of the last 3 batches: Validation (no: Validation).',
    })
    expect(world.delivery.providers()[0]?.lastAcceptedAt).toBe(null)
    await publishBatches(4, 'r')
    await world.pass(1000)
    expect(shown()?.count).toBe(7)
    world.service.answer(acceptAll)
    await publishBatches(1, 's')
    await world.pass(1000)
    expect(shown()).toBeUndefined()
    expect(world.changes('NOTHING_ACCEPTED')).toEqual({ raised: 1, cleared: 1 })
  })
})
