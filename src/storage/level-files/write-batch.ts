// write-batch.ts: the write batches in a log of LevelDB: what one write of the store changed, and all of them
// in their order.
//
//   batch      sequence (8 bytes, little-endian), number of operations (4), operations
//   operation  type 1: key and value as strings; type 0 (a deletion): key as a string
//
// The first operation has the sequence of the batch, each further one the next. So the next batch of the log
// starts at sequence + operations, and a gap tells how many operations are missing.

import type { FileHandle } from 'node:fs/promises'
import { readLog, type LogItem } from './log-reader.ts'
import { createByteReader, encodeString } from './varint.ts'

/** `value` is null for a deletion. */
export type BatchOperation = { key: Buffer; value: Buffer | null }

export type WriteBatch = { sequence: number; operations: BatchOperation[] }

const headBytes = 12
const deletionType = 0
const valueType = 1

/** Keys and values are views of `bytes`. Null where the bytes are not exactly one batch. */
export function decodeWriteBatch(bytes: Buffer): WriteBatch | null {
  if (bytes.length < headBytes) return null
  const sequence = Number(bytes.readBigUInt64LE(0))
  const count = bytes.readUInt32LE(8)
  // LevelDB's sequences have 56 bits; beyond 2 ** 53 a number is not exact, and no store gets there.
  if (sequence + count > Number.MAX_SAFE_INTEGER) return null
  const reader = createByteReader(bytes, headBytes)
  const operations: BatchOperation[] = []
  while (!reader.atEnd()) {
    const type = reader.byte()
    const key = reader.string()
    if (key === null || (type !== deletionType && type !== valueType)) return null
    const value = type === valueType ? reader.string() : null
    if (type === valueType && value === null) return null
    operations.push({ key, value })
    if (operations.length > count) return null
  }
  return operations.length === count ? { sequence, operations } : null
}

export function encodeWriteBatch({ sequence, operations }: WriteBatch): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeBigUInt64LE(BigInt(sequence), 0)
  head.writeUInt32LE(operations.length, 8)
  const parts: Buffer[] = [head]
  for (const { key, value } of operations) {
    parts.push(Buffer.of(value === null ? deletionType : valueType), encodeString(key))
    if (value !== null) parts.push(encodeString(value))
  }
  return Buffer.concat(parts)
}

/** A write batch of a log with its place in the file, or a part of the file without one. */
export type LogBatch =
  | { kind: 'batch'; offset: number; bytes: number; batch: WriteBatch; content: Buffer }
  /** `lostOperations`: how many operations are missing; null where no batch is known before the damage. */
  | { kind: 'damage'; offset: number; bytes: number; what: string; lostOperations: number | null }
  | Extract<LogItem, { kind: 'torn' }>

/**
 * Type and length of a key are the least that an operation needs. So damage of n bytes cannot have cost more
 * than n / 2 operations.
 */
const operationBytesMin = 2

/**
 * The batches of a log. `nextSequence` is the sequence that its first batch should have, null if unknown.
 * Behind damage, a batch counts only if its sequence fits the size of the damage: a stored message may hold
 * bytes that look like a log.
 */
export async function* readLogBatches(
  file: FileHandle,
  { nextSequence = null }: { nextSequence?: number | null } = {},
): AsyncGenerator<LogBatch> {
  let expected = nextSequence
  const last: { batch: WriteBatch | null } = { batch: null }
  const isEntry = (content: Buffer, badBytes: number): boolean => {
    const batch = decodeWriteBatch(content)
    last.batch = batch
    if (batch === null || badBytes === 0 || expected === null) return batch !== null
    const missing = batch.sequence - expected
    return missing >= 0 && missing <= badBytes / operationBytesMin
  }
  /** Damage waits for the batch behind it, whose sequence tells how much is missing. */
  let damage: Extract<LogItem, { kind: 'damage' }> | null = null
  for await (const item of readLog(file, { isEntry })) {
    if (item.kind === 'damage') damage = item
    if (item.kind === 'torn') yield item
    const { batch } = last
    if (item.kind !== 'entry' || batch === null) continue
    if (damage !== null) {
      yield { ...damage, lostOperations: expected === null ? null : batch.sequence - expected }
      damage = null
    }
    expected = batch.sequence + batch.operations.length
    yield { ...item, kind: 'batch', batch }
  }
}

/** The batch of which readLogBatches() gave the place. Null where the file has changed. */
export async function readBatchAt(file: FileHandle, offset: number): Promise<WriteBatch | null> {
  for await (const item of readLog(file, { from: offset }))
    return item.kind === 'entry' && item.offset === offset ? decodeWriteBatch(item.content) : null
  return null
}
