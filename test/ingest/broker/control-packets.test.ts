import { expect, test } from 'vitest'
import { collectGarbage } from '../../support/garbage.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { auto } from '../../support/memory-intake-spool.ts'

/** Without garbage. */
function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

test('200,000 subscriptions leave nothing behind', async () => {
  await using world = await openIngest(auto(), { controlPacketsPerSecondMax: 100_000 })
  const device = await world.device('curious')
  let before = 0
  for (let round = 0; round < 21; round += 1) {
    const subscriptions = Array.from({ length: 10_000 }, (_, n) => ({
      topic: `${round}/${n}`,
      qos: 1 as const,
    }))
    device.send({ cmd: 'subscribe', messageId: round + 1, subscriptions })
    await device.until((received) => received.filter(({ cmd }) => cmd === 'suback').length > round)
    if (round === 0) before = heapBytes()
  }
  expect(world.ingest.counters().subscriptions).toBe(210_000)
  // What the device itself keeps are the 200,000 codes. A filter that is stored costs more than 100 bytes.
  expect(heapBytes() - before).toBeLessThan(10e6)
})
