import { afterEach, describe, expect, test } from 'vitest'
import { createTotalShare } from '../../src/delivery/total-share.ts'
import type { ProviderShare } from '../../src/delivery/total-share.ts'
import { createDeliveryWorld } from '../support/delivery-world.ts'
import type { DeliveryWorld } from '../support/delivery-world.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'
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

describe('the places', () => {
  function openShares(places: number, providers: number) {
    const clock = createFakeClock()
    const total = createTotalShare({ clock }, { places, providers })
    return {
      clock,
      shares: Array.from({ length: providers }, () => total.open()) as [ProviderShare, ProviderShare],
    }
  }

  /** Takes or waits for so many places; the list grows by the name for each place that is given. */
  function ask(share: ProviderShare, name: string, count: number, given: string[]): void {
    for (let n = 0; n < count; n += 1) void share.enter(never).then((entered) => entered && given.push(name))
  }

  test('go to a provider below its share first, then to the one that waited longest', async () => {
    const { shares } = openShares(4, 2)
    const given: string[] = []
    ask(shares[0], 'a', 6, given)
    ask(shares[1], 'b', 3, given)
    await turn()
    expect(given).toEqual(['a', 'a', 'a', 'b'])
    shares[0].leave()
    await turn()
    expect(given.slice(4)).toEqual(['b'])
    shares[0].leave()
    await turn()
    expect(given.slice(5)).toEqual(['a'])
  })

  test('that a provider used in the last minute stay reserved for it, and no longer', async () => {
    const { clock, shares } = openShares(8, 2)
    const given: string[] = []
    ask(shares[1], 'b', 4, given)
    await turn()
    for (let n = 0; n < 4; n += 1) shares[1].leave()
    ask(shares[0], 'a', 4, given)
    await turn()
    ask(shares[0], 'more', 1, given)
    await clock.advance(59_000)
    shares[0].leave()
    await turn()
    expect(given).toEqual(['b', 'b', 'b', 'b', 'a', 'a', 'a', 'a', 'more'])
    ask(shares[0], 'beyond', 3, given)
    await turn()
    expect(given).toHaveLength(9)
    await clock.advance(60_000)
    shares[0].leave()
    await turn()
    expect(given.slice(9)).toEqual(['beyond', 'beyond', 'beyond'])
  })

  test.each([1, 2, 3, 4, 5])(
    'are never more than configured, and each provider always gets one (seed %d)',
    async (seed) => {
      const random = createRandom(seed)
      const places = 3 + random.below(7)
      const { clock, shares } = openShares(places, 3)
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
        await clock.advance(random.below(2000))
        const sum = used.reduce((total, each) => total + each, 0)
        expect(sum).toBeLessThanOrEqual(places)
        // A place is free only where it is reserved for another provider.
        const below = shares.some((each, own) => each.waiting() > 0 && used[own]! < Math.floor(places / 3))
        expect(below ? places - sum : 0).toBeLessThanOrEqual(used.filter((of) => of === 0).length)
      }
    },
  )
})
