// log-reader.ts: reads a log of LevelDB, whatever its bytes are. Its manifests have the same format.
//
//   file      blocks of 32 KiB; a rest of fewer than 7 bytes at the end of a block is unused
//   record    CRC-32C of type and content, masked (4 bytes), length (2), type (1), content; inside one block
//   entry     one FULL record, or FIRST, MIDDLE ..., LAST
//
// A record that is not valid costs the entry that it belongs to, no more: the rest of its block is searched
// byte by byte for the next valid record, and reading goes on there. LevelDB gives up the rest of the block.
// Damage is everything between two valid entries that is not unused space. Bad bytes behind the last valid
// entry are a torn tail: a write that a kill or a power cut interrupted, which was never acknowledged.
//
// Memory: one block, and the parts of one entry.

import type { FileHandle } from 'node:fs/promises'
import { readWhatIsReadable } from '../readable-bytes.ts'
import { maskedCrc } from './crc32c.ts'

export const logBlockBytes = 32 * 1024
export const recordHeadBytes = 7
export const recordType = { full: 1, first: 2, middle: 3, last: 4 } as const

/** `offset` and `bytes` are places in the file. */
export type LogItem =
  | { kind: 'entry'; offset: number; bytes: number; content: Buffer }
  | { kind: 'damage'; offset: number; bytes: number; what: string }
  /** `isCut`: it is only incomplete or empty. False: it has bytes that are wrong. */
  | { kind: 'torn'; offset: number; bytes: number; isCut: boolean }

export type LogReadOptions = {
  /**
   * False for content that has valid checksums and is still no entry. It is damage, too. `badBytes`: the
   * bytes of the damage before it; 0 where there is none.
   */
  isEntry?: (content: Buffer, badBytes: number) => boolean
  /** The offset of an entry to start at. Default 0. */
  from?: number
}

type Part = { offset: number; content: Buffer }

export async function* readLog(file: FileHandle, options: LogReadOptions = {}): AsyncGenerator<LogItem> {
  const { from = 0, isEntry = () => true } = options
  const assembly = createAssembly(from, isEntry)
  let position = from
  for (;;) {
    // A new buffer for each block: the content of entries is a view of it.
    const block = Buffer.allocUnsafe(logBlockBytes - (position % logBlockBytes))
    const bytes = await readWhatIsReadable(file, block, position)
    yield* assembly.addBlock(block.subarray(0, bytes), position)
    position += bytes
    if (bytes < block.length) break
  }
  yield* assembly.finish(position)
}

/** The items of a whole log in memory. */
export function* logItems(bytes: Buffer, options: LogReadOptions = {}): Generator<LogItem> {
  const { from = 0, isEntry = () => true } = options
  const assembly = createAssembly(from, isEntry)
  let position = from
  while (position < bytes.length) {
    const end = Math.min(bytes.length, position - (position % logBlockBytes) + logBlockBytes)
    yield* assembly.addBlock(bytes.subarray(position, end), position)
    position = end
  }
  yield* assembly.finish(bytes.length)
}

/** Puts records together to entries, and knows what lies between the valid ones. */
function createAssembly(from: number, isEntry: NonNullable<LogReadOptions['isEntry']>) {
  /** Records of the entry that is being read. Never crosses bad bytes. */
  let parts: Part[] = []
  /** End of the last valid entry. */
  let validEnd = from
  /** The first thing that was wrong behind it. */
  let problem: string | null = null
  /** The problem is that the file ends inside a record, or an empty head. */
  let isCut = false
  return { addBlock, finish }

  function* addBlock(block: Buffer, blockOffset: number): Generator<LogItem> {
    let at = 0
    while (at + recordHeadBytes <= block.length) {
      const why = recordProblem(block, at)
      if (why === null) {
        const end = at + recordHeadBytes + block.readUInt16LE(at + 4)
        const content = block.subarray(at + recordHeadBytes, end)
        yield* addRecord(block[at + 6] ?? 0, { offset: blockOffset + at, content })
        at = end
        continue
      }
      isCut = (problem === null || isCut) && endsInside(block, at, blockOffset)
      markBad(why)
      at = nextRecord(block, at + 1)
    }
  }

  function* addRecord(type: number, part: Part): Generator<LogItem> {
    const starts = type === recordType.full || type === recordType.first
    if (starts && parts.length > 0) markBad('an entry has no end')
    if (!starts && parts.length === 0) {
      markBad('an entry has no start')
      return
    }
    parts.push(part)
    if (type === recordType.full || type === recordType.last) yield* endEntry()
  }

  function* endEntry(): Generator<LogItem> {
    const first = parts[0]
    const last = parts[parts.length - 1]
    if (first === undefined || last === undefined) return
    const content = parts.length === 1 ? first.content : Buffer.concat(parts.map((part) => part.content))
    const { offset } = first
    if (!isEntry(content, problem === null ? 0 : offset - validEnd)) {
      markBad('an entry with a valid checksum is malformed')
      return
    }
    if (problem !== null) yield { kind: 'damage', offset: validEnd, bytes: offset - validEnd, what: problem }
    problem = null
    parts = []
    validEnd = last.offset + recordHeadBytes + last.content.length
    yield { kind: 'entry', offset, bytes: validEnd - offset, content }
  }

  function markBad(why: string): void {
    problem ??= why
    parts = []
  }

  function* finish(fileBytes: number): Generator<LogItem> {
    // A rest of a block that holds no record head is not torn.
    const isUnused = problem === null && parts.length === 0 && fileBytes - validEnd < recordHeadBytes
    if (!isUnused && fileBytes > validEnd)
      yield { kind: 'torn', offset: validEnd, bytes: fileBytes - validEnd, isCut: problem === null || isCut }
  }
}

/** The record at `at` goes on behind the end of the file, or its head is empty. LevelDB ignores both. */
function endsInside(block: Buffer, at: number, blockOffset: number): boolean {
  const length = block.readUInt16LE(at + 4)
  if (length === 0 && block[at + 6] === 0) return true
  return (blockOffset + block.length) % logBlockBytes !== 0 && at + recordHeadBytes + length > block.length
}

/** What is wrong with the record at `at`, or null. */
function recordProblem(block: Buffer, at: number): string | null {
  const type = block[at + 6] ?? 0
  const end = at + recordHeadBytes + block.readUInt16LE(at + 4)
  if (type < recordType.full || type > recordType.last) return 'a record has an unknown type'
  if (end > block.length) return 'a record is longer than the rest of its block'
  if (maskedCrc(block, at + 6, end) !== block.readUInt32LE(at)) return 'the checksum of a record is wrong'
  return null
}

/** Where the next valid record starts; the end of the block where there is none. */
function nextRecord(block: Buffer, from: number): number {
  for (let at = from; at + recordHeadBytes <= block.length; at += 1)
    if (recordProblem(block, at) === null) return at
  return block.length
}
