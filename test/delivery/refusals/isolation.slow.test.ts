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

  test('does not stop others: batches after it are delivered meanwhile', async () => {
    await isolate([3, 77])
    const later = await world.publish(...names(20, 'later'))
    await world.pass(2 * minuteMs)
    expect(open()).toBe(0)
    const accepted = new Set(world.service.received.flatMap(({ payloadIds }) => payloadIds))
    expect(later.every((id) => accepted.has(id))).toBe(true)
    expect(world.spool.totals()).toMatchObject({ delivered: 518, dead: 2 })
  })

  test('as the only payload does not become a dead letter until another one is accepted', async () => {
    world = await createDeliveryWorld({ startNow: false })
    const ids = await world.publish('a')
    world.service.answer(refuseWith(new Set<string>(ids)))
    world.delivery.start()
    await world.pass(60 * minuteMs)
    expect(world.spool.totals().dead).toBe(0)
    expect(open()).toBe(1)
    await world.publish('b')
    await world.pass(minuteMs)
    expect(world.spool.totals()).toMatchObject({ delivered: 1, dead: 1 })
  })

  test('continues after a crash, and nothing is lost or sent twice', async () => {
    world = await createDeliveryWorld({ startNow: false })
    const ids = await world.publish('a', 'b', 'c')
    const atFault = new Set<string>([ids[2] ?? ''])
    world.service.answer((one, index) => (index === 3 ? 'hang' : refuseWith(atFault)(one, index)))
    world.delivery.start()
    while (world.service.received.length < 4) await world.clock.advance(0)
    await world.crash()
    await world.pass(minuteMs)
    await world.publish('d')
    await world.pass(minuteMs)
    // The service may have processed what was in a request at the crash, so that is not split.
    expect(open()).toBe(1)
    expect(world.spool.totals()).toMatchObject({ dead: 0 })
    expect(world.spool.batches()[0]?.held?.reason).toBe('refused_repeat')
    expect(
      world.service.received.slice(4).filter(({ payloadIds }) => payloadIds.includes(ids[2] ?? '')),
    ).toHaveLength(3)
  })
})

test('a part that stays held does not prevent the isolation of other batches', async () => {
  let first: readonly string[] = []
  let atFault = ''
  let asked = 0
  world = await createDeliveryWorld({
    provider: { maxInFlight: 1 },
    script(one) {
      if (one.payloadIds.includes(atFault)) return refusal
      if (one.single || !one.payloadIds.includes(first[0] ?? '')) return acceptAll(one)
      asked += 1
      if (asked === 1) return refusal
      return asked === 2 ? 'reset' : { status: 409, body: { message: 'seen' } }
    },
  })
  first = await world.publish('a', 'b', 'c')
  await world.pass(10_000)
  atFault = 'not yet known'
  const second = await world.publish('d', 'e', 'f')
  atFault = second[2] ?? ''
  await world.pass(60 * minuteMs)
  await world.publish('g', 'h', 'i')
  await world.pass(10_000)
  expect(world.spool.totals()).toMatchObject({ delivered: 6, dead: 1 })
  expect(open()).toBe(2)
})

describe('many payloads at fault', () => {
  test.each([
    ['every third', (index: number) => index % 3 === 0],
    ['the first half', (index: number) => index < 32],
    ['all but the last', (index: number) => index < 63],
  ])('%s: the valid ones are delivered, the others become dead letters or wait', async (_name, isAtFault) => {
    const atFault = Array.from({ length: 64 }, (_, index) => index).filter(isAtFault)
    const { ids } = await isolate(atFault, 64)
    await world.pass(72 * 60 * minuteMs)
    const { delivered, dead } = world.spool.totals()
    expect(delivered).toBe(64 - atFault.length)
    expect(delivered + dead + open()).toBe(64)
    const deadIds = (await deadLetters()).map(({ payloadId }) => payloadId)
    expect(deadIds.every((id) => atFault.some((index) => ids[index] === id))).toBe(true)
  })
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

describe('mode: single', () => {
  test('sends every payload in its own request, also those of batches sealed before', async () => {
    world = await createDeliveryWorld({ script: () => ({ status: 503 }) })
    const before = await world.publish('a', 'b', 'c')
    await world.pass(100)
    const provider = { mode: 'single' as const }
    await world.crash(provider)
    world.service.answer(acceptAll)
    const seen = world.service.received.length
    const after = await world.publish('d', 'e')
    await world.pass(10 * minuteMs)
    const singles = world.service.received.slice(seen)
    expect(singles.every(bySingle)).toBe(true)
    expect(singles.flatMap(({ payloadIds }) => payloadIds).toSorted()).toEqual(
      [...before, ...after].toSorted(),
    )
    expect(singles.every(({ path }) => path === '/v2/telemetry')).toBe(true)
    expect(open()).toBe(0)
  })

  test('a refused payload becomes a dead letter once another was accepted', async () => {
    world = await createDeliveryWorld({ provider: { mode: 'single', maxInFlight: 1 }, startNow: false })
    const ids = await world.publish('a', 'b', 'c')
    world.service.answer(refuseWith(new Set<string>([ids[1] ?? ''])))
    world.delivery.start()
    await world.pass(minuteMs)
    expect(world.spool.totals()).toMatchObject({ delivered: 2, dead: 1 })
  })
})
