// Two providers, of which one is down: its payloads wait in the engine, and nothing waits for them.

import { expect, test } from 'vitest'
import { createCustodyParts } from '../../support/custody-parts.ts'
import { acceptAll, type Received, type Reply } from '../../support/scripted-service.ts'

const providers = ['up', 'down']
const isOf = (provider: string) => (one: Received) => one.headers['x-provider-key'] === provider
const idsOf = (received: readonly Received[]) => received.flatMap(({ payloadIds }) => payloadIds)
const count = 30

test.each<[string, Reply]>([
  ['is not reachable', 'no connection'],
  ['answers 403', { status: 403, body: { requestId: 'r', message: 'no' } }],
])(
  'payloads of a provider that %s are parked until it accepts, and others are delivered',
  async (_, reply) => {
    const oneIsDown = (received: Received) => (isOf('down')(received) ? reply : acceptAll(received))
    // What is parked comes back soon, and is parked again: within the time of the dedup window.
    const world = await createCustodyParts({ providers, script: oneIsDown, parkForMs: 5000 })
    const publish = async (from: number) => {
      for (let n = from; n < from + count; n += 1) {
        world.words(`for down d-${n}`, `for up u-${n}`)
        await world.pass(300)
      }
    }
    await publish(0)
    await world.passUntil(() => world.engine.counts.acked === 2 * count, 600_000)
    await publish(count)
    await world.passUntil(() => world.engine.counts.acked === 4 * count, 600_000)
    expect(idsOf(world.service.received.filter(isOf('up'))).length).toBe(2 * count)
    const { takenBack, parkedDuplicates } = world.custody.view()
    expect(parkedDuplicates).toBe(0)
    expect(takenBack).toBeGreaterThan(count)
    expect(world.custody.states()).toEqual([])
    world.service.answer(acceptAll)
    await world.passUntil(() => world.delivery.counters().delivered === 4 * count)
    await world.passUntil(() => world.engine.parked.length === 0)
    expect(world.delivery.counters().delivered).toBe(4 * count)
    expect(world.spool.lanes().reduce((sum, { open }) => sum + open, 0)).toBe(0)
  },
)
