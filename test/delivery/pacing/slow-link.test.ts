// A backlog over links of a few kilobytes per second, with the default limits. The clock is moved by the test; the
// uploads share the link.

import { afterEach, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000
const defaults = {
  provider: {
    batch: { payloadsMax: 500, bodyBytesMax: 1024 ** 2, lingerMs: 1000 },
    timeoutMs: 30_000,
  },
  spool: {
    bytesMax: 64 * 1024 ** 2,
    groupBytesMax: 1024 ** 2,
    uncommittedBytesMax: 64 * 1024 ** 2,
    recentBytesMax: 1024 ** 2,
  },
} as const

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

test.each([2, 5, 50, 1000])(
  'a link of %i KB/s is used to 70 percent at least, and nothing is sent under two batchIds after it was written',
  { timeout: 60_000 },
  async (kilobytes) => {
    const bytesPerS = kilobytes * 1000
    world = await createDeliveryWorld({ ...defaults, bytesPerS, startNow: false })
    // What the link carries in ten minutes, at about 100 bytes each.
    const count = Math.min(8000, bytesPerS * 6)
    for (let sent = 0; sent < count; sent += 1000) await world.publish(...names(`${sent}`, 1000))
    world.delivery.start()
    await world.pass(10 * minuteMs)
    const accepted = world.service.received.reduce((sum, { body }) => sum + body.length, 0)
    const used = accepted / (bytesPerS * 600)
    expect(world.spool.totals().delivered === count ? 1 : used).toBeGreaterThan(0.7)
    expect(world.spool.totals()).toMatchObject({ retried: 0, dead: 0, heldBatches: 0 })
    const ids = world.service.received.flatMap(({ payloadIds }) => payloadIds)
    expect(new Set(ids).size).toBe(ids.length)
  },
)

test('batches grow to the configured size on a fast link', async () => {
  world = await createDeliveryWorld({ ...defaults, startNow: false })
  for (let round = 0; round < 20; round += 1) await world.publish(...names(`${round}`, 1000))
  world.delivery.start()
  await world.pass(minuteMs)
  expect(world.spool.totals().delivered).toBe(20_000)
  expect(world.service.received[0]?.body.length).toBeLessThan(33_000)
  expect(world.service.received.at(-2)?.payloadIds.length).toBe(500)
})

test('a batch that was written completely keeps its batchId and gets a longer deadline', async () => {
  world = await createDeliveryWorld({ ...defaults, script: () => 'hang', startNow: false })
  await world.publish(...names('a', 300))
  world.delivery.start()
  await world.pass(30 * minuteMs)
  const ended = world.ofKind('submission_ended').map(({ tookMs }) => tookMs)
  expect(new Set(world.service.received.map(({ batchId }) => batchId)).size).toBe(1)
  expect(ended[1]).toBeGreaterThan((ended[0] ?? 0) * 1.5)
  expect(Math.max(...ended)).toBeLessThanOrEqual(240_000)
})

test.each([120, 1000])(
  'a batch of %i KB that was sealed before a restart ends after twice the timeout while the link is unknown',
  async (kilobytes) => {
    const timeoutMs = 3000
    const provider = {
      ...defaults.provider,
      timeoutMs,
      batch: { ...defaults.provider.batch, lingerMs: 60_000 },
    }
    world = await createDeliveryWorld({ ...defaults, provider, script: () => 'hang', startNow: false })
    const longNames = names('a', kilobytes / 4).map((name) => name + 'x'.repeat(3900))
    for (let sent = 0; sent < longNames.length; sent += 10)
      await world.publish(...longNames.slice(sent, sent + 10))
    const [lane] = world.spool.lanes()
    const limits = { payloadsMax: 500, bodyBytesMax: 1024 ** 2 }
    const batch = lane === undefined ? null : await world.spool.seal(lane.id, limits)
    expect(batch?.bytes).toBeGreaterThan(kilobytes * 900)
    await world.crash()
    await world.pass(minuteMs)
    const [first, second] = world.ofKind('submission_ended')
    expect(first?.tookMs).toBeLessThanOrEqual(2 * timeoutMs)
    expect(second?.tookMs).toBeLessThanOrEqual(4 * timeoutMs)
  },
)

test('on a slow link the first time-out after a restart shows the rate, and the next try has the time it needs', async () => {
  const timeoutMs = 3000
  const provider = { ...defaults.provider, timeoutMs }
  world = await createDeliveryWorld({ ...defaults, provider, bytesPerS: 5000, startNow: false })
  await world.publish(...names('a', 900))
  const [lane] = world.spool.lanes()
  const limits = { payloadsMax: 900, bodyBytesMax: 1024 ** 2 }
  const batch = lane === undefined ? null : await world.spool.seal(lane.id, limits)
  expect(batch?.bytes).toBeGreaterThan(80_000)
  await world.crash()
  await world.pass(5 * minuteMs)
  expect(world.spool.totals()).toMatchObject({ delivered: 900, dead: 0, heldBatches: 0 })
  expect(new Set(world.service.received.map(({ batchId }) => batchId)).size).toBe(1)
})
