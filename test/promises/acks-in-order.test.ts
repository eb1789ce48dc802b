import { describe, expect, test } from 'vitest'
import { publishBytes } from '../support/mqtt-device.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

describe('acks in arrival order', () => {
  test('a device that sends a thousand messages in one go gets their acks in the order of sending', async () => {
    const pipeline = await startPipeline()
    const device = await pipeline.device('truck-1')
    const count = 1000
    // Mapped, copies, ignored by nobody, and unmappable: none may overtake another.
    const payloadFor = (n: number) => (n % 7 === 0 ? 'no json' : messageOf(n % 5 === 0 ? 1 : n))
    const bytes = Array.from({ length: count }, (_, n) =>
      publishBytes({ topic: topicOf('truck-1'), payload: payloadFor(n), messageId: n + 1 }),
    )
    device.sendBytes(Buffer.concat(bytes))
    await device.acked(count)
    expect(device.acks.map(({ messageId }) => messageId)).toEqual(
      Array.from({ length: count }, (_, n) => n + 1),
    )
  })
})
