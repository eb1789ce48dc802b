// manifest.ts: which tables and logs make up a database: reads and writes MANIFEST files and CURRENT.
//
//   CURRENT          the name of the manifest in force and a line feed
//   MANIFEST-000005  a log (log-reader.ts) of edits; each adds tables to levels, removes some, sets numbers
//   edit             fields, each a tag (varint) and its value; an internal key is a user key and 8 more:
//                    sequence and type
//
// The rename of CURRENT is the one switch from a version of the database to another.

import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { syncDirectory } from '../disk.ts'
import { openRegular, unreadableText } from '../../std/file-system/regular-file.ts'
import { readLog } from './log-reader.ts'
import { createLogWriter } from './log-writer.ts'
import type { FileDamage, Manifest, VersionTable } from './types.ts'
import { createByteReader, encodeString, encodeVarint, type ByteReader } from './varint.ts'

const tag = {
  comparator: 1,
  logNumber: 2,
  nextFileNumber: 3,
  lastSequence: 4,
  compactPointer: 5,
  removedTable: 6,
  newTable: 7,
  prevLogNumber: 9,
} as const

export const levels = 7
export const bytewiseComparator = 'leveldb.BytewiseComparator'

type Numbers = Pick<
  Manifest,
  'comparator' | 'logNumber' | 'prevLogNumber' | 'nextFileNumber' | 'lastSequence'
>
type Edit = { numbers: Partial<Numbers>; removed: [level: number, number: number][]; added: VersionTable[] }

export const tableName = (number: number) => `${String(number).padStart(6, '0')}.ldb`
export const logName = (number: number) => `${String(number).padStart(6, '0')}.log`
export const manifestName = (number: number) => `MANIFEST-${String(number).padStart(6, '0')}`

/** The name that CURRENT holds; null with the damage where it holds none. */
export async function readCurrent(
  path: string,
): Promise<{ name: string; damage: null } | { name: null; damage: FileDamage }> {
  const damaged = (bytes: number, what: string) => {
    const damage: FileDamage = { file: 'CURRENT', unit: 'CURRENT', offset: 0, bytes, what, keys: null }
    return { name: null, damage }
  }
  let bytes: Buffer
  try {
    bytes = await readRegular(join(path, 'CURRENT'))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return damaged(0, 'the file is missing')
    const what = unreadableText(error)
    if (what !== null) return damaged(0, what)
    throw error
  }
  const name = /^(MANIFEST-\d+)\n$/.exec(bytes.toString('latin1'))?.[1]
  if (name === undefined) return damaged(bytes.length, 'it does not hold the name of a manifest')
  return { name, damage: null }
}

