// spool-marker.ts: the file `spool.json` says that a directory is a spool. It is in the spool directory, so
// where the file system of the spool is not mounted, it is missing, too.
//
//   at the first opening of a process                 spool.create: true     spool.create: false
//   a store, with or without the marker (0.1.0)       the store is opened    the store is opened
//   the marker, which says that no store was made     a new store is made    a new store is made
//   the marker, which says that a store was made      a new spool is made    SPOOL_MISSING
//   neither                                           a new spool is made    SPOOL_MISSING
//
// A store whose high-water mark is left, or that was set aside, is not missing: the check of its files
// reports it. The marker notes that a store was made before the first acknowledgement.
//
// `spool init` and `spool restore` make a spool on purpose.

import { join, resolve } from 'node:path'
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
import { hasMark, storePathOf, storesAside } from './aside.ts'
import { shellArgument } from './damage-report.ts'

/** `found`: a store without marker was there. */
type MadeBy = 'daemon' | 'init' | 'restore' | 'found'

/** `hasStore`: a store was made in the directory. */
export type SpoolMarker = { madeAt: EpochMs; by: MadeBy | 'unknown'; hasStore: boolean }

/** At the path of the store, at a start. `moved`: what was there is out of the way, so a new one is meant. */
export type FoundStore = 'store' | 'nothing' | 'moved'

/** As the file has it: without `hasStore` in builds that did not note it. */
type Written = Omit<SpoolMarker, 'hasStore'> & Partial<SpoolMarker>

const markerPath = (spoolPath: string) => join(spoolPath, 'spool.json')

/** Makes what is missing. Rejects with SPOOL_MISSING, SPOOL_IN_MEMORY, or a code of the directory. */
export async function requireSpool(
  { path, create, allowInMemory }: { path: string; create: boolean; allowInMemory: boolean },
  now: EpochMs,
): Promise<SpoolMarker> {
  const marker = await readMarker(path)
  const isStoreThere = (await hasStore(path)) || (marker !== null && (await storesAside(path)).length > 0)
  const isThere = isStoreThere || marker?.hasStore === false
  const fileSystem = await fileSystemAt(path)
  if (!isThere && !create) throw missing(path, fileSystem, marker)
  const inMemory = allowInMemory ? null : inMemoryFault(path, fileSystem)
  if (inMemory !== null) throw inMemory
  if (marker !== null && isThere) return marker
  return makeMarker(path, { by: isThere ? 'found' : 'daemon', madeAt: now, hasStore: false })
}

/** `marker`: of this start. Null: a store in memory. */
export async function mayMakeStore(
  path: string,
  { found, marker }: { found: FoundStore; marker: SpoolMarker | null },
): Promise<boolean> {
  if (found !== 'nothing') return found === 'moved'
  return marker?.hasStore !== true || (await storesAside(path)).length > 0
}

/** Before the first acknowledgement: a start that finds no store then knows that there was one. */
export async function noteStore(path: string, marker: SpoolMarker): Promise<void> {
  if (!marker.hasStore) await makeMarker(path, { ...marker, hasStore: true })
}

/** Not null where the marker says that a store was made, and there is none. */
export async function missingStoreFault(path: string): Promise<GatewayError | null> {
  const marker = await readMarker(path)
  if (marker?.hasStore !== true || (await hasStore(path)) || (await storesAside(path)).length > 0) return null
  return missing(path, await fileSystemAt(path), marker)
}

/** Of a path at which a spool was opened: false where its file system is away. */
export async function isSpoolAt(path: string): Promise<boolean> {
  return (await readMarker(path)) !== null
}

/** Makes directory and marker on purpose. Null: there is a spool already. Rejects with SPOOL_MISSING. */
export async function initSpool(path: string, now: EpochMs): Promise<SpoolMarker | null> {
  const fault = await missingStoreFault(path)
  if (fault !== null) throw fault
  if ((await readMarker(path)) !== null) return null
  const isThere = await hasStore(path)
  const marker = await makeMarker(path, { by: isThere ? 'found' : 'init', madeAt: now, hasStore: false })
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
    const { hasStore = false, ...marker } = JSON.parse(await readRegular(markerPath(path))) as Written
    return { madeAt: marker.madeAt, by: marker.by, hasStore }
  } catch (error) {
    // What cannot be read is no permission to make a new store.
    if (error instanceof SyntaxError) return { madeAt: 0, by: 'unknown', hasStore: true }
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

/** It can be a mistake: a file system is not mounted. Monotonic; null for one that another command made. */
export function newUntilMs(clock: Clock, { madeAt, by }: SpoolMarker): number | null {
  const leftMs = Math.min(newForMs, newForMs - (clock.now() - madeAt))
  return by === 'daemon' ? clock.monotonic() + leftMs : null
}

function missing(path: string, fileSystem: FileSystem | null, marker: SpoolMarker | null): GatewayError {
  const where = fileSystem === null ? '' : ` The path is on ${fileSystemText(fileSystem)}.`
  const init = `\`telemetry-gateway spool init --path ${shellArgument(resolve(path))}\` as the user of the gateway.`
  if (marker !== null)
    return new GatewayError('SPOOL_MISSING', {
      what: `The store of the spool at ${path} is missing.`,
      why: `The marker (spool.json) says that a store was made here. It was moved or deleted.${where}`,
      act:
        `Move the directory ${storePathOf(path)} back: the gateway then opens it automatically. ` +
        `To give up what was in it, delete spool.json and run ${init}`,
    })
  return new GatewayError('SPOOL_MISSING', {
    what: `There is no spool at ${path}, and spool.create is false.`,
    why: `The directory has neither a marker (spool.json) nor a store.${where} Is a file system not mounted?`,
    act: `Mount it: the gateway then opens the spool automatically. For a new spool run ${init}`,
  })
}
