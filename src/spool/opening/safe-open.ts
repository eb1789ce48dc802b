// safe-open.ts: one opening of the store, with everything that must be true before: room on the disk for what
// LevelDB writes at an opening, and files that the check has passed.
//
// On a full disk the ballast is dropped first, then the tables of an interrupted compaction are deleted.
// Without room even then, LevelDB does not touch the files.
// Where LevelDB or the recovery finds damage that no check looked for, all tables are checked, to say what is
// hit.

import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatSize, plural } from '../../std/quantity.ts'
import {
  deleteUnnamedTables,
  explainDirectory,
  isDiskFull,
  storeFilesAt,
  type Disk,
} from '../../storage/storage.ts'
import { isCorruption } from '../chunk-log/damage-scan.ts'
import { storePathOf } from './aside.ts'
import { damagedFault } from './damage-report.ts'
import type { StoreOpening } from './opening.ts'
import type { FoundStore } from './spool-marker.ts'

type Deps = {
  disk: Pick<Disk, 'free' | 'dropBallast'>
  /** Null for a store in memory: then nothing is checked. */
  opening: StoreOpening | null
  signal: AbortSignal
}

/** For a manifest, a log and small files. The content of the logs becomes a table. */
const openingBytes = 2 * 1024 * 1024
const openingFiles = 20

/** Rejects with a GatewayError, and with what a programming error threw. */
export async function openSafely<Opened>(
  { disk, opening, signal }: Deps,
  path: string,
  openOnce: (found: FoundStore) => Promise<Opened>,
): Promise<Opened> {
  if (opening === null) return openOnce('nothing')
  await makeRoom(disk, path)
  try {
    return await openChecked()
  } catch (error) {
    if (isDiskFull(error)) await disk.dropBallast(path)
    else if (!(error instanceof FoundDamage)) throw error
    else await opening.suspect()
  }
  return openChecked().catch((error: unknown) => {
    throw error instanceof FoundDamage ? error.fault : error
  })

  async function openChecked(): Promise<Opened> {
    const found = (await opening?.prepare(signal)) ?? 'nothing'
    try {
      return await openOnce(found)
    } catch (error) {
      throw explainOpening(path, error)
    }
  }
}

/** Damage that the check did not find, because it did not look at these files or cannot see it. */
class FoundDamage extends Error {
  readonly fault: GatewayError

  constructor(fault: GatewayError) {
    super(fault.message, { cause: fault })
    this.fault = fault
  }
}

function explainOpening(path: string, error: unknown): unknown {
  if (isCorruption(error)) return new FoundDamage(damagedFault(path, `${messageOf(error)}.`, error))
  if (error instanceof GatewayError)
    return error.code === 'SPOOL_DAMAGED' ? new FoundDamage(damagedFault(path, error.why, error)) : error
  // Without a code it is a programming error.
  return codeOf(error) === undefined ? error : explainDirectory(`Cannot open the spool at ${path}.`, error)
}

async function makeRoom(disk: Deps['disk'], path: string): Promise<void> {
  const { logBytes } = await storeFilesAt(storePathOf(path))
  const neededBytes = logBytes + openingBytes
  if ((await missing()) === null) return
  await disk.dropBallast(path)
  if ((await missing()) === null) return
  // Where this fails, the opening that follows says why.
  await deleteUnnamedTables(storePathOf(path), path).catch(() => 0)
  const shortage = await missing()
  if (shortage === null) return
  throw new GatewayError('SPOOL_DISK_FULL', {
    what: `There is no space to open the spool at ${path}.`,
    why: `Its file system has ${shortage.free}, and opening needs ${shortage.needed}.`,
    act: `${shortage.act} on that file system, and delete no file of the spool. The gateway tries again automatically.`,
  })

  async function missing(): Promise<{ free: string; needed: string; act: string } | null> {
    const { bytes, files } = await disk.free(path)
    if (bytes < neededBytes)
      return { free: `${formatSize(bytes)} free`, needed: formatSize(neededBytes), act: 'Free space' }
    if (files >= openingFiles) return null
    return { free: plural(files, 'free inode'), needed: String(openingFiles), act: 'Delete files (`df -i`)' }
  }
}