async function readRegular(path: string): Promise<Buffer> {
  const file = await openRegular(path)
  try {
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** Manifest null: not one edit can be read. */
export async function readManifest(
  path: string,
  name: string,
): Promise<{ manifest: Manifest | null; damage: FileDamage[] }> {
  const damage: FileDamage[] = []
  const add = (offset: number, bytes: number, what: string) =>
    damage.push({ file: name, unit: 'manifest', offset, bytes, what, keys: null })
  const tables = new Map<number, VersionTable>()
  const numbers: Partial<Numbers> = {}
  let edits = 0
  const file = await openRegular(join(path, name))
  try {
    const { size } = await file.stat()
    const isEntry = (content: Buffer) => decodeEdit(content) !== null
    for await (const item of readLog(file, { isEntry })) {
      if (item.kind === 'damage') add(item.offset, item.bytes, item.what)
      // A cut end is an edit that was never in force. LevelDB does not open a manifest with a wrong end.
      if (item.kind === 'torn' && !item.isCut) add(item.offset, item.bytes, 'its last edit cannot be read')
      if (item.kind !== 'entry') continue
      edits += 1
      const edit = decodeEdit(item.content)
      for (const [level, number] of edit?.removed ?? [])
        if (tables.get(number)?.level === level) tables.delete(number)
      for (const table of edit?.added ?? []) tables.set(table.number, table)
      Object.assign(numbers, edit?.numbers)
    }
    const { logNumber = -1, nextFileNumber = -1, lastSequence = -1 } = numbers
    if (Math.min(logNumber, nextFileNumber, lastSequence) < 0)
      add(0, size, 'it does not hold a whole version of the database')
  } finally {
    await file.close()
  }
  if (edits === 0) return { manifest: null, damage }
  const { comparator = bytewiseComparator, logNumber = 0, prevLogNumber = 0 } = numbers
  const { nextFileNumber = 0, lastSequence = 0 } = numbers
  const all = { comparator, logNumber, prevLogNumber, nextFileNumber, lastSequence }
  return { manifest: { name, ...all, tables, isComplete: damage.length === 0 }, damage }
}

function decodeEdit(bytes: Buffer): Edit | null {
  const reader = createByteReader(bytes)
  const edit: Edit = { numbers: {}, removed: [], added: [] }
  while (!reader.atEnd()) if (!readField(reader, edit)) return null
  return edit
}

/** False where the field is malformed. */
function readField(reader: ByteReader, { numbers, removed, added }: Edit): boolean {
  const number = (name: Exclude<keyof Numbers, 'comparator'>) => {
    const value = reader.varint()
    numbers[name] = value
    return value >= 0
  }
  switch (reader.varint()) {
    case tag.comparator: {
      const name = reader.string()?.toString()
      if (name !== undefined) numbers.comparator = name
      return name === bytewiseComparator
    }
    case tag.logNumber:
      return number('logNumber')
    case tag.prevLogNumber:
      return number('prevLogNumber')
    case tag.nextFileNumber:
      return number('nextFileNumber')
    case tag.lastSequence:
      return number('lastSequence')
    case tag.compactPointer:
      return isLevel(reader.varint()) && reader.string() !== null
    case tag.removedTable: {
      const level = reader.varint()
      const table = reader.varint()
      removed.push([level, table])
      return isLevel(level) && table >= 0
    }
    case tag.newTable: {
      const table = readTable(reader)
      if (table !== null) added.push(table)
      return table !== null
    }
    default:
      return false
  }
}

const isLevel = (level: number) => level >= 0 && level < levels

/** An internal key: a user key, then 8 bytes. */
const sequenceBytes = 8
const userKeyOf = (key: Buffer) => key.subarray(0, key.length - sequenceBytes)

function readTable(reader: ByteReader): VersionTable | null {
  const level = reader.varint()
  const number = reader.varint()
  const bytes = reader.varint()
  const firstKey = reader.string()
  const lastKey = reader.string()
  if (!isLevel(level) || number < 0 || bytes < 0 || firstKey === null || lastKey === null) return null
  if (firstKey.length < sequenceBytes || lastKey.length < sequenceBytes) return null
  const smallest = userKeyOf(firstKey)
  const largest = userKeyOf(lastKey)
  return { number, name: tableName(number), bytes, level, smallest, largest, firstKey, lastKey }
}

/**
 * Writes a manifest and syncs it. Nothing uses it before switchCurrent(). `number` is that of the file; it
 * and the numbers of all files are below `nextFileNumber`. Returns the name.
 */
export async function writeManifest(
  path: string,
  number: number,
  version: Omit<Numbers, 'comparator'> & { tables: Iterable<VersionTable> },
): Promise<string> {
  const name = manifestName(number)
  const file = await open(join(path, name), 'w')
  try {
    const writer = createLogWriter(file)
    await writer.append(encodeVersion(version))
    await writer.finish()
  } finally {
    await file.close()
  }
  await syncDirectory(path)
  return name
}

/** Makes a manifest the one in force, durably. */
export async function switchCurrent(path: string, name: string): Promise<void> {
  // LevelDB deletes files with this ending when it opens the database.
  const draft = join(path, `${name.slice('MANIFEST-'.length)}.dbtmp`)
  const file = await open(draft, 'w')
  try {
    await file.writeFile(`${name}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, join(path, 'CURRENT'))
  await syncDirectory(path)
}

function encodeVersion(version: Omit<Numbers, 'comparator'> & { tables: Iterable<VersionTable> }): Buffer {
  const parts: Buffer[] = [encodeVarint(tag.comparator), encodeString(Buffer.from(bytewiseComparator))]
  for (const name of ['logNumber', 'prevLogNumber', 'nextFileNumber', 'lastSequence'] as const)
    parts.push(encodeVarint(tag[name]), encodeVarint(version[name]))
  for (const { level, number, bytes, firstKey, lastKey } of version.tables) {
    parts.push(...[tag.newTable, level, number, bytes].map((value) => encodeVarint(value)))
    parts.push(encodeString(firstKey), encodeString(lastKey))
  }
  return Buffer.concat(parts)
}
