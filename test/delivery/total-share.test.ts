import { expect, test } from 'vitest'
import { TotalShare } from '../../src/delivery/total-share.ts'
import { turn } from '../support/fake-clock.ts'
import { createRandom } from '../support/random.ts'

const never = new AbortController().signal

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
