import { describe, expect, test } from 'vitest'
import {
  createRecentMessages,
  type MessageRing,
  type RingOwner,
} from '../../src/device-records/recent-messages.ts'
import { messageOf } from '../support/mapping-world.ts'

const ringMemory = 7168 + 20 * 64
const firstMemory = 896 + 20 * 64

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

  test.each([1, 100, 700, 1500, 2047, 2048, 3000, 70_000])(
    'of %i bytes never mix, and are cut at a bound',
    (size) => {
      const { recent, add } = world()
      const truck = owner()
      for (let n = 0; n < 100; n += 1) {
        add(truck, Buffer.alloc(size + (n % 7), n), 'x'.repeat(n % 16))
        const kept = recent.of(truck)
        expect(kept.length).toBeGreaterThan(0)
        for (const [index, { bytes, cutBytes, topic }] of kept.entries()) {
          const number = n - index
          expect(bytes.every((byte) => byte === number)).toBe(true)
          expect(bytes.length + cutBytes).toBe(size + (number % 7))
          expect(topic).toBe('x'.repeat(number % 16))
        }
      }
    },
  )

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
  for (let n = 0; n < 30; n += 1) {
    add(truck, `${n}`.padEnd(400, '.'))
    memory.push(recent.counters().ringBytes)
  }
  expect([...new Set(memory)]).toEqual([firstMemory, 2 * 896 + 1280, 4 * 896 + 1280, ringMemory])
  expect(memory.slice(0, 3)).toEqual([firstMemory, firstMemory, 2 * 896 + 1280])
  expect(texts(truck)[0]?.slice(0, 3)).toBe('29.')
  // As many as the ring has room for.
  expect(texts(truck)).toHaveLength(17)
})

describe('at the bound of the memory', () => {
  test('a device has none while all others send, and gets the ring of one that is quiet', () => {
    const { recent, add, texts, pass } = world(8 * firstMemory)
    const trucks = Array.from({ length: 8 }, owner)
    for (const truck of trucks) add(truck, 'a')
    const late = owner()
    add(late, 'b')
    expect(texts(late)).toEqual([])
    expect(recent.counters()).toMatchObject({ rings: 8, ringBytes: 8 * firstMemory, notKept: 1 })
    pass(600_000)
    for (const truck of trucks.slice(1)) add(truck, 'c')
    for (let n = 0; n < 200; n += 1) add(late, `b${n}`)
    expect(texts(late)[0]).toBe('b199')
    expect(texts(trucks[0]!)).toEqual([])
    expect(texts(trucks[1]!)).toEqual(['c', 'a'])
  })

  test('each device of a large fleet has its last messages, as many as there is room for', () => {
    const bytesMax = 100 * firstMemory
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

  test('rings that may not double are written over, and mix nothing', () => {
    const { recent, add, texts } = world(2 * (firstMemory + 1200))
    const [truck, other] = [owner(), owner()]
    for (const letter of 'ab') add(truck, letter.repeat(800))
    for (const letter of 'cd') add(truck, letter.repeat(300))
    expect(recent.counters().ringBytes).toBe(2 * 896 + 1280)
    expect(texts(truck)).toEqual(['d'.repeat(300), 'c'.repeat(300), 'b'.repeat(800)])
    for (const letter of 'ef') add(other, letter.repeat(800))
    for (const letter of 'gh') add(other, letter.repeat(300))
    expect(texts(other)).toEqual(['h'.repeat(300), 'g'.repeat(300)])
  })

  test('a message that is longer than the ring is cut where no memory is left', () => {
    const { recent, add } = world(firstMemory)
    const truck = owner()
    add(truck, 'x'.repeat(2000))
    expect(recent.of(truck)[0]).toMatchObject({ cutBytes: 2000 - 896 })
    expect(recent.counters().ringBytes).toBe(firstMemory)
  })

  test('what is dropped leaves nothing behind', () => {
    const { recent, add, texts } = world(firstMemory)
    const truck = owner()
    add(truck, 'secret place')
    const { bytes } = truck.ring!
    recent.drop(truck)
    expect(bytes.includes('secret place')).toBe(false)
    expect(texts(truck)).toEqual([])
    const other = owner()
    add(other, 'b')
    expect(texts(other)).toEqual(['b'])
  })
})
