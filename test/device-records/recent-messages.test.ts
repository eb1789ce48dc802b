import { describe, expect, test } from 'vitest'
import { blockBytes, createMessageBlocks } from '../../src/device-records/recent-messages/message-blocks.ts'
import type { MessageRing, RingOwner } from '../../src/device-records/recent-messages/message-ring.ts'
import { createRecentMessages } from '../../src/device-records/recent-messages/recent-messages.ts'
import { messageOf } from '../support/mapping-world.ts'
import { createRandom } from '../support/random.ts'

const ringMemory = 8 * blockBytes

const owner = (): RingOwner => ({ ring: null as MessageRing | null })
const second = 1000

function world(bytesMax = 1024 ** 2) {
  const recent = createRecentMessages({ bytesMax })
  let at = 1_760_000_000_000
  const add = (to: RingOwner, text: string | Buffer, topic = 'telemetry/v1/truck-7') => {
    at += second
    recent.add(to, messageOf(text, { topic, arrivedAt: at }), 'payloads')
  }
  const texts = (of: RingOwner) => recent.of(of).map(({ bytes }) => bytes.toString())
  return { recent, add, texts, pass: (ms: number) => void (at += ms) }
}

describe('the last messages of a device', () => {
  test('are the last twenty, the newest first, whole and with their topic', () => {
    const { recent, add, texts } = world()
    const truck = owner()
    for (let n = 0; n < 50; n += 1) add(truck, `message ${n}`, `t/ä/${n % 3}`)
    expect(texts(truck)).toEqual(Array.from({ length: 20 }, (_, n) => `message ${49 - n}`))
    expect(recent.of(truck)[0]).toMatchObject({
      topic: 't/ä/1',
      qos: 1,
      dup: false,
      cutBytes: 0,
      offsetMs: null,
    })
  })

  test('of a device that floods are twenty of each second, and the others are counted', () => {
    const recent = createRecentMessages({ bytesMax: 1024 ** 2 })
    const truck = owner()
    for (let n = 0; n < 500; n += 1) recent.add(truck, messageOf(`m${n}`, { arrivedAt: 1000 }), 'payloads')
    expect(recent.of(truck)[0]?.bytes.toString()).toBe('m19')
    expect(truck.ring?.skipped).toBe(480)
    recent.add(truck, messageOf('next', { arrivedAt: 2001 }), 'payloads')
    expect(recent.of(truck)[0]?.bytes.toString()).toBe('next')
  })
})

test('of more than 5000 messages in a second, the rest are counted and not kept', () => {
  const recent = createRecentMessages({ bytesMax: 1024 ** 2 })
  const trucks = Array.from({ length: 100 }, owner)
  for (let n = 0; n < 6000; n += 1)
    recent.add(trucks[n % 100]!, messageOf(`m${n}`, { arrivedAt: 1000 + n / 10 }), 'payloads')
  expect(recent.counters().notKept).toBe(1000)
  recent.add(trucks[0]!, messageOf('next', { arrivedAt: 2001 }), 'payloads')
  expect(recent.of(trucks[0]!)[0]?.bytes.toString()).toBe('next')
})

