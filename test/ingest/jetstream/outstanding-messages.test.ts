// Which messages are outstanding at a durable of a real NATS. The place that the durable says to have delivered is not
// used: nats-server 2.10 says a smaller one after all nodes were killed. jetstream.slow.test.ts: they come again first.

import { expect, test } from 'vitest'
import { placesBehind } from '../../../src/ingest/jetstream/partition-consumer/outstanding-messages.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { openNats } from '../../support/nats-world.ts'

const stream = 'orders'
const filters = ['odd.1', 'odd.3']

test.skipIf(!hasNats)(
  'the first messages behind a place are found, of all filters, at most so many',
  async () => {
    await using nats = await openNats(await startNats())
    await nats.jsm.streams.add({ name: stream, subjects: ['odd.*', 'even.*'] })
    // Those of `odd` have the places 1, 3, 5, 7, 9.
    for (let n = 1; n <= 10; n += 1)
      await nats.nc.request(n % 2 === 1 ? `odd.${n % 4}` : `even.${n}`, String(n), { timeout: 5000 })
    const places = (behind: number, count: number) =>
      placesBehind(nats, { stream, filters }, { behind, count })
    expect(await places(0, 3)).toEqual([1, 3, 5])
    expect(await places(1, 2)).toEqual([3, 5])
    expect(await places(4, 9)).toEqual([5, 7, 9])
    expect(await places(0, 0)).toEqual([])
    expect(await places(0, -1)).toEqual([])
    expect(await places(9, 1)).toEqual([])
  },
)
