// level-store.ts: the store over `level`.

import { mkdir } from 'node:fs/promises'
import { ClassicLevel } from 'classic-level'
import { Level } from 'level'
import { assert } from '../std/assert.ts'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import type {
  OpenStore,
  ReadOptions,
  Store,
  StoreEntry,
  StoreOp,
  StoreOptions,
  StoreRange,
} from './storage.ts'

/**
 * Memory that holds the newest writes (twice, while one is being written out). Larger means fewer and larger
 * tables; it is also what LevelDB reads back from its log at start.
 */
const usualWriteBufferBytes = 8 * 1024 * 1024

/** Blocks of this size are compressed as one: payloads of one fleet look alike, so larger saves disk. */
const blockBytes = 16 * 1024

const defaultPageBytes = 256 * 1024

export const openLevelStore: OpenStore = async (path, options) => {
  try {
    await mkdir(path, { recursive: true })
  } catch (error) {
    throw unwritable(path, error)
  }
  return open(path, { ...options, createIfMissing: true })
}

/** Opens what is there and makes nothing. */
export const openExistingStore: OpenStore = (path, options) =>
  open(path, { ...options, createIfMissing: false })

/**
 * Puts a database that cannot be opened, or not read whole, together anew from what can be read of its files. It rewrites
 * them, so it is for copies. Rejects with SPOOL_DAMAGED.
 */
export async function repairStore(path: string): Promise<void> {
  try {
    await ClassicLevel.repair(path)
  } catch (error) {
    throw new GatewayError('SPOOL_DAMAGED', {
      what: `The database at ${path} cannot be repaired.`,
      why: `${messageOf(error)}.`,
      act: 'Keep the directory; somebody who knows LevelDB may still read its files.',
      cause: error,
    })
  }
}

async function open(path: string, options: StoreOptions & { createIfMissing: boolean }): Promise<Store> {
  const { createIfMissing, writeBufferBytes = usualWriteBufferBytes } = options
  const level = new Level<Buffer, Buffer>(path, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  // `level` hides `sync` and `compactRange` in its types; the class that it hands out on Node has them.
  assert(level instanceof ClassicLevel, 'level is classic-level on Node')
  try {
    await level.open({
      createIfMissing,
      compression: true,
      writeBufferSize: writeBufferBytes,
      blockSize: blockBytes,
      maxFileSize: 8 * 1024 * 1024,
    })
  } catch (error) {
    throw explainOpenFailure(path, error)
  }
  return storeOver(level)
}

function storeOver(level: ClassicLevel<Buffer, Buffer>): Store {
  return {
    // The array is only read; abstract-level's type asks for a mutable one.
    write: (ops, options) => level.batch(ops as StoreOp[], options),
    get: (key) => level.get(key),
    pages: (range, options) => readPages(level, range, options ?? {}),
    compact: ({ gte, lt }) => level.compactRange(gte, lt),
    close: () => level.close(),
  }
}

async function* readPages(
  level: ClassicLevel<Buffer, Buffer>,
  range: StoreRange,
  options: ReadOptions,
): AsyncGenerator<StoreEntry[]> {
  const iterator = level.iterator({
    ...range,
    reverse: options.reverse ?? false,
    limit: options.limit ?? -1,
    fillCache: false,
    highWaterMarkBytes: options.pageBytes ?? defaultPageBytes,
  })
  try {
    for (;;) {
      const page = await iterator.nextv(10_000)
      if (page.length === 0) return
      yield page
    }
  } finally {
    await iterator.close()
  }
}

function explainOpenFailure(path: string, error: unknown): GatewayError {
  const code = codeOf(error instanceof Error && error.cause !== undefined ? error.cause : error)
  if (code === 'LEVEL_LOCKED') {
    return new GatewayError('SPOOL_LOCKED', {
      what: `Cannot open the spool at ${path}.`,
      why: 'Another process holds its lock.',
      act: 'Check `systemctl status telemetry-gateway`; only one gateway may use a spool directory.',
      cause: error,
    })
  }
  const why = messageOf(error)
  if (code === 'LEVEL_CORRUPTION' || /corrupt|missing files|CURRENT|MANIFEST/i.test(why)) {
    return new GatewayError('SPOOL_DAMAGED', {
      what: `Cannot open the spool at ${path}.`,
      why: `Its database files are damaged: ${why}.`,
      act: 'Do not delete the directory: copy it aside first, it holds telemetry that was acknowledged.',
      cause: error,
    })
  }
  return unwritable(path, error)
}

function unwritable(path: string, error: unknown): GatewayError {
  return new GatewayError('SPOOL_UNWRITABLE', {
    what: `Cannot open or make the spool at ${path}.`,
    why: `${messageOf(error)}.`,
    act: 'Check that the directory exists, that the user of the gateway may write it, and that the disk is not full.',
    cause: error,
  })
}
