import { describe, expect, test } from 'vitest'
import { openIngest } from '../../../support/ingest-world.ts'
import { auto, byHand } from '../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../support/mqtt-device.ts'

function burst(from: number, count: number, qos: 0 | 1): Buffer {
  const packets = Array.from({ length: count }, (_, n) =>
    publishBytes({ topic: 't', payload: `${from + n}`, qos, messageId: from + n }),
  )
  return Buffer.concat(packets)
}

describe('while many messages are not durable', () => {
  test('all of it is taken when it is busy again and again', async () => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const devices = await Promise.all([1, 2, 3].map((n) => world.device(`d${n}`)))
    spool.setBusy(true)
    for (const device of devices) device.sendBytes(burst(1, 300, 1))
    for (let taken = 0; taken < 900;) {
      await spool.ended(Math.min(900, taken + 1))
      taken += spool.open
      spool.commit()
      spool.setBusy(false)
      spool.setBusy(true)
    }
    for (const device of devices) expect(await device.acked(300)).toHaveLength(300)
  })
})

test('a client that sends without a pause is read in turns with others', async () => {
  await using world = await openIngest(auto())
  const flood = await world.device('flood')
  const single = await world.device('single')
  const count = 20_000
  flood.sendBytes(burst(1, count, 0))
  single.publish({ topic: 't', payload: 'single', messageId: 1 })
  await single.acked(1)
  expect(world.ingest.counters().received).toBeLessThan(count / 2)
})
