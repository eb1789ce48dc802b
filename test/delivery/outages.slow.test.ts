// Days of outages in seconds: the test moves the clock; the spool is real.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld, dayMs } from '../support/delivery-world.ts'
import type { DeliveryWorld } from '../support/delivery-world.ts'
import { createRandom } from '../support/random.ts'
import { acceptAll, failAll } from '../support/scripted-service.ts'
import type { Script } from '../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const hourMs = 3_600_000
const minuteMs = 60_000
const refuse =
  (status: number, headers: Record<string, string> = {}): Script =>
  () => ({ status, headers, body: { requestId: 'request-9', message: `answer ${status}` } })

const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
const endpoint = () => world.delivery.providers()[0]?.endpoint

/** Payloads accepted under more than one batchId. */
function doubled(): string[] {
  const batches = new Map<string, Set<string>>()
  for (const { batchId, payloadIds } of world.service.received)
    for (const id of payloadIds) batches.set(id, (batches.get(id) ?? new Set()).add(batchId))
  return [...batches].filter(([, ids]) => ids.size > 1).map(([id]) => id)
}

/** Three payloads at the start of every period. */
async function traffic(periods: number, periodMs: number): Promise<number> {
  for (let period = 0; period < periods; period += 1) {
    await world.publish(`${period}-a`, `${period}-b`, `${period}-c`)
    await world.pass(periodMs)
  }
  return periods * 3
}

// Days take seconds, and more on a busy machine.
describe('the service is down', { timeout: 120_000 }, () => {
  test('for three days: everything arrives when it is back, and no attempt of a payload was counted', async () => {
    world = await createDeliveryWorld({ script: refuse(500) })
    const published = await traffic(72, hourMs)
    // One probe at a time, 30 s apart on average.
    expect(world.service.received.length).toBeLessThan((1.3 * 3 * dayMs) / 30_000)
    expect(open()).toBe(published)
    world.service.answer(acceptAll)
    await world.pass(10 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: published, retried: 0, dead: 0 })
    expect(doubled()).toEqual([])
  })

  test('and reports it inside a 200 for an hour: no dead letter, no attempt counted', async () => {
    world = await createDeliveryWorld({ script: failAll('Internal') })
    const published = await traffic(60, minuteMs)
    expect(endpoint()).toBe('unavailable')
    expect(world.spool.totals().dead).toBe(0)
    world.service.answer(acceptAll)
    await world.pass(hourMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: published, dead: 0 })
  })

  test('for a while, and commits before it times out: nothing is accepted under two batchIds', async () => {
    const accepted = new Set<string>()
    const commitAndHang: Script = (one) => {
      for (const id of one.payloadIds) accepted.add(id)
      return 'hang'
    }
    world = await createDeliveryWorld({ script: commitAndHang, provider: { timeoutMs: 50 } })
    const ids = await world.publish('a', 'b', 'c', 'd', 'e', 'f')
    while (world.service.received.length < 6) await world.pass(minuteMs)
    world.service.answer(acceptAll)
    await world.pass(10 * minuteMs)
    expect(open()).toBe(0)
    expect([...accepted].toSorted()).toEqual([...ids].toSorted())
    expect(doubled()).toEqual([])
  })
})

describe('the service refuses us', { timeout: 120_000 }, () => {
  test('with 403 for 24 hours: at most 200 requests, nothing lost, resumed within one probe', async () => {
    world = await createDeliveryWorld({ script: refuse(403) })
    const published = await traffic(24, hourMs)
    expect(endpoint()).toBe('unauthorized')
    expect(world.service.received.length).toBeLessThanOrEqual(200)
    world.service.answer(acceptAll)
    await world.pass(12 * minuteMs + 2000)
    expect(endpoint()).toBe('available')
    await world.pass(minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: published, retried: 0, dead: 0 })
  })
})

describe('some of it fails', { timeout: 120_000 }, () => {
  test('500 for every batch with one payload: all others are delivered, and that one is kept', async () => {
    world = await createDeliveryWorld({ startNow: false })
    const [poison] = await world.publish('poison', 'x', 'y')
    world.service.answer((one, index) =>
      one.payloadIds.some((id) => id === poison) ? refuse(500)(one, index) : acceptAll(one),
    )
    world.delivery.start()
    const published = await traffic(240, minuteMs)
    expect(endpoint()).toBe('available')
    expect(world.spool.totals()).toMatchObject({ delivered: published, dead: 0 })
    expect(open()).toBe(3)
    expect(world.ofKind('batch_stuck')).toHaveLength(1)
    const waits = world.ofKind('submission_ended').filter(({ payloads }) => payloads === 3)
    expect(waits.length).toBeGreaterThan(published / 3)
  })

  test.each([0.05, 0.2, 0.5])('%d of all requests: delivery only becomes slower', async (rate) => {
    const random = createRandom(7)
    world = await createDeliveryWorld({
      script: (one, index) => (random.chance(rate) ? refuse(500)(one, index) : acceptAll(one)),
    })
    const published = await traffic(300, 20_000)
    await world.pass(10 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: published, retried: 0, dead: 0 })
    expect(doubled()).toEqual([])
    // It may be unavailable for moments by chance, and never for long.
    const longest = Math.max(
      0,
      ...world.ofKind('endpoint_available').map(({ unavailableMs }) => unavailableMs),
    )
    expect(longest).toBeLessThan(3 * minuteMs)
  })
})

describe('Retry-After', () => {
  test.each([
    ['in seconds', () => ({ 'retry-after': '300' })],
    ['as a date', () => dated(300_000)],
  ])('%s stops all submissions for that long', async (_name, headers) => {
    world = await createDeliveryWorld({ script: (one, index) => refuse(503, headers())(one, index) })
    for (let batch = 0; batch < 6; batch += 1) await world.publish(`${batch}a`, `${batch}b`, `${batch}c`)
    await world.pass(1000)
    const asked = world.service.received.length
    world.service.answer(acceptAll)
    await world.pass(250_000)
    expect(world.service.received.length).toBe(asked)
    await world.pass(120_000)
    expect(open()).toBe(0)
  })

  test('is obeyed for at most ten minutes', async () => {
    world = await createDeliveryWorld({ script: refuse(503, { 'retry-after': '86400' }) })
    for (let batch = 0; batch < 6; batch += 1) await world.publish(`${batch}a`, `${batch}b`, `${batch}c`)
    await world.pass(1000)
    world.service.answer(acceptAll)
    await world.pass(15 * minuteMs)
    expect(open()).toBe(0)
  })
})

/** The Date of the answer counts, since our clock may be wrong. */
function dated(laterMs: number): Record<string, string> {
  const date = Date.UTC(2026, 10, 21, 12)
  return { date: new Date(date).toUTCString(), 'retry-after': new Date(date + laterMs).toUTCString() }
}
