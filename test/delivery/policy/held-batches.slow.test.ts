// Batches that wait because of their own answers, beside traffic that must not notice them.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import type { Received, Reply, Script } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000
const answer = (status: number): Reply => ({
  status,
  body: { requestId: 'request-9', message: `no ${status}` },
})
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
const large = { spool: { bytesMax: 64 * 1024 ** 2, uncommittedBytesMax: 64 * 1024 ** 2 } } as const

/** A reset after the service has the request, then 409 for ever, for the batches that `isHeld` names. */
function repeated(isHeld: (one: Received) => boolean): Script {
  const seen = new Set<string>()
  return (one) => {
    if (!isHeld(one)) return acceptAll(one)
    if (seen.has(one.batchId)) return answer(409)
    seen.add(one.batchId)
    return 'reset'
  }
}

/** Twenty batches that are held as repeated, with a delivered one after each. */
async function holdTwenty(): Promise<void> {
  const bad = new Set<string>()
  world = await createDeliveryWorld({
    ...large,
    script: repeated(({ payloadIds }) => bad.has(payloadIds[0] ?? '')),
  })
  for (let round = 0; round < 20; round += 1) {
    for (const id of await world.publish(...names(`held-${round}`, 3))) bad.add(id)
    await world.publish(...names(`fine-${round}`, 3))
    await world.pass(10_000)
  }
}

describe('thousands of held batches', () => {
  test('delay nothing else, and a condition shows how many there are', { timeout: 60_000 }, async () => {
    const bad = new Set<string>()
    world = await createDeliveryWorld({
      ...large,
      script: repeated(({ payloadIds }) => bad.has(payloadIds[0] ?? '')),
    })
    for (let round = 0; round < 1100; round += 1) {
      const held = names(`held-${round}`, 3)
      for (const name of held) bad.add(payloadNamed(name).payloadId)
      // Successes between keep the endpoint available.
      await world.publish(...names(`fine-${round}`, 6), ...held)
      await world.pass(2000)
    }
    await world.pass(10 * minuteMs)
    const { heldBatches } = world.spool.totals()
    expect(heldBatches).toBeGreaterThan(1024)
    expect(world.delivery.providers()[0]?.endpoint).toBe('available')
    expect(world.states('BATCHES_HELD')).toMatchObject([
      { reason: 'repeated', batches: heldBatches, requestId: 'request-9' },
    ])

    const before = world.spool.totals().delivered
    await world.publish(...names('fresh', 30))
    await world.pass(3000)
    expect(world.spool.totals().delivered - before).toBeGreaterThanOrEqual(30)
  })

  test('go one after the other behind fresh data after a crash', async () => {
    await holdTwenty()
    expect(world.spool.totals().heldBatches).toBe(20)
    const oldest = Math.min(...world.spool.batches().map(({ held }) => held?.since ?? Infinity))
    await world.crash()
    // The condition is there again at once, with the age of the oldest batch.
    expect(world.states('BATCHES_HELD')).toMatchObject([
      { reason: 'repeated', batches: 20, oldestAt: oldest, requestId: 'request-9' },
    ])
    const fresh = await world.publish(...names('fresh', 60))
    const seen = world.service.received.length
    await world.pass(2000)
    const first = world.service.received.slice(seen, seen + 20)
    expect(first.filter(({ payloadIds }) => fresh.includes(payloadIds[0] as never)).length).toBeGreaterThan(
      15,
    )
  })

  test('are tried one after the other when a person asks for it', async () => {
    await holdTwenty()
    world.service.answer(acceptAll)
    world.delivery.probe()
    await world.pass(1000)
    expect(open()).toBe(0)
    expect(world.spool.totals().heldBatches).toBe(0)
    expect(world.states('BATCHES_HELD')).toEqual([])
  })
})

