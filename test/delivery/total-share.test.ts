import { afterEach, describe, expect, test } from 'vitest'
import { TotalShare } from '../../src/delivery/total-share.ts'
import { createDeliveryWorld } from '../support/delivery-world.ts'
import type { DeliveryWorld } from '../support/delivery-world.ts'
import { turn } from '../support/fake-clock.ts'
import { createRandom } from '../support/random.ts'
import { acceptAll } from '../support/scripted-service.ts'

const never = new AbortController().signal

describe('max_in_flight_total below the sum', () => {
  let world: DeliveryWorld

  afterEach(() => world.end())

  /** The service of north never answers; `timeoutMs` later the submission fails. */
  function openWorld(maxInFlightTotal: number) {
    return createDeliveryWorld({
      providers: ['north', 'south'],
      provider: { maxInFlight: 4, timeoutMs: 30_000 },
      maxInFlightTotal,
      script: (one) => (one.headers['x-provider-key'] === 'north' ? 'hang' : acceptAll(one)),
    })
  }

  test.each([2, 3, 4, 7])('%d places: a provider that hangs does not stop the other', async (total) => {
    world = await openWorld(total)
    for (let n = 0; n < 8; n += 1) await world.publishFor('north', `a${n}`, `b${n}`, `c${n}`)
    await world.pass(100)
    expect(world.service.hanging()).toBe(Math.min(4, total - 1))
    for (let n = 0; n < 20; n += 1) await world.publishFor('south', `d${n}`, `e${n}`, `f${n}`)
    await world.pass(100)
    expect(world.spool.totals().delivered).toBe(60)
    expect(world.service.mostOpen()).toBeLessThanOrEqual(total)
  })

  test('a provider that waits for a place stops at once', async () => {
    world = await openWorld(2)
    for (let n = 0; n < 8; n += 1) await world.publishFor('north', `a${n}`, `b${n}`, `c${n}`)
    await world.pass(100)
    await world.delivery.stop(AbortSignal.abort())
    expect(world.service.open()).toBe(0)
  })
})

test.each([1, 2, 3, 4, 5])(
  'the places are never more than configured, and each provider always gets one (seed %d)',
  async (seed) => {
    const random = createRandom(seed)
    const places = 3 + random.below(7)
    const total = new TotalShare(places)
    const shares = [total.open(), total.open(), total.open()]
    const used = [0, 0, 0]
    for (let step = 0; step < 2000; step += 1) {
      const index = random.below(3)
      const share = shares[index]!
      if (random.chance(0.55) && share.waiting() < 6) {
        const before = used[index]!
        const entered = share.enter(never).then(() => (used[index]! += 1))
        await turn()
        if (before === 0) await entered
      } else if (used[index]! > 0) {
        used[index]! -= 1
        share.leave()
        await turn()
      }
      const sum = used.reduce((all, each) => all + each, 0)
      expect(sum).toBeLessThanOrEqual(places)
      // A place is free only where it is reserved for another provider.
      const waits = shares.some((each) => each.waiting() > 0)
      expect(waits ? places - sum : 0).toBeLessThanOrEqual(used.filter((of) => of === 0).length)
    }
  },
)
