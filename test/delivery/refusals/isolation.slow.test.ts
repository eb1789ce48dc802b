import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import type { Received, Reply, Script } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000
const refusal: Reply = {
  status: 400,
  body: {
    requestId: 'request-9',
    message: 'gps is bad',
    validationErrorDetails: [{ field: 'gps.latitude', message: 'empty' }],
  },
}

const names = (count: number, prefix = 'truck') =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
const bySingle = ({ single }: Received) => single

async function deadLetters() {
  const found = []
  for await (const { deadLetter: letter } of world.spool.deadLetters({ limit: 1000 })) found.push(letter)
  return found
}

/** Refuses every request that contains one of `atFault`, by both operations. */
const refuseWith =
  (atFault: ReadonlySet<string>): Script =>
  (one) =>
    one.payloadIds.some((id) => atFault.has(id)) ? refusal : acceptAll(one)

const large = {
  provider: { batch: { payloadsMax: 500, bodyBytesMax: 1024 ** 2, lingerMs: 1000 } },
  spool: {
    bytesMax: 64 * 1024 ** 2,
    groupBytesMax: 1024 ** 2,
    uncommittedBytesMax: 64 * 1024 ** 2,
    recentBytesMax: 1024 ** 2,
  },
} as const

async function isolate(faultAt: readonly number[], count = 500) {
  world = await createDeliveryWorld({ ...large, startNow: false })
  const ids = await world.publish(...names(count))
  const atFault = new Set<string>(faultAt.map((index) => ids[index] ?? ''))
  world.service.answer(refuseWith(atFault))
  world.delivery.start()
  await world.pass(5 * minuteMs)
  return { ids, atFault }
}

describe('one payload at fault in a batch', () => {
  test.each([0, 1, 137, 249, 250, 251, 498, 499])(
    'at position %i costs at most 18 further batch requests and one single request',
    async (place) => {
      const { atFault } = await isolate([place])
      const singles = world.service.received.filter(bySingle)
      expect(singles).toHaveLength(1)
      const sealed = world.ofKind('batch_sealed').length
      expect(world.service.received.length - sealed - singles.length).toBeLessThanOrEqual(18)
      expect(world.spool.totals()).toMatchObject({ delivered: 499, retried: 0, dead: 1 })
      expect(open()).toBe(0)
      const [letter] = await deadLetters()
      expect(letter).toMatchObject({
        payloadId: [...atFault][0],
        reason: 'Refused',
        requestId: 'request-9',
        failure: { validationErrorDetails: [{ field: 'gps.latitude', message: 'empty' }] },
      })
      expect(letter?.detail).toMatch(/gps is bad/)
    },
  )
})

describe('a service that refuses everything', () => {
  test.each([
    ['by both operations', (): Reply => refusal],
    ['by the batch operation only', (one: Received): Reply => (one.single ? acceptAll(one) : refusal)],
  ])('%s stops sending after twelve requests at most, and makes no dead letter', async (_name, script) => {
    world = await createDeliveryWorld({ script })
    for (let part = 0; part < 40; part += 1) await world.publish(`${part}a`, `${part}b`, `${part}c`)
    await world.pass(minuteMs)
    expect(world.service.received.length).toBeLessThanOrEqual(12)
    expect(world.codes()).toContain('WRAPPER_REFUSED')
    expect(world.delivery.providers()[0]?.endpoint).toBe('unavailable')
    await world.pass(24 * 60 * minuteMs)
    expect(world.spool.totals().dead).toBe(0)
    expect(world.service.received.length).toBeLessThan(12 + 24 * 6 * 1.3)
    const kept = open() + world.spool.totals().delivered
    expect(kept).toBe(120)
    world.service.answer(acceptAll)
    await world.pass(15 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 120, dead: 0 })
  })
})

describe('bodies that are too large', () => {
  const tooLarge =
    (bytesMax: number): Script =>
    (one) =>
      one.body.length > bytesMax ? { status: 413, body: { message: 'too large' } } : acceptAll(one)

  test('are cut until they fit, and later batches start with the smaller size', async () => {
    world = await createDeliveryWorld({ ...large, startNow: false })
    await world.publish(...names(500))
    world.service.answer(tooLarge(8000))
    world.delivery.start()
    await world.pass(minuteMs)
    expect(open()).toBe(0)
    const refusedFirst = world.service.received.filter(({ body }) => body.length > 8000).length
    expect(refusedFirst).toBeLessThan(6)
    await world.publish(...names(500, 'more'))
    await world.pass(minuteMs)
    expect(open()).toBe(0)
    expect(world.service.received.filter(({ body }) => body.length > 8000)).toHaveLength(refusedFirst)
    expect(world.spool.totals()).toMatchObject({ delivered: 1000, dead: 0 })
  })

  test('raise the size limit again slowly', async () => {
    world = await createDeliveryWorld({ ...large, startNow: false })
    await world.publish(...names(100))
    world.service.answer(tooLarge(4000))
    world.delivery.start()
    await world.pass(minuteMs)
    world.service.answer(acceptAll)
    for (let round = 0; round < 12; round += 1) {
      await world.publish(...names(400, `round-${round}`))
      await world.pass(minuteMs)
    }
    const largest = Math.max(...world.service.received.slice(-5).map(({ body }) => body.length))
    expect(largest).toBeGreaterThan(4000)
    expect(open()).toBe(0)
  })
})
