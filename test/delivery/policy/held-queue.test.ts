import { expect, test } from 'vitest'
import { createInFlightBatches } from '../../../src/delivery/policy/in-flight-batches.ts'
import { defaultBackoff } from '../../../src/delivery/delivery-options.ts'
import type { Held } from '../../../src/domain/held.ts'
import type { Batch } from '../../../src/spool/spool.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const held: Held = { reason: 'repeated', since: 1, requestId: null, why: 'no' }
const batchOf = (batchId: string) => ({ batchId, payloads: 1, held }) as unknown as Batch

test('a held batch is given out once, also while an operator has another one', () => {
  const clock = createFakeClock()
  const batches = createInFlightBatches({ clock, random: () => 0.5 }, { backoff: defaultBackoff })
  const [one, other] = ['a', 'b'].map((id) => batches.add(batchOf(id), 'recovered'))
  expect(batches.held.nextReady()).toBe(one)
  batches.take(one!)
  batches.take(other!)
  batches.putBack(other!)
  expect(batches.held.nextReady()).toBeNull()
  batches.putBack(one!)
  const given = [batches.held.nextReady()]
  batches.take(given[0]!)
  batches.remove(given[0]!)
  given.push(batches.held.nextReady())
  expect(new Set(given)).toEqual(new Set([one, other]))
})
