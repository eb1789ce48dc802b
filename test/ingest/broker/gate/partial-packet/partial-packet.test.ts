import { describe, expect, test } from 'vitest'
import { createPagePool } from '../../../../../src/ingest/broker/gate/partial-packet/page-pool.ts'
import { createPartialBudget } from '../../../../../src/ingest/broker/gate/partial-packet/partial-budget.ts'
import { createFraming } from '../../../../../src/ingest/broker/gate/packet-reader/packet-framing.ts'
import { createPartialPacket } from '../../../../../src/ingest/broker/gate/partial-packet/partial-packet.ts'
import { connectBytes, publishBytes } from '../../../../support/mqtt-device.ts'
import { createRandom } from '../../../../support/random.ts'

function open(partialBytesMax = 1e9) {
  const budget = createPartialBudget({ partialBytesMax })
  const pool = createPagePool()
  const framing = createFraming({ connectBytesMax: 1000, packetBytesMax: 1e6 })
  framing.follow(connectBytes('truck'), { messages: 1, packets: 1, control: 10 })
  const closed: string[] = []
  const connection = {
    address: '192.0.2.1',
    close(detail: string) {
      closed.push(detail)
      partial.discard()
    },
  }
  const partial = createPartialPacket({ budget, pool }, connection, framing, {
    partialTimeoutMs: 30_000,
  })
  return { partial, counted: () => budget.counters().partialBytes, closed }
}

function packetOf(bytes: number): Buffer {
  const payload = Buffer.alloc(bytes)
  for (let index = 0; index < bytes; index += 1) payload[index] = index % 251
  return publishBytes({ topic: 't', payload, messageId: 1 })
}

describe('the first part of a packet', () => {
  test('is whole again however it was cut, and is counted as no more than what arrived', () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const random = createRandom(seed)
      const packet = packetOf(random.pick([1, 100, 5000, 70_000, 400_000]))
      const cutMax = random.pick([3, 1000, 20_000, 70_000])
      const { partial, counted } = open()
      let at = Math.min(1 + random.below(cutMax), packet.length - 1)
      partial.begin(packet.subarray(0, at))
      let left = 0
      let excess = 0
      while (!partial.isWhole) {
        const chunk = packet.subarray(at, at + 1 + random.below(cutMax))
        const taken = partial.append(chunk)
        at += taken
        left += chunk.length - taken
        excess = Math.max(excess, counted() - at)
      }
      expect(left, `seed ${seed}`).toBe(0)
      expect(excess, `seed ${seed}`).toBe(0)
      expect(partial.isPublish).toBe(true)
      expect(partial.take().equals(packet), `seed ${seed}`).toBe(true)
      expect(counted()).toBe(0)
      expect(partial.started).toBe(false)
    }
  })

  test('does not take what is behind the packet', () => {
    const { partial } = open()
    const packet = packetOf(100)
    partial.begin(packet.subarray(0, 1))
    expect(partial.append(Buffer.concat([packet.subarray(1), Buffer.from([0xc0, 0])]))).toBe(
      packet.length - 1,
    )
    expect(partial.take().equals(packet)).toBe(true)
  })

  test('costs no memory for what was only announced', () => {
    const { partial, counted } = open()
    partial.begin(packetOf(900_000).subarray(0, 5))
    expect(counted()).toBe(0)
  })

  test('is gone once the budget has closed its connection', () => {
    const { partial, closed } = open(50_000)
    const packet = packetOf(400_000)
    partial.begin(packet.subarray(0, 40_000))
    partial.append(packet.subarray(40_000, 90_000))
    expect(closed).toHaveLength(1)
    expect(partial.started).toBe(false)
    expect(partial.isWhole).toBe(false)
  })
})
