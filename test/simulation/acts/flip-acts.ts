// flip-acts.ts: bits that flip at rest, in keys and values: of chunks, of batches (claims on chunks), of dead letters, and
// of what is known of devices; in values also of the totals of lanes, which are made anew. All of them in one seed. What was
// struck is noted, for the oracle: a payload of a chunk is lost and counted; those of a batch are sent again under another
// batchId; a dead letter is set aside.
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
  /** Payloads in batches of which a bit has flipped. Nobody has their batchId any more after a restart. */
  readonly batched: ReadonlySet<string>
  readonly batches: number
  /** Payloads of dead letters of which a bit has flipped; null: a message. */
  readonly deadLetters: readonly (string | null)[]
  /** Anything was struck. */
  readonly isAny: boolean
}

const tables = { chunks: 0x10, batches: 0x11, totals: 0x12, deadLetters: 0x20 } as const

/** Of the second database: devices, clients, and the fields of sources. */
const recordTables = [0x20, 0x21, 0x22] as const
/** Of a chunk: the bytes before its payloads (src/spool/chunk-log/chunk-codec.ts says what they are to the daemon). */
const headBytes = 29
const keyShare = 0.5
const payloadShare = 0.6
/** Among the flips of chunks. */
const totalsShare = 0.2

export function createFlips({ disk }: Machine, services: readonly Service[], random: Random): Flips {
  const payloads: Payload[] = []
  /** Keys of chunks of which a bit has flipped: none is struck twice. */
  const struck = new Set<string>()
  const counts = { keys: 0, values: 0, batches: 0, totals: 0, records: 0, reports: 0 }
  const batched = new Set<string>()
  const deadLetters: (string | null)[] = []
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
    batched,
    get batches() {
      return counts.batches
    },
    deadLetters,
    get isAny() {
      return (
        counts.keys + counts.values + counts.batches + counts.totals + counts.records + deadLetters.length > 0
      )
    },
  }

  function act(): void {
    if (random.chance(payloadShare)) random.pick([strikeChunkOrTotals, strikeBatch])()
    else random.pick([strikeDeadLetter, strikeRecord])()
  }

  function databaseOf(name: string): Database | null {
    const path = `${spoolPath}/${name}`
    const database = disk.exists(path) ? disk.attachment(path) : null
    return database instanceof Database ? database : null
  }

  function strikeBatch(): void {
    const database = databaseOf('store')
    const entries = database === null ? [] : entriesOf(database, tables.batches)
    if (database === null || entries.length === 0) return
    const [key, value] = random.pick(entries)
    if (struck.has(key.toString('latin1'))) return
    // All behind it in its lane: where it ends is in the record.
    const lane = key.subarray(1, 5)
    for (const [chunk, content] of entriesOf(database, tables.chunks))
      if (chunk.subarray(1, 5).equals(lane) && chunk.subarray(5).compare(key.subarray(5)) >= 0)
        for (const { payloadId } of payloadsIn(content)) batched.add(payloadId)
    strike(database, { key, value, isOfKey: random.chance(keyShare) })
    counts.batches += 1
  }

  function strikeChunkOrTotals(): void {
    if (random.chance(totalsShare)) strikeTotals()
    else strikeChunk()
  }

  function strikeTotals(): void {
    const database = databaseOf('store')
    const entries = database === null ? [] : entriesOf(database, tables.totals)
    // Those of dead letters and others have numbers that no lane has.
    const totals = entries.filter(([key]) => key[1] === 0 && key.readUInt32BE(1) > 0)
    if (database === null || totals.length === 0) return
    const [key, value] = random.pick(totals)
    database.change(key, flippedBit(value, random.below(value.length * 8)))
    counts.totals += 1
  }

  function strikeDeadLetter(): void {
    const database = databaseOf('store')
    const entries = database === null ? [] : entriesOf(database, tables.deadLetters)
    if (database === null || entries.length === 0) return
    const [key, value] = random.pick(entries)
    if (struck.has(key.toString('latin1'))) return
    const [, payloadId = null] = /"payloadId":"([-0-9a-f]{36})"/.exec(value.toString('latin1')) ?? []
    strike(database, { key, value, isOfKey: false })
    deadLetters.push(payloadId)
  }

  function strikeRecord(): void {
    const database = databaseOf('records')
    const entries =
      database === null ? [] : recordTables.flatMap((recordTable) => entriesOf(database, recordTable))
    if (database === null || entries.length === 0) return
    const [key, value] = random.pick(entries)
    // Of the first letter of a name in it: what is stored can still be read.
    const letters = [...value.toString('latin1').matchAll(/"[b-y]/g)].map(({ index }) => index + 1)
    if (letters.length > 0 && random.chance(0.7))
      database.change(key, flippedBit(value, random.pick(letters) * 8 + 7))
    else strike(database, { key, value, isOfKey: random.chance(keyShare) })
    counts.records += 1
  }

  /** The table stays. */
  function strike(
    database: Database,
    { key, value, isOfKey }: { key: Buffer; value: Buffer; isOfKey: boolean },
  ): void {
    const bits = (bytes: Buffer) => 8 + random.below((bytes.length - 1) * 8)
    const struckKey = isOfKey ? flippedBit(key, bits(key)) : key
    if (isOfKey && !database.move(key, struckKey)) return
    if (!isOfKey) database.change(key, flippedBit(value, bits(value)))
    struck.add(struckKey.toString('latin1'))
  }

  function strikeChunk(): void {
    const database = databaseOf('store')
    if (database === null) return
    const submitted = new Set(
      services.flatMap(({ journal }) => journal.flatMap(({ payloadIds }) => [...payloadIds])),
    )
    const chunks = entriesOf(database, tables.chunks)
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

function entriesOf(database: Database, from: number): [Buffer, Buffer][] {
  return database.entries(String.fromCharCode(from), String.fromCharCode(from + 1), {
    reverse: false,
    limit: -1,
  })
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
