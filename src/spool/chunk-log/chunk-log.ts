// chunk-log.ts: reads a run of chunks of one lane and checks every one of them: its CRC, and by the numbers that
// none is missing (LevelDB drops damaged log records silently). What is wrong comes back as a finding with
// its range; nothing is deleted here.

import { codeOf } from '../../std/gateway-error.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { Store } from '../../storage/storage.ts'
import { readChunk, type Chunk } from './chunk-codec.ts'
import { seqKey, seqOf, seqRange, table } from './key-layout.ts'
import type { ChunkRef } from './lane.ts'

export type Finding =
  | { kind: 'chunk'; ref: ChunkRef; chunk: Chunk }
  /** `raw` is the record as it stands on the disk, null where there is none or it cannot be read. */
  | { kind: 'damaged'; firstSeq: number; endSeq: number; raw: Buffer | null; what: string }

const wrongChecksum = 'its checksum is wrong'

/**
 * Findings of `lane` from `fromSeq` on, in order and without a gap, until `untilSeq` is reached or about
 * `bytesMax` were read.
 */
export async function readRun(
  store: Store,
  lane: LaneId,
  range: { fromSeq: number; untilSeq: number; bytesMax: number },
): Promise<Finding[]> {
  const findings: Finding[] = []
  let nextSeq = range.fromSeq
  let bytes = 0
  while (nextSeq < range.untilSeq) {
    try {
      if (await readUntilDamage()) return findings
    } catch (error) {
      if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
      if (await readSingly()) return findings
      const firstFrom = (seq: number) => firstSeqFrom(store, lane, seq, range.untilSeq)
      const endSeq = await findReadable(firstFrom, nextSeq, range.untilSeq)
      const raw = (await readableAt(store, seqKey(table.chunks, lane, nextSeq))) ?? null
      noteDamage(endSeq, raw, raw === null ? 'a block of a table is damaged' : wrongChecksum)
    }
  }
  return findings

  /** Returns true when enough was read, false when the range has ended; throws at a damaged block. */
  async function readUntilDamage(): Promise<boolean> {
    let bad: Buffer | null = null
    const pages = store.pages(seqRange(table.chunks, lane, nextSeq, range.untilSeq))
    for await (const page of pages) {
      for (const [key, value] of page) {
        const firstSeq = seqOf(key)
        if (firstSeq > nextSeq) noteDamage(firstSeq, bad)
        bad = null
        const chunk = readChunk(value)
        if (chunk === null) {
          // How many payloads it held shows in the number of the chunk behind it.
          bad = value
          continue
        }
        if (noteChunk(firstSeq, chunk)) return true
      }
    }
    if (nextSeq < range.untilSeq) noteDamage(range.untilSeq, bad)
    return false
  }

  /** The page that met the damage is lost as a whole, so what stands before it is read chunk by chunk. Returns as above. */
  async function readSingly(): Promise<boolean> {
    while (nextSeq < range.untilSeq) {
      const value = await readableAt(store, seqKey(table.chunks, lane, nextSeq))
      const chunk = value === undefined ? null : readChunk(value)
      if (chunk === null) return false
      if (noteChunk(nextSeq, chunk)) return true
    }
    return true
  }

  function noteChunk(firstSeq: number, chunk: Chunk): boolean {
    const { count, bytes: payloadBytes, startBytes, committedAt } = chunk
    findings.push({
      kind: 'chunk',
      ref: { firstSeq, count, bytes: payloadBytes, startBytes, committedAt },
      chunk,
    })
    nextSeq = firstSeq + count
    bytes += chunk.value.length
    return bytes >= range.bytesMax
  }

  function noteDamage(
    endSeq: number,
    raw: Buffer | null,
    what = raw === null ? 'it is missing' : wrongChecksum,
  ): void {
    findings.push({ kind: 'damaged', firstSeq: nextSeq, endSeq, raw, what })
    nextSeq = endSeq
  }
}

/** The record under `key`; undefined where there is none, or its block is damaged. */
export async function readableAt(store: Store, key: Buffer): Promise<Buffer | undefined> {
  try {
    return await store.get(key)
  } catch (error) {
    if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
    return undefined
  }
}

/**
 * The number of the first record behind `fromSeq` that can be read, or `untilSeq`. `firstFrom` gives the first number
 * from the given one on, and throws where it meets damage.
 */
export async function findReadable(
  firstFrom: (seq: number) => Promise<number | null>,
  fromSeq: number,
  untilSeq: number,
): Promise<number> {
  let badSeq = fromSeq
  let stride = 1
  // Doubling strides first, then halving back: a damaged block holds records with numbers next to each other.
  let goodSeq = untilSeq
  for (;;) {
    const probe = Math.min(fromSeq + stride, untilSeq)
    if (probe >= untilSeq) break
    if (await isReadable(firstFrom, probe)) {
      goodSeq = probe
      break
    }
    badSeq = probe
    stride *= 2
  }
  while (goodSeq - badSeq > 1) {
    const middle = Math.floor((badSeq + goodSeq) / 2)
    if (await isReadable(firstFrom, middle)) goodSeq = middle
    else badSeq = middle
  }
  return (await firstFrom(goodSeq)) ?? untilSeq
}

async function isReadable(firstFrom: (seq: number) => Promise<number | null>, seq: number): Promise<boolean> {
  try {
    await firstFrom(seq)
    return true
  } catch (error) {
    if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
    return false
  }
}

async function firstSeqFrom(
  store: Store,
  lane: LaneId,
  fromSeq: number,
  untilSeq: number,
): Promise<number | null> {
  const range = { gte: seqKey(table.chunks, lane, fromSeq), lt: seqKey(table.chunks, lane, untilSeq) }
  for await (const page of store.pages(range, { limit: 1 })) {
    const first = page[0]
    if (first !== undefined) return seqOf(first[0])
  }
  return null
}
