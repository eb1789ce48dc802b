// Answers 403 that are about one batch, about a firewall, or about us.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import type { Reply, Script } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000
const forbidden: Reply = { status: 403, body: { requestId: 'request-9', message: 'blocked' } }
const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
const refuseWith =
  (atFault: ReadonlySet<string>, then: Script = acceptAll): Script =>
  (one, index) =>
    one.payloadIds.some((id) => atFault.has(id)) ? forbidden : then(one, index)

/** Publishes one payload at fault with two others, and one alone, `rounds` times. */
async function poisoned(rounds: number, everyMs: number): Promise<void> {
  world = await createDeliveryWorld({ startNow: false })
  const poison = new Set<string>()
  world.service.answer(refuseWith(poison))
  world.delivery.start()
  for (let i = 0; i < rounds; i += 1) {
    const [id = ''] = await world.publish(`${i}-poison`, `${i}b`, `${i}c`)
    poison.add(id)
    await world.publish(`${i}d`)
    await world.pass(everyMs)
  }
}

describe('a 403 that is about one batch', () => {
  test('does not delay the batches beside it and after it', async () => {
    world = await createDeliveryWorld({ startNow: false })
    const poison = new Set<string>((await world.publish('poison', 'x', 'y')).slice(0, 1))
    for (let i = 0; i < 20; i += 1) await world.publish(`${i}a`, `${i}b`, `${i}c`)
    world.service.answer(refuseWith(poison))
    world.delivery.start()
    await world.pass(2000)
    expect(world.spool.totals().delivered).toBeGreaterThanOrEqual(60)
    expect(world.ofKind('endpoint_changed')).toHaveLength(0)
    await world.pass(minuteMs)
    await world.publish('last')
    await world.pass(minuteMs)
    expect(world.spool.totals()).toMatchObject({ delivered: 63, dead: 0, heldBatches: 1 })
    expect(world.states('BATCHES_HELD')).toMatchObject([{ reason: 'forbidden', payloads: 1 }])
  })

  test('on a quiet link does not delay the next batch', async () => {
    world = await createDeliveryWorld({ startNow: false })
    const poison = new Set<string>((await world.publish('poison')).slice(0, 1))
    world.service.answer(refuseWith(poison))
    world.delivery.start()
    await world.pass(2000)
    expect(world.delivery.providers()[0]?.endpoint).toBe('unauthorized')
    await world.publish('fine')
    await world.pass(1500)
    expect(world.delivery.providers()[0]?.endpoint).toBe('available')
    expect(world.spool.totals().delivered).toBe(1)
  })

  test('holds the payloads at fault alone, and makes no dead letter', async () => {
    await poisoned(30, minuteMs)
    expect(world.spool.totals()).toMatchObject({ delivered: 90, dead: 0, heldBatches: 30 })
    expect(open()).toBe(30)
  })
})

describe('batches that are held as forbidden', () => {
  test('do not close the provider when they are retried in a quiet time', async () => {
    await poisoned(40, 10_000)
    expect(world.spool.totals().heldBatches).toBeGreaterThan(20)
    await world.pass(2 * minuteMs)
    const closedBefore = world.ofKind('endpoint_changed').length
    world.delivery.probe()
    await world.pass(200)
    const before = world.spool.totals().delivered
    await world.publish('fine-a', 'fine-b', 'fine-c')
    await world.pass(2000)
    expect(world.spool.totals().delivered - before).toBe(3)
    expect(world.ofKind('endpoint_changed')).toHaveLength(closedBefore)
  })

  test('are no evidence after a restart either', async () => {
    await poisoned(40, 10_000)
    await world.crash()
    await world.pass(2 * minuteMs)
    const before = world.spool.totals().delivered
    await world.publish('fine-a', 'fine-b', 'fine-c')
    await world.pass(2000)
    expect(world.spool.totals().delivered - before).toBeGreaterThanOrEqual(3)
  })
})

describe('a 403 that is about us', () => {
  test('makes the endpoint unauthorized after three other batches, and nothing is cut', async () => {
    world = await createDeliveryWorld({ script: () => forbidden, startNow: false })
    for (let i = 0; i < 20; i += 1) await world.publish(`${i}a`, `${i}b`, `${i}c`)
    world.delivery.start()
    await world.pass(minuteMs)
    expect(world.delivery.providers()[0]?.endpoint).toBe('unauthorized')
    // Four in flight, each once more with credentials read again, and the tests.
    expect(world.service.received.length).toBeLessThanOrEqual(12)
    expect(world.ofKind('batch_split')).toHaveLength(0)
    world.service.answer(acceptAll)
    await world.pass(15 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 60, dead: 0 })
  })
})
