// flip-acts.ts: bits that flip at rest, in the keys and values of chunks. What a chunk held is noted, for the oracle: nobody
// gets it, and it is counted.
//
// Only chunks of which nothing was submitted yet. One that the gateway still has in memory may be submitted after that,
// whole; and after a restart the rest of its batch under another batchId.

import type { Random } from '../../support/random.ts'
import { spoolPath } from '../daemon.ts'
import { Database } from '../machine/database.ts'
import type { Machine } from '../machine/machine.ts'
import type { Payload, Service } from '../world/service.ts'

export type Flips = {
  act(): void
  /** The gateway says that so many payloads are damaged or missing. */
  reported(payloads: number): void
  /** What it said in all: more where a process ends before that is durable. */
  readonly reports: number
  /** What the chunks held of which a bit has flipped. */
  readonly payloads: readonly Payload[]
  /** Of keys: a process that runs may still have the chunk in memory, and never finds what it deletes. */
  readonly keys: number
  readonly values: number
}

const chunksOf = { from: '\u0010', to: '\u0011' }
/** Of a chunk: the bytes before its payloads (src/spool/chunk-log/chunk-codec.ts says what they are to the daemon). */
const headBytes = 29
const keyShare = 0.5

export function createFlips({ disk }: Machine, services: readonly Service[], random: Random): Flips {
  const payloads: Payload[] = []
  /** Keys of chunks of which a bit has flipped: none is struck twice. */
  const struck = new Set<string>()
  const counts = { keys: 0, values: 0, reports: 0 }
  return {
    act,
    payloads,
    reported: (count) => void (counts.reports += count),
    get reports() {
      return counts.reports
    },
    get keys() {
      return counts.keys
    },
    get values() {
      return counts.values
    },
  }

  function act(): void {
    const path = `${spoolPath}/store`
    const database = disk.exists(path) ? disk.attachment(path) : null
    if (!(database instanceof Database)) return
    const submitted = new Set(
      services.flatMap(({ journal }) => journal.flatMap(({ payloadIds }) => [...payloadIds])),
    )
    const chunks = database
      .entries(chunksOf.from, chunksOf.to, { reverse: false, limit: -1 })
      .map(([key, value]) => ({ key, value, held: payloadsIn(value) }))
      .filter(
        ({ key, held }) =>
          held.length > 0 &&
          !struck.has(key.toString('latin1')) &&
          !held.some(({ payloadId }) => submitted.has(payloadId)),
      )
    if (chunks.length === 0) return
    const { key, value, held } = random.pick(chunks)
    const isOfKey = random.chance(keyShare)
    if (isOfKey) {
      // The table, the lane and the number: mostly bits near the end, where other chunks are.
      const flipped = flippedBit(
        key,
        random.chance(0.5) ? random.below(key.length * 8) : key.length * 8 - 1 - random.below(6),
      )
      if (flipped[0] !== key[0] || !database.move(key, flipped)) return
      struck.add(flipped.toString('latin1'))
      counts.keys += 1
    } else {
      const behind = headBytes + 5
      const from = random.chance(0.7) ? behind : 0
      database.change(key, flippedBit(value, from * 8 + random.below((value.length - from) * 8)))
      struck.add(key.toString('latin1'))
      counts.values += 1
    }
    payloads.push(...held)
  }
}

function flippedBit(bytes: Buffer, bit: number): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[bit >> 3]! ^= 0x80 >> (bit & 7)
  return flipped
}

/** Frames of five bytes and a JSON text. A chunk of which a bit has flipped already has none. */
function payloadsIn(value: Buffer): Payload[] {
  const found: Payload[] = []
  for (let at = headBytes; at + 5 <= value.length;) {
    const end = at + 5 + value.readUInt32BE(at + 1)
    if (end > value.length) return []
    try {
      found.push(JSON.parse(value.toString('utf8', at + 5, end)) as Payload)
    } catch {
      return []
    }
    at = end
  }
  return found
}
