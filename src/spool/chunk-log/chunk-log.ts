// chunk-log.ts: the chunks of the lanes, and everything that gives them their order. Entry file of this
// folder.
//
// A chunk is what one commit added to one lane: a run of payloads under the number of its first one
// (key-layout.ts has the keys, chunk-codec.ts and record-codec.ts the bytes). Sealing and settling never move
// a chunk. They write claims on runs of chunks, and delete chunks.
//
//   message -> group.ts (chunks under construction) --+
//   seal, settle, rotation, upkeep -------------------+-> committer.ts -> one atomic write with fsync -> acks
//
//   lane.ts            the numbers of a lane, its claims, and the chunks just behind its head
//   lane-rotation.ts   a live lane becomes a backfill lane; lane-cleanup.ts deletes drained backfill lanes
//   recent-chunks/     chunks of the last seconds in memory, so that sealing live payloads reads no disk
//   dedup-window.ts    the keys of what was taken in during the last minutes
//   receipt-queue.ts   receipts of settles, until the ledger has copied them
//   compactor.ts       frees the disk space of what was deleted
//
// LevelDB drops damaged records of its log silently, and a block of a table can become unreadable. So every
// chunk has a CRC, which covers its key, and the numbers show whether one is missing. readRun below returns
// damage as a finding with its range, and deletes nothing; damage-scan.ts steps over the blocks that cannot
// be read.

import type { LaneId } from '../../domain/ids.ts'
import { defaultPageBytes, type Store } from '../../storage/storage.ts'
import { readChunk, type Chunk } from './chunk-codec.ts'
import { readOne, scan } from './damage-scan.ts'
import { isSeqKey, seqKey, seqOf, seqRange, table } from './key-layout.ts'
import { refOf, type ChunkRef } from './lane.ts'

export type Finding =
  | { kind: 'chunk'; ref: ChunkRef; chunk: Chunk }
  /** Missing payloads that are counted already. */
  | { kind: 'gap'; firstSeq: number; endSeq: number }
  /** `raw` is the record as it is on the disk, null if there is none or it cannot be read. */
  | { kind: 'damaged'; firstSeq: number; endSeq: number; raw: Buffer | null; what: string }

/** Findings from `fromSeq` on, in order, without a gap, until `untilSeq` or about `bytesMax` were read. */
export async function readRun(
  store: Store,
  lane: LaneId,
  range: { fromSeq: number; untilSeq: number; bytesMax: number },
): Promise<Finding[]> {
  const findings: Finding[] = []
  let nextSeq = range.fromSeq
  let bytes = 0
  let bad: Buffer | null = null
  let isBlockDamaged = false
  const keys = seqRange(table.chunks, lane, nextSeq, range.untilSeq)
  const pageBytes = Math.min(range.bytesMax, defaultPageBytes)
  for await (const page of scan(store, keys, { pageBytes })) {
    if (page.kind === 'gap') {
      isBlockDamaged = true
      continue
    }
    for (const [key, value] of page.entries) {
      if (!isSeqKey(key)) continue
      const firstSeq = seqOf(key)
      // Behind a gap: it could not be read when the gap was counted.
      if (firstSeq < nextSeq) continue
      if (firstSeq > nextSeq) addDamage(firstSeq)
      const chunk = readChunk(key, value)
      if (chunk?.kind === 'gap') {
        nextSeq = firstSeq + chunk.count
        findings.push({ kind: 'gap', firstSeq, endSeq: nextSeq })
        continue
      }
      if (chunk === null) {
        // The number of the next chunk shows how many payloads it held.
        bad = value
        continue
      }
      findings.push({ kind: 'chunk', ref: refOf(firstSeq, chunk), chunk })
      nextSeq = firstSeq + chunk.count
      bytes += chunk.value.length
      if (bytes >= range.bytesMax) return findings
    }
  }
  if (nextSeq < range.untilSeq) addDamage(range.untilSeq)
  return findings

  function addDamage(endSeq: number): void {
    const missing = isBlockDamaged ? 'a block of a table is damaged' : 'it is missing'
    const what = bad === null ? missing : 'its checksum is wrong'
    findings.push({ kind: 'damaged', firstSeq: nextSeq, endSeq, raw: bad, what })
    nextSeq = endSeq
    bad = null
    isBlockDamaged = false
  }
}

/** Payload bytes of the lane before the chunk at `seq`; null if there is none that can be read. */
export async function startBytesAt(store: Store, lane: LaneId, seq: number): Promise<number | null> {
  const key = seqKey(table.chunks, lane, seq)
  const { value } = await readOne(store, key)
  return value === undefined ? null : (readChunk(key, value)?.startBytes ?? null)
}
