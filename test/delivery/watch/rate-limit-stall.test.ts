// A rate limit that is lower than what comes in: what waits for it stays visible until something is settled.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld, type DeliveryWorld } from '../../support/delivery-world.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const batch = { payloadsMax: 500, bodyBytesMax: 1_000_000, lingerMs: 1000 }

const codes = () => world.codes()

const nextInMs = () => {
  const at = world.delivery.providers()[0]?.nextAttemptAt
  return at === null || at === undefined ? null : at - world.clock.now()
}

/** One payload each half second. */
async function publishFor(seconds: number): Promise<void> {
  for (let n = 0; n < 2 * seconds; n += 1) {
    await world.publish(`p${world.clock.now()}`)
    await world.pass(500)
  }
}

describe('delivery.limits', () => {
  test.each([0.2, 1])('of %d payloads per second: new batches are small, and payloads flow', async (perS) => {
    world = await createDeliveryWorld({
      provider: { batch, maxInFlight: 1, rate: { payloadsPerS: perS, requestsPerS: null } },
    })
    await publishFor(120)
    const sizes = world.ofKind('batch_sealed').map(({ payloads }) => payloads)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10 * perS)
    expect(sizes.length).toBeGreaterThanOrEqual(10)
    expect(codes()).not.toContain('RATE_LIMITED')
    expect(world.changes('DELIVERY_STALLED').raised).toBe(0)
  })

  test('a wait has its condition and its end for as long as nothing is settled', async () => {
    world = await createDeliveryWorld({
      provider: { batch, maxInFlight: 1, rate: { payloadsPerS: null, requestsPerS: 0.01 } },
    })
    await publishFor(5)
    const settled = world.ofKind('batch_settled').length
    expect(settled).toBe(1)
    for (let waitedS = 5; waitedS < 95; waitedS += 5) {
      await publishFor(5)
      if (waitedS < 35) continue
      expect(codes()).toEqual(['RATE_LIMITED'])
      expect(nextInMs()).toBeGreaterThan(0)
      expect(nextInMs()).toBeLessThanOrEqual(100_000)
    }
    expect(world.changes('RATE_LIMITED')).toEqual({ raised: 1, cleared: 0 })
    await publishFor(30)
    expect(world.ofKind('batch_settled').length).toBe(settled + 1)
    expect(world.changes('RATE_LIMITED').cleared).toBe(1)
  })
})
