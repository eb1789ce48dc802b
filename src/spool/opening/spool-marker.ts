// spool-marker.ts: the file `spool.json` says that a directory is a spool. It is in the spool directory, so
// where the file system of the spool is not mounted, it is missing, too.
//
//   at the first opening of a process                 spool.create: true     spool.create: false
//   the marker, or a store without one (0.1.0)        the store is opened    the store is opened
//   neither                                           a new spool is made    SPOOL_MISSING
//
// `spool init` and `spool restore` make a spool on purpose.

import { join, resolve } from 'node:path'
import type { Emit } from '../../domain/event.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import {
  fileSystemAt,
  fileSystemText,
  inMemoryFault,
  type FileSystem,
} from '../../std/file-system/file-system.ts'
import { readRegular, replaceRegular } from '../../std/file-system/regular-file.ts'
import { codeOf, GatewayError } from '../../std/gateway-error.ts'
import { hasDatabase, realDisk, storeFilesAt, syncDirectory } from '../../storage/storage.ts'
import { hasMark, storePathOf } from './aside.ts'
import { shellArgument } from './damage-report.ts'

/** `found`: a store without marker was there. */
type MadeBy = 'daemon' | 'init' | 'restore' | 'found'

export type SpoolMarker = { madeAt: EpochMs; by: MadeBy | 'unknown' }

const markerPath = (spoolPath: string) => join(spoolPath, 'spool.json')

/** Makes what is missing. Rejects with SPOOL_MISSING, SPOOL_IN_MEMORY, or a code of the directory. */
export async function requireSpool(
  { path, create, allowInMemory }: { path: string; create: boolean; allowInMemory: boolean },
  now: EpochMs,
): Promise<SpoolMarker> {
  const marker = await readMarker(path)
  const isThere = marker !== null || (await hasStore(path))
  const fileSystem = await fileSystemAt(path)
  if (!isThere && !create) throw missing(path, fileSystem)
  const inMemory = allowInMemory ? null : inMemoryFault(path, fileSystem)
  if (inMemory !== null) throw inMemory
  return marker ?? makeMarker(path, { by: isThere ? 'found' : 'daemon', madeAt: now })
}

/** Makes the directory and its marker on purpose. Null: there is a spool already. */
export async function initSpool(path: string, now: EpochMs): Promise<SpoolMarker | null> {
  if ((await readMarker(path)) !== null) return null
  const isThere = await hasStore(path)
  const marker = await makeMarker(path, { by: isThere ? 'found' : 'init', madeAt: now })
  return isThere ? null : marker
}

export async function makeMarker(path: string, marker: SpoolMarker): Promise<SpoolMarker> {
  await realDisk.makeDirectory(path)
  await replaceRegular(markerPath(path), `${JSON.stringify({ version: 1, ...marker })}\n`, { isSynced: true })
  await syncDirectory(path)
  return marker
}

/** Whatever is in it: that it is there counts. */
async function readMarker(path: string): Promise<SpoolMarker | null> {
  try {
    const { madeAt, by } = JSON.parse(await readRegular(markerPath(path))) as SpoolMarker
    return { madeAt, by }
  } catch (error) {
    if (error instanceof SyntaxError) return { madeAt: 0, by: 'unknown' }
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null
    throw error
  }
}

async function hasStore(path: string): Promise<boolean> {
  const files = await storeFilesAt(storePathOf(path)).catch((error: unknown) => {
    // Making the directory says what is wrong.
    if (codeOf(error) === 'SPOOL_NOT_DIRECTORY') return null
    throw error
  })
  return files !== null && (files.hasCurrent || hasDatabase(files) || (await hasMark(path)))
}

/** How long a new spool is reported. */
const newForMs = 86_400_000

/** It can be a mistake: a file system is not mounted. Call what is returned from time to time. */
export function reportNew(
  { clock, emit }: { clock: Clock; emit: Emit },
  path: string,
  { madeAt, by }: SpoolMarker,
): () => void {
  const leftMs = Math.min(newForMs, newForMs - (clock.now() - madeAt))
  if (by !== 'daemon' || leftMs <= 0) return () => undefined
  emit({ kind: 'spool_new', path, at: madeAt })
  let untilMs = clock.monotonic() + leftMs
  return () => {
    if (clock.monotonic() < untilMs) return
    untilMs = Infinity
    emit({ kind: 'spool_new_ended' })
  }
}

function missing(path: string, fileSystem: FileSystem | null): GatewayError {
  const where = fileSystem === null ? '' : ` The path is on ${fileSystemText(fileSystem)}.`
  return new GatewayError('SPOOL_MISSING', {
    what: `There is no spool at ${path}, and spool.create is false.`,
    why: `The directory has neither a marker (spool.json) nor a store.${where} Is a file system not mounted?`,
    act:
      'Mount it: the gateway then opens the spool automatically. For a new spool run ' +
      `\`telemetry-gateway spool init --path ${shellArgument(resolve(path))}\` as the user of the gateway.`,
  })
}