describe('batches that the service asked to send much later', () => {
  test('take no place of others, however many they are', { timeout: 60_000 }, async () => {
    const bad = new Set<string>()
    const later: Reply = { status: 429, headers: { 'retry-after': '999999' }, body: { message: 'later' } }
    world = await createDeliveryWorld({
      ...large,
      script: (one) => (bad.has(one.payloadIds[0] ?? '') ? later : acceptAll(one)),
    })
    for (let round = 0; round < 1100; round += 1) {
      const slow = names(`slow-${round}`, 3)
      for (const name of slow) bad.add(payloadNamed(name).payloadId)
      await world.publish(...names(`fine-${round}`, 6), ...slow)
      await world.pass(400)
    }
    const before = world.spool.totals().delivered
    await world.publish(...names('fresh', 30))
    await world.pass(3000)
    expect(world.spool.totals().delivered - before).toBeGreaterThanOrEqual(30)
    expect(world.states('BATCHES_HELD')).toMatchObject([{ reason: 'deferred' }])
  })
})

describe('stuck batches in a quiet time', () => {
  test('do not make the endpoint unavailable for what comes then', async () => {
    world = await createDeliveryWorld({ provider: { maxInFlight: 1 } })
    const bad = new Set(
      [...names('p', 3), ...names('q', 3)].map((name) => payloadNamed(name).payloadId as string),
    )
    world.service.answer((one) => (bad.has(one.payloadIds[0] ?? '') ? answer(503) : acceptAll(one)))
    await world.publish(...names('p', 3))
    await world.publish(...names('q', 3))
    for (let i = 0; i < 30; i += 1) {
      await world.publish(...names(`fine-${i}`, 3))
      await world.pass(5000)
    }
    expect(world.spool.totals().heldBatches).toBe(2)
    await world.pass(60 * minuteMs)
    expect(world.delivery.providers()[0]?.endpoint).toBe('available')
    await world.publish(...names('fresh', 3))
    await world.pass(1500)
    expect(world.spool.totals().delivered).toBe(93)
  })
})

describe('a 400 for a batch that the service may have processed', () => {
  const poisonOnRepeat = (first: Reply): Script => {
    let seen = 0
    return (one) => {
      if (!one.payloadIds.some((id) => id === poison)) return acceptAll(one)
      seen += 1
      return seen === 1 ? first : answer(400)
    }
  }
  let poison = ''

  test.each([
    ['no answer', 'reset' as const],
    ['a server error', answer(500)],
  ])('is answered by the same bytes three times, then the batch is held: first %s', async (_name, first) => {
    world = await createDeliveryWorld({ startNow: false })
    ;[poison = ''] = await world.publish('poison', 'x', 'y')
    world.service.answer(poisonOnRepeat(first))
    world.delivery.start()
    await world.pass(5 * minuteMs)
    const sent = world.service.received.filter(({ payloadIds }) => payloadIds.includes(poison))
    expect(sent).toHaveLength(4)
    expect(new Set(sent.map(({ batchId }) => batchId)).size).toBe(1)
    expect(world.spool.batches()[0]?.held?.reason).toBe('refused_repeat')
  })

  test('names that as the reason of a batch that was held for another one', async () => {
    world = await createDeliveryWorld({ startNow: false })
    ;[poison = ''] = await world.publish('poison')
    let reply = answer(400)
    world.service.answer((one) => (one.payloadIds.includes(poison) ? reply : answer(503)))
    world.delivery.start()
    await world.pass(5000)
    expect(world.spool.batches()[0]?.held?.reason).toBe('not_accepted')
    reply = answer(503)
    await world.pass(30 * minuteMs)
    reply = answer(400)
    world.service.answer((one) => (one.payloadIds.includes(poison) ? reply : acceptAll(one)))
    await world.publish('x', 'y')
    const refused = () =>
      world.service.received.filter(({ payloadIds }) => payloadIds.includes(poison)).length
    const before = refused()
    while (refused() === before) await world.pass(1000)
    await world.pass(1000)
    expect(world.states('BATCHES_HELD')).toMatchObject([{ reason: 'refused_repeat' }])
  })

  test.each([
    ['the config says split', 'reset' as const, { onRefusedRepeat: 'split' as const }],
    ['the first submission never reached the service', 'no connection' as const, {}],
    ['the first answer was a refusal', answer(400), {}],
  ])('is isolated as usual where %s', async (_name, first, provider) => {
    world = await createDeliveryWorld({ startNow: false, provider })
    ;[poison = ''] = await world.publish('poison', 'x', 'y')
    world.service.answer(poisonOnRepeat(first))
    world.delivery.start()
    await world.pass(5 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 2, dead: 1 })
  })
})