test('a device has memory for what it sent, up to that of a whole ring', () => {
  const { recent, add, texts } = world()
  const truck = owner()
  const memory: number[] = []
  for (let n = 0; n < 50; n += 1) {
    add(truck, `${n}`.padEnd(600, '.'))
    memory.push(recent.counters().ringBytes / blockBytes)
  }
  expect([...new Set(memory)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(memory.slice(0, 4)).toEqual([1, 2, 2, 3])
  expect(texts(truck)[0]?.slice(0, 3)).toBe('49.')
  // As many as the ring has room for.
  expect(texts(truck)).toHaveLength(12)
})

test.each([1, 2, 3, 20, 1000])(
  'messages in %i blocks are the newest ones, whole, in their order',
  (blocks) => {
    const random = createRandom(blocks)
    const { recent, add } = world(blocks * blockBytes)
    const trucks = Array.from({ length: Math.min(1 + (blocks >> 1), 50) }, () => ({
      owner: owner(),
      sent: [] as string[],
    }))
    let cut = 0
    for (let n = 0; n < 1500; n += 1) {
      const truck = random.pick(trucks)
      if (random.chance(0.005)) recent.drop(truck.owner)
      if (truck.owner.ring === null) truck.sent = []
      const length = random.chance(0.25) ? random.below(2500) : random.below(400)
      const text = `${n} `.padEnd(length, String.fromCodePoint(97 + (n % 26)))
      add(truck.owner, text, `t/${random.below(3)}`)
      if (truck.owner.ring !== null) truck.sent.push(text)
      const kept = recent.of(truck.owner)
      const shown = kept.map(({ bytes, cutBytes }) => [bytes.toString(), bytes.length + cutBytes])
      const sent = truck.sent.slice(-kept.length).toReversed()
      const due = kept.map(({ bytes }, index) => [sent[index]!.slice(0, bytes.length), sent[index]!.length])
      expect([kept.length > 0, shown]).toEqual([truck.owner.ring !== null, due])
      cut += kept.filter(({ bytes, cutBytes }) => cutBytes > 0 && bytes.length < 2048).length
      expect(recent.counters().ringBytes).toBeLessThanOrEqual(blocks * blockBytes)
    }
    // Only where a message finds less memory than it needs.
    expect(cut > 0).toBe(blocks < 1000)
  },
)

describe('at the bound of the memory', () => {
  test('a device has none while all others send, and gets the ring of one that is quiet', () => {
    const { recent, add, texts, pass } = world(8 * blockBytes)
    const trucks = Array.from({ length: 8 }, owner)
    for (const truck of trucks) add(truck, 'a')
    const late = owner()
    add(late, 'b')
    expect(texts(late)).toEqual([])
    expect(recent.counters()).toMatchObject({ rings: 8, ringBytes: 8 * blockBytes, notKept: 1 })
    pass(600_000)
    for (const truck of trucks.slice(1)) add(truck, 'c')
    for (let n = 0; n < 200; n += 1) add(late, `b${n}`)
    expect(texts(late)[0]).toBe('b199')
    expect(texts(trucks[0]!)).toEqual([])
    expect(texts(trucks[1]!)).toEqual(['c', 'a'])
  })

  test('each device of a large fleet has its last messages, as many as there is room for', () => {
    const bytesMax = 320 * blockBytes
    const { recent, add, texts } = world(bytesMax)
    const trucks = Array.from({ length: 100 }, owner)
    const message = (truck: number, n: number) => `${truck} ${n} `.padEnd(330, '.')
    // The first ones have sent much before the others come.
    for (let n = 0; n < 30; n += 1)
      for (let truck = 0; truck < 20; truck += 1) add(trucks[truck]!, message(truck, n))
    expect(recent.counters().ringBytes).toBeGreaterThan(bytesMax / 2 - ringMemory)
    for (let n = 30; n < 50; n += 1)
      for (const [truck, to] of trucks.slice(0, 60).entries()) add(to, message(truck, n))
    expect(recent.counters()).toMatchObject({ rings: 60, notKept: 0 })
    expect(recent.counters().ringBytes).toBeLessThanOrEqual(bytesMax)
    for (const [truck, of] of trucks.slice(0, 60).entries()) {
      const kept = texts(of)
      expect(kept.length).toBeGreaterThanOrEqual(2)
      expect(kept).toEqual(kept.map((_, index) => message(truck, 49 - index)))
    }
    expect(texts(trucks[0]!)).toHaveLength(20)
    // Longer than the ring: it has the whole message, and others later.
    add(trucks[59]!, 'x'.repeat(2000))
    expect(texts(trucks[59]!)).toEqual(['x'.repeat(2000)])
    add(trucks[59]!, 'y'.repeat(300))
    expect(texts(trucks[59]!)).toEqual(['y'.repeat(300)])
    expect(recent.counters().ringBytes).toBeLessThanOrEqual(bytesMax)
  })

  test('a message that is longer than the ring is cut where no memory is left', () => {
    const { recent, add } = world(blockBytes)
    const truck = owner()
    add(truck, 'x'.repeat(2000))
    const [{ bytes, cutBytes } = { bytes: Buffer.of(), cutBytes: 0 }] = recent.of(truck)
    expect(bytes.toString()).toBe('x'.repeat(2000 - cutBytes))
    expect(bytes.length).toBeGreaterThan(blockBytes - 64)
    expect(recent.counters().ringBytes).toBe(blockBytes)
  })

  test('what is dropped leaves nothing behind', () => {
    const { recent, add, texts } = world(4 * blockBytes)
    const truck = owner()
    for (let n = 0; n < 3; n += 1) add(truck, 'secret place'.repeat(50))
    expect(recent.counters().ringBytes).toBe(2 * blockBytes)
    recent.drop(truck)
    expect(texts(truck)).toEqual([])
    expect(recent.counters()).toMatchObject({ rings: 0, ringBytes: 0 })
    const other = owner()
    add(other, 'b')
    expect(texts(other)).toEqual(['b'])
  })
})

test('blocks that were given back are zero, and are taken first', () => {
  const blocks = createMessageBlocks(300)
  const taken = Array.from({ length: 300 }, () => blocks.take())
  expect(blocks.take()).toBe(-1)
  expect(new Set(taken.map((block) => blocks.slabOf(block))).size).toBe(2)
  for (const block of taken)
    blocks.slabOf(block).bytes.fill(7, blocks.offsetOf(block), blocks.offsetOf(block) + blockBytes)
  blocks.giveBack(taken[299]!)
  expect(blocks.takeBehind(taken[0]!)).toBe(true)
  expect(blocks.takeBehind(taken[0]!)).toBe(false)
  expect(blocks.next(taken[0]!)).toBe(taken[299])
  blocks.giveBack(taken[0]!)
  expect(blocks.inUse()).toBe(298)
  for (const block of [taken[0]!, taken[299]!]) {
    const at = blocks.offsetOf(block)
    expect(blocks.slabOf(block).bytes.subarray(at, at + blockBytes)).toEqual(Buffer.alloc(blockBytes))
  }
  expect(new Set([blocks.take(), blocks.take(), blocks.take()])).toEqual(new Set([taken[0], taken[299], -1]))
})
