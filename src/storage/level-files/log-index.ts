// log-index.ts: the entries of all live logs in the order of their keys. Keys are in memory, values are read
// again from the file; a log is as large as the write buffer, so there are few of them.

import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { compareInternal, internalKeyOf } from './table-reader/block.ts'
import type { FileDamage, LogFile } from './types.ts'
import { readBatchAt, readLogBatches, type WriteBatch } from './write-batch.ts'

/** One operation of a write. `key` is an internal key. */
export type LogEntry = { key: Buffer; log: OpenLog; offset: number; index: number }

type OpenLog = { file: FileHandle; name: string }

export type LogIndex = {
  /** By internal key. */
  readonly entries: readonly LogEntry[]
  readonly damage: readonly FileDamage[]
  /** 0 where no log holds a write. */
  readonly lastSequence: number
  /** The value of an entry that is no deletion. Null where the file has changed. */
  value(entry: LogEntry): Promise<Buffer | null>
  close(): Promise<void>
}

/** Batches in memory. Entries next to each other in key order often are of the same few writes. */
const cachedBytesMax = 4 * 1024 * 1024

/** `logs` ascend by number. Rejects with the code of the file system. */
export async function indexLogs(path: string, logs: readonly LogFile[]): Promise<LogIndex> {
  const open: OpenLog[] = []
  const close = async () => {
    for (const { file } of open) await file.close()
  }
  try {
    const index = newIndex()
    for (const log of logs) await addLog(path, log, index, open)
    index.entries.sort((one, other) => compareInternal(one.key, other.key))
    return { ...index, value: cachedValues(), close }
  } catch (error) {
    await close()
    throw error
  }
}

type Index = { entries: LogEntry[]; damage: FileDamage[]; lastSequence: number; end: LogEnd | null }

/** Bytes at the end of the log before that are no write. */
type LogEnd = { file: string; offset: number; bytes: number }

function newIndex(): Index {
  return { entries: [], damage: [], lastSequence: 0, end: null }
}

async function addLog(path: string, { name, bytes }: LogFile, index: Index, open: OpenLog[]): Promise<void> {
  const log = await openLog(path, name)
  if (log === null) {
    index.damage.push(damageOf(name, 0, bytes, 'the file is missing'))
    return
  }
  open.push(log)
  const before = index.end
  const nextSequence = index.lastSequence === 0 ? null : index.lastSequence + 1
  let isFirst = true
  index.end = { file: name, offset: bytes, bytes: 0 }
  for await (const item of readLogBatches(log.file, { nextSequence })) {
    if (item.kind === 'torn') index.end = { file: name, offset: item.offset, bytes: item.bytes }
    if (item.kind === 'damage') {
      isFirst = false
      index.damage.push(damageOf(name, item.offset, item.bytes, lostIn(item)))
    }
    if (item.kind !== 'batch') continue
    const { sequence, operations } = item.batch
    // A torn end is an interrupted write only if no write followed it.
    if (isFirst && before !== null && nextSequence !== null && sequence > nextSequence)
      index.damage.push(
        damageOf(before.file, before.offset, before.bytes, missing('its end', sequence - nextSequence)),
      )
    isFirst = false
    for (const [at, { key, value }] of operations.entries())
      index.entries.push({
        key: internalKeyOf(key, sequence + at, value === null ? 0 : 1),
        log,
        offset: item.offset,
        index: at,
      })
    index.lastSequence = Math.max(index.lastSequence, sequence + operations.length - 1)
  }
}

async function openLog(path: string, name: string): Promise<OpenLog | null> {
  try {
    return { name, file: await open(join(path, name), 'r') }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

function lostIn({ what, lostOperations }: { what: string; lostOperations: number | null }): string {
  return lostOperations === null ? what : `${what}; ${missing('here', lostOperations)}`
}

function missing(where: string, operations: number): string {
  return `${operations} operations are missing ${where === 'here' ? where : `at ${where}`}`
}

/** A write can change any key. */
function damageOf(file: string, offset: number, bytes: number, what: string): FileDamage {
  return { file, unit: 'log record', offset, bytes, what, keys: { after: null, until: null } }
}

function cachedValues(): LogIndex['value'] {
  const batches = new Map<string, { batch: WriteBatch; bytes: number }>()
  let bytes = 0
  return async ({ log, offset, index }) => {
    const name = `${log.name} ${offset}`
    let cached = batches.get(name)
    if (cached === undefined) {
      const batch = await readBatchAt(log.file, offset)
      if (batch === null) return null
      cached = { batch, bytes: bytesOf(batch) }
      bytes += cached.bytes
    } else batches.delete(name)
    batches.set(name, cached)
    for (const [oldest, { bytes: freed }] of batches) {
      if (bytes <= cachedBytesMax || batches.size === 1) break
      batches.delete(oldest)
      bytes -= freed
    }
    return cached.batch.operations[index]?.value ?? null
  }
}

function bytesOf({ operations }: WriteBatch): number {
  return operations.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0)
}
