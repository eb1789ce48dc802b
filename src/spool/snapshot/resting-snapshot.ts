// resting-snapshot.ts: a snapshot of a spool that no process uses.

import { dirname } from 'node:path'
import type { EpochMs } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { LevelFiles } from '../../storage/storage.ts'
import { formatKey, laneKey, table, tableRange, writeCountLane } from '../chunk-log/key-layout.ts'
import { decodeWriteCount, formatRecord } from '../chunk-log/record-codec.ts'
import { readMarkIn } from '../high-water-mark/mark-file.ts'
import type { SnapshotReport } from '../views.ts'
import { openRestingFiles } from '../salvage/resting-files.ts'
import { prepareTarget, writeSnapshot, type MarkNow } from './snapshot.ts'

/** Rejects as openRestingFiles does, with OUTPUT_UNWRITABLE, or with SPOOL_DAMAGED. */
export async function snapshotResting(
  path: string,
  to: string,
  { now, signal }: { now: EpochMs; signal: AbortSignal },
): Promise<SnapshotReport> {
  const files = await openRestingFiles(path)
  try {
    await prepareTarget(to)
    const mark = await markOf(files)
    let batches = 0
    for await (const page of files.pages(tableRange(table.batches))) batches += page.length
    const payloads = mark.lanes.reduce((sum, { open }) => sum + open, 0)
    return await writeSnapshot(files.path, to, { content: { mark, payloads, batches }, now, signal })
  } finally {
    await files.close()
  }
}

/** The mark beside the database; without a usable one, what the database says. */
async function markOf(files: LevelFiles): Promise<MarkNow> {
  const record = formatRecord.decode(await files.get(formatKey))
  if (record === null)
    throw new GatewayError('SPOOL_DAMAGED', {
      what: `The database at ${files.path} has no readable format record.`,
      why: 'Its files are damaged.',
      act: 'Run `telemetry-gateway spool repair` first.',
    })
  const { instance } = record
  const manifest = files.manifest?.name ?? ''
  const found = await readMarkIn(dirname(files.path))
  if (found.kind === 'mark' && found.mark.instance === instance) return { ...found.mark, manifest }
  const writes = decodeWriteCount(await files.get(laneKey(table.totals, writeCountLane))) ?? 0
  return { instance, manifest, writes, nextLane: 1, lanes: [] }
}
