import { describe, expect, onTestFinished, test } from 'vitest'
import { createHeldStore } from '../support/held-store.ts'
import { publishBytes, type Device } from '../support/mqtt-device.ts'
import { messageOf, roundTrip, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { createRandom } from '../support/random.ts'

/** Mapped, duplicate and unmappable messages: none may overtake another. */
const payloadFor = (n: number) => (n % 7 === 0 ? 'no json' : messageOf(n % 5 === 0 ? 1 : n))

const names = ['truck-1', 'truck-2', 'truck-3', 'truck-4']

/** Packet identifiers in the order of their first ack. */
function ackedBy(device: Device): number[] {
  return device.acks.filter(({ cmd }) => cmd !== 'pubcomp').map(({ messageId }) => messageId)
}

describe('acks in arrival order', () => {
  test('devices that each send a thousand messages at once get their acks in the order of sending', async () => {
    const pipeline = await startPipeline()
    const devices = await Promise.all(names.map((name) => pipeline.device(name)))
    const count = 1000
    const streams = names.map((name) =>
      Buffer.concat(
        Array.from({ length: count }, (_, n) =>
          publishBytes({ topic: topicOf(name), payload: payloadFor(n), messageId: n + 1 }),
        ),
      ),
    )
    const random = createRandom(3)
    // In segments of any size, taken in turns, so that the connections are read in turns as well.
    for (let left = streams; left.some((stream) => stream.length > 0);) {
      left = left.map((stream, index) => {
        const end = random.below(20_000)
        devices[index]?.sendBytes(stream.subarray(0, end))
        return stream.subarray(end)
      })
      await new Promise(setImmediate)
    }
    for (const device of devices) {
      await device.acked(count)
      expect(ackedBy(device)).toEqual(Array.from({ length: count }, (_, n) => n + 1))
    }
  })

  test('over all connections, no message is acknowledged before one that arrived earlier', async () => {
    const store = createHeldStore()
    const deps = { openStore: store.openStore }
    const pipeline = await startPipeline({ baseUrl: 'http://127.0.0.1:9', deps })
    onTestFinished(() => store.release())
    const devices = await Promise.all(names.map((name) => pipeline.device(name)))
    const random = createRandom(11)
    const arrived: string[] = []
    const acked = () => devices.flatMap((device) => ackedBy(device).map((id) => `${device.clientId} ${id}`))

    store.hold()
    const counts: number[] = []
    for (let round = 0; round < 25; round += 1) {
      for (let step = 0; step < 6; step += 1) {
        const device = random.pick(devices)
        for (let more = random.below(4); more >= 0; more -= 1) {
          const messageId = arrived.length + 1
          const qos = random.chance(0.2) ? 2 : 1
          device.publish({
            topic: topicOf(device.clientId),
            payload: payloadFor(messageId),
            qos,
            messageId,
          })
          arrived.push(`${device.clientId} ${messageId}`)
        }
        // They are read before the next device sends, so the order of arrival is known.
        await roundTrip(device)
      }
      // One write ends; the next one has begun when it waits, and the acks of the first one were given.
      await pipeline.until(() => store.waiting() > 0)
      store.releaseOne()
      await pipeline.until(() => store.waiting() > 0)
      await Promise.all(devices.map(roundTrip))
      counts.push(acked().length)
      expect(new Set(acked())).toEqual(new Set(arrived.slice(0, acked().length)))
    }
    expect(new Set(counts).size).toBeGreaterThan(20)
    store.release()
    await pipeline.until(() => acked().length === arrived.length)
    for (const device of devices) expect(ackedBy(device)).toEqual(ackedBy(device).toSorted((a, b) => a - b))
  })
})
