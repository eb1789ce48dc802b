// The packets of MQTT 3.1.1 have the same result however the network cuts and joins them, although aedes reads some
// of them and the gateway the others. cut-packets.test.ts is the same for MQTT 5.

import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIngest, textOf, type IngestWorld } from '../../../support/ingest-world.ts'
import { createMemoryIntakeSpool, type MemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import {
  connectPacket3,
  disconnectPacket3,
  publishPacket3,
  readServerPacket3,
  subscribePacket3,
  unsubscribePacket3,
} from '../../../support/mqtt3-packets.ts'
import { pingPacket, pubrelPacket } from '../../../support/mqtt5-packets.ts'
import { openRawDevice } from '../../../support/raw-device.ts'

/** A packet, what answers it, and the text of its message. */
type Step = { packet: Buffer; answer: string | null; text: string | null }

let world: IngestWorld
let spool: MemoryIntakeSpool
beforeAll(async () => {
  const fast = { connectsPerS: 1e6, connectsPerAddressPerS: 1e6, controlPacketsPerSecondMax: 1e6 }
  spool = createMemoryIntakeSpool({ commits: 'auto' })
  world = await openIngest(spool, fast)
})
afterAll(() => world[Symbol.asyncDispose]())

let clients = 0
let packets = 0

type Kind = 'pubrel' | 'subscribe' | 'unsubscribe' | 'ping'
type Published = { qos: number; dup: boolean; size: number }

function stepOf(one: Kind | Published): Step {
  packets += 1
  const id = 1 + (packets % 65_535)
  if (typeof one === 'object') {
    const { qos, size } = one
    const text = `m${packets}${'.'.repeat(size)}`
    const packet = publishPacket3({ topic: 't', payload: text, qos, dup: one.dup && qos > 0, messageId: id })
    return { packet, answer: [null, `puback ${id} `, `pubrec ${id} `][qos]!, text }
  }
  const filters = [
    ['a/b', 1],
    ['c/+', 2],
  ] as const
  const [packet, answer] = {
    pubrel: [pubrelPacket(id), `pubcomp ${id} `] as const,
    subscribe: [subscribePacket3(id, filters), `suback ${id} 1,2`] as const,
    unsubscribe: [unsubscribePacket3(id, ['a/b']), `unsuback ${id} `] as const,
    ping: [pingPacket, 'pingresp 0 '] as const,
  }[one]
  return { packet, answer, text: null }
}

type Result = { answers: readonly string[]; texts: readonly string[] }

/** Sends the packets cut at `cuts`, and DISCONNECT when all are answered: what came of them, and what must. */
async function resultOf(
  steps: readonly Step[],
  cuts: readonly number[],
): Promise<{ actual: Result; due: Result }> {
  clients += 1
  const hello = connectPacket3({ clientId: `client-${String(clients).padStart(8, '0')}` })
  const bytes = Buffer.concat([hello, ...steps.map(({ packet }) => packet)])
  const answers = steps.flatMap(({ answer }) => answer ?? [])
  const texts = steps.flatMap(({ text }) => text ?? [])
  const before = spool.payloads.length
  await using device = await openRawDevice({ url: `mqtt://127.0.0.1:${world.port}` }, readServerPacket3)
  let start = 0
  for (const cut of [...cuts.filter((one) => one < bytes.length), bytes.length]) {
    device.send(bytes.subarray(start, cut))
    start = cut
    // In this turn of the event loop the gateway reads what was written.
    await new Promise(setImmediate)
  }
  await device.until(() => device.received.length > answers.length)
  device.send(disconnectPacket3)
  await device.gone()
  const actual = device.received
    .slice(1)
    .map(({ type, messageId, codes }) => `${type} ${messageId} ${codes.join()}`)
  return {
    actual: { answers: byType(actual), texts: spool.payloads.slice(before).map(textOf) },
    due: { answers: byType(answers), texts },
  }
}

/** Each type has the order of its packets. */
function byType(answers: readonly string[]): string[] {
  return ['puback', 'pubrec', 'pubcomp', 'suback', 'unsuback', 'pingresp'].flatMap((type) =>
    answers.filter((answer) => answer.startsWith(type)),
  )
}

test('cut at each byte', async () => {
  const published = (qos: number, size = 3) => ({ qos, size, dup: qos === 2 })
  const kinds = [
    published(0),
    published(1),
    'subscribe',
    published(2),
    'pubrel',
    'ping',
    published(1, 130),
    'unsubscribe',
    published(2),
  ] as const
  for (let cut = 0; cut < 330; cut += 1) {
    const { actual, due } = await resultOf(kinds.map(stepOf), [cut])
    expect(actual).toEqual(due)
  }
})

test('in groups of any size', async () => {
  const published = fc.record({
    qos: fc.constantFrom(0, 1, 2),
    dup: fc.boolean(),
    size: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constant(20_000)),
  })
  const kind = fc.constantFrom<Kind[]>('pubrel', 'subscribe', 'unsubscribe', 'ping')
  const some = fc.array(fc.oneof({ weight: 3, arbitrary: published }, kind), { maxLength: 30 })
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 5000 })), {
    maxLength: 60,
  })
  await fc.assert(
    fc.asyncProperty(some, sizes, async (kinds, groups) => {
      const cuts: number[] = []
      for (const size of groups) cuts.push((cuts.at(-1) ?? 0) + size)
      const { actual, due } = await resultOf(kinds.map(stepOf), cuts)
      expect(actual).toEqual(due)
    }),
    { numRuns: 120 },
  )
})
