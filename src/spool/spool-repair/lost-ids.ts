// lost-ids.ts: the ends of the payloadIds of lost payloads, as far as the dedup window has them. A commit
// writes the last 8 bytes of the ids that it stores under another key than their chunk, with the same time.
//
// Known ids are those between the commits before and behind the lost ranges, without those that are still
// there. Where other payloads of that time were settled there are too many, and none is named.

import { payloadIdIn } from '../../domain/payload.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { LevelFiles } from '../../storage/storage.ts'
import { eachFrame, readChunk } from '../chunk-log/chunk-codec.ts'
import { table, tableRange } from '../chunk-log/key-layout.ts'
import { decodeWindowKeys, storedKeyBytes } from '../chunk-log/record-codec.ts'
import type { LostRange } from './lost-payloads.ts'

/** Keys in memory. The dedup window has a million by default; damage hits the commits of a few seconds. */
const candidatesMax = 200_000
const idsMax = 1000

/** The last 16 digits of each. Empty where it is not known which ids are lost. */
export async function findLostIds(
  files: LevelFiles,
  ranges: readonly LostRange[],
  signal: AbortSignal,
): Promise<string[]> {
  const candidates = await candidatesIn(files, ranges)
  if (candidates.size > 0) await removePresent(files, candidates, signal)
  const payloads = ranges.reduce((sum, range) => sum + range.payloads, 0)
  return candidates.size > payloads ? [] : [...candidates.keys()].slice(0, idsMax).map(textOfEnd)
}

const isWithin = ({ after, before }: LostRange, at: EpochMs) =>
  (after !== null || before !== null) && at >= (after ?? -Infinity) && at <= (before ?? Infinity)

/** By the last 16 digits of the id: the time of its commit. */
async function candidatesIn(files: LevelFiles, ranges: readonly LostRange[]): Promise<Map<string, EpochMs>> {
  const candidates = new Map<string, EpochMs>()
  for await (const page of files.pages(tableRange(table.windowKeys)))
    for (const [, value] of page) {
      const record = decodeWindowKeys(value)
      if (record === null || !ranges.some((range) => isWithin(range, record.at))) continue
      const { keys, at } = record
      for (let end = storedKeyBytes; end <= keys.length; end += storedKeyBytes)
        if (isPayloadId(keys[end - storedKeyBytes] ?? 0))
          candidates.set(keys.toString('hex', end - storedKeyBytes, end), at)
      if (candidates.size > candidatesMax) return new Map()
    }
  return candidates
}

/** By the variant of the UUID: the keys of kept messages are no ids. */
const isPayloadId = (byte: number) => byte >> 6 === 2

async function removePresent(
  files: LevelFiles,
  candidates: Map<string, EpochMs>,
  signal: AbortSignal,
): Promise<void> {
  const times = new Set(candidates.values())
  for await (const page of files.pages(tableRange(table.chunks))) {
    signal.throwIfAborted()
    for (const [key, value] of page) {
      const chunk = readChunk(key, value)
      if (chunk?.kind !== 'chunk' || !times.has(chunk.committedAt)) continue
      eachFrame(chunk, (_attempts, start) => candidates.delete(endOf(payloadIdIn(chunk.value, start))))
    }
  }
}

const endDigits = 2 * storedKeyBytes

const endOf = (payloadId: string) => payloadId.replaceAll('-', '').slice(-endDigits)

/** With the dash of the id, so that it can be searched for. */
const textOfEnd = (end: string) => `${end.slice(0, 4)}-${end.slice(4)}`
