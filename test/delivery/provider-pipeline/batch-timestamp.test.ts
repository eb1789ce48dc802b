// The timestamp of a batch is the time of the service, as the time of its signature is.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import type { Received, Reply } from '../../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const hourMs = 3_600_000

/** The clock of the service is so far ahead of that of this machine. */
function aheadBy(ms: number, reply: Reply): Reply {
  const date = new Date(world.clock.now() + ms).toUTCString()
  return typeof reply === 'object' && 'status' in reply ? { ...reply, headers: { date } } : reply
}

const timestamps = () =>
  world.service.received.map(
    ({ body }) => (JSON.parse(body.toString('utf8')) as { timestamp: number }).timestamp,
  )

describe('the timestamp of a batch', () => {
  test('is corrected by the clock of the service once that is known', async () => {
    world = await createDeliveryWorld({ script: (one) => aheadBy(hourMs, acceptAll(one)) })
    await world.publish('a', 'b', 'c')
    await world.pass(1000)
    await world.publish('d', 'e', 'f')
    await world.pass(1000)
    const [first = 0, second = 0] = timestamps()
    expect(Math.abs(first - world.clock.now())).toBeLessThan(5000)
    expect(Math.abs(second - world.clock.now() - hourMs)).toBeLessThan(5000)
  })

  test('is corrected in the parts of a batch that the service refuses', async () => {
    // The answers 403 show the time; the batch was sealed before.
    const refuse = ({ payloadIds }: Received, index: number): Reply => {
      if (index < 2) return { status: 403 }
      return payloadIds.length > 2 ? { status: 413, body: { message: 'too large' } } : { status: 500 }
    }
    world = await createDeliveryWorld({ script: (one, index) => aheadBy(hourMs, refuse(one, index)) })
    await world.publish('a', 'b', 'c')
    await world.pass(1000)
    const parts = timestamps().slice(3)
    expect(parts.length).toBeGreaterThan(0)
    for (const timestamp of parts) expect(Math.abs(timestamp - world.clock.now() - hourMs)).toBeLessThan(5000)
  })
})
