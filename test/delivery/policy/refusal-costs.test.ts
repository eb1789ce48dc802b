// What payloads cost that the service refuses with 400 or 413, beside the others of their batches.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { collect } from '../../support/open-spool.ts'
import { createRandom } from '../../support/random.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import type { Received, Reply, Script } from '../../support/scripted-service.ts'
import { deadLetterNamed, exchangeOf, payloadNamed } from '../../support/spool-world.ts'

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

const large = {
  provider: { batch: { payloadsMax: 500, bodyBytesMax: 1024 ** 2, lingerMs: 1000 } },
  spool: {
    bytesMax: 64 * 1024 ** 2,
    groupBytesMax: 1024 ** 2,
    uncommittedBytesMax: 64 * 1024 ** 2,
    recentBytesMax: 1024 ** 2,
  },
} as const

describe('one payload at fault in a batch', () => {
  test.each([0, 1, 137, 249, 250, 251, 498, 499])(
    'at position %i costs at most 18 further batch requests and one single request',
    async (place) => {
      world = await createDeliveryWorld({ ...large, startNow: false })
      const ids = await world.publish(...names(500))
      const atFault = ids[place]!
      world.service.answer((one) => (one.payloadIds.includes(atFault) ? refusal : acceptAll(one)))
      world.delivery.start()
      await world.pass(5 * minuteMs)
      const singles = world.service.received.filter(bySingle)
      expect(singles).toHaveLength(1)
      const sealed = world.ofKind('batch_sealed').length
      expect(world.service.received.length - sealed - singles.length).toBeLessThanOrEqual(18)
      expect(world.spool.totals()).toMatchObject({ delivered: 499, retried: 0, dead: 1 })
      expect(open()).toBe(0)
      const [letter] = await collect(world.spool.deadLetters({ limit: 9 }))
      expect(letter?.deadLetter).toMatchObject({
        payloadId: atFault,
        reason: 'Refused',
        requestId: 'request-9',
        failure: { validationErrorDetails: [{ field: 'gps.latitude', message: 'empty' }] },
      })
      expect(letter?.deadLetter.detail).toMatch(/gps is bad/)
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

/** Publishes `count` payloads of which those that `isBad` names are refused; resolves with the requests and refusals. */
async function deliver(count: number, isBad: (index: number) => boolean, status = 400) {
  world = await createDeliveryWorld({ ...large, startNow: false })
  const bad = new Set<string>()
  const names = Array.from({ length: count }, (_, index) => {
    const name = `truck-${index}`
    if (isBad(index)) bad.add(payloadNamed(name).payloadId)
    return name
  })
  world.service.answer((one) =>
    one.payloadIds.some((id) => bad.has(id)) ? { status, body: { message: 'bad' } } : acceptAll(one),
  )
  world.delivery.start()
  for (let at = 0; at < count; at += 500) {
    await world.publish(...names.slice(at, at + 500))
    await world.pass(5000)
  }
  await world.pass(5 * minuteMs)
  return { bad: bad.size, requests: world.service.received.length }
}

test('one payload in a hundred refused costs at most twenty requests for each of them', async () => {
  const random = createRandom(3)
  const { bad, requests } = await deliver(10_000, () => random.chance(0.01))
  expect(world.spool.totals()).toMatchObject({ delivered: 10_000 - bad, dead: bad })
  expect(world.ofKind('endpoint_changed')).toHaveLength(0)
  expect(requests / bad).toBeLessThan(20)
  expect(world.service.mostOpen()).toBeGreaterThan(2)
})

test('one payload among many refused with 413 costs as little as with 400', async () => {
  const { requests } = await deliver(10_000, (index) => index === 3333, 413)
  expect(world.spool.totals()).toMatchObject({ delivered: 9999, dead: 1 })
  expect(requests).toBeLessThan(20 + 41)
})

test('a service that refuses everything after hours of acceptance gets at most 24 requests', async () => {
  await deliver(2000, () => false)
  const before = world.service.received.length
  world.service.answer(() => ({ status: 400, body: { message: 'changed' } }))
  for (let n = 0; n < 10; n += 1)
    await world.publish(...Array.from({ length: 100 }, (_, i) => `${n}-late-${i}`))
  await world.pass(minuteMs)
  expect(world.service.received.length - before).toBeLessThanOrEqual(24)
  expect(world.codes()).toContain('WRAPPER_REFUSED')
  expect(world.spool.totals().dead).toBe(0)
})

test('dead letters that are requeued and refused again do not keep fresh payloads waiting for hours', async () => {
  world = await createDeliveryWorld({})
  const { spool } = world
  const fresh = payloadNamed('fresh').payloadId
  world.service.answer((one) =>
    one.payloadIds.includes(fresh) && one.payloadIds.length === 1
      ? acceptAll(one)
      : { status: 400, body: { message: 'bad' } },
  )
  for (let index = 0; index < 40; index += 1) {
    await spool.exchange(exchangeOf({ deadLetters: [deadLetterNamed(`bad-${index}`).deadLetter] }))
    const take = (await collect(spool.deadLetters({ limit: 1 }))).map(({ id }) => id)
    await spool.exchange(exchangeOf({ take, payloads: [payloadNamed(`bad-${index}`)] }))
    await world.pass(5000)
  }
  expect(world.delivery.providers()[0]?.endpoint).toBe('unavailable')
  await world.publish('fresh')
  await world.pass(30 * minuteMs)
  expect(spool.totals()).toMatchObject({ delivered: 1 })
})
