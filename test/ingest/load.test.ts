import { describe, expect, test } from 'vitest'
import { openIngest } from '../support/ingest-world.ts'
import { auto } from '../support/memory-intake-spool.ts'
import { publishBytes, type Device } from '../support/mqtt-device.ts'
import { createRandom, type Random } from '../support/random.ts'

const messages = 20_000
const devices = 10
const each = messages / devices

type Sent = { bytes: Buffer; qos: 0 | 1 | 2 }

function script(random: Random, name: string): Sent[] {
  return Array.from({ length: each }, (_, index) => {
    const qos = random.pick([0, 1, 1, 1, 2] as const)
    const payload = `${name} ${index} ${'x'.repeat(random.below(400))}`
    return { qos, bytes: publishBytes({ topic: `t/${name}`, payload, messageId: index + 1, qos }) }
  })
}

/** Sends the script in segments of every size, from one byte to many packets. */
async function send(random: Random, device: Device, sent: readonly Sent[]): Promise<void> {
  const stream = Buffer.concat(sent.map(({ bytes }) => bytes))
  for (let at = 0; at < stream.length;) {
    const step = random.pick([1, 3, 100, 400, 5000, 70_000])
    device.sendBytes(stream.subarray(at, at + step))
    at += step
    if (random.chance(0.3)) await new Promise(setImmediate)
  }
}

describe('nothing hangs', () => {
  test.each([1, 2, 3])(
    '20,000 messages in segments of every size, while the spool holds and resumes, are all acknowledged (seed %i)',
    async (seed) => {
      const random = createRandom(seed)
      const spool = auto()
      await using world = await openIngest(spool, { inFlightMax: 50, heldMessagesMax: 300 })
      const scripts = Array.from({ length: devices }, (_, index) => script(random, `d${index}`))
      // Their PUBRELs come at the end: one in the middle of a packet that was cut would break the stream.
      const all = await Promise.all(
        scripts.map((_, index) => world.connection(`d${index}`, { releases: false })),
      )
      for (const device of all) await device.connect()

      const end = new AbortController()
      const weather = (async () => {
        while (!end.signal.aborted) {
          if (random.chance(0.2)) spool.setHold(spool.holdReason() === null ? 'spool_full' : null)
          if (random.chance(0.2)) spool.setCongested(!spool.congested())
          await new Promise(setImmediate)
        }
      })()
      await Promise.all(all.map((device, index) => send(random, device, scripts[index]!)))
      for (const [index, device] of all.entries()) {
        const owed = scripts[index]!.filter(({ qos }) => qos > 0).length
        await device.acked(owed)
        const received = device.acks.filter(({ cmd }) => cmd === 'pubrec')
        for (const { messageId } of received) device.send({ cmd: 'pubrel', messageId })
        await device.acked(owed + received.length)
        const pubacks = device.acks.filter(({ cmd }) => cmd === 'puback').map(({ messageId }) => messageId)
        expect(pubacks, 'in the order of arrival').toEqual(pubacks.toSorted((a, b) => a - b))
      }
      end.abort()
      await weather

      const { received, mapped, duplicates, dropped, held, acked, droppedByReason } = world.ingest.counters()
      const qos0 = scripts.flat().filter(({ qos }) => qos === 0).length
      expect(droppedByReason).toEqual(new Map())
      expect({ received, duplicates, held, acked }).toEqual({
        received: messages,
        duplicates: 0,
        held: 0,
        acked: messages - qos0,
      })
      expect(mapped + dropped).toBe(messages)
      expect(dropped).toBeLessThanOrEqual(qos0)
      expect(spool.payloads).toHaveLength(mapped)
    },
  )
})
