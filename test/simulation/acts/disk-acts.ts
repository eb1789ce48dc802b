// disk-acts.ts: what happens to the disk of the gateway: calls that fail or hang, no room, a mount that is gone, an
// operator who moves the spool.

import { spoolPath } from '../daemon.ts'
import { Database } from '../machine/database.ts'
import type { SimDisk } from '../machine/disk.ts'
import type { Machine } from '../machine/machine.ts'
import type { DiskCall } from '../machine/system-error.ts'
import type { EndAct, World } from './act.ts'

const storePath = `${spoolPath}/store`
const asidePath = '/sim/aside'
const olderPath = '/sim/older'
/** spool.min_free_bytes of the config. */
const bytesFreeMin = 1_048_576

const calls: readonly DiskCall[] = [
  ...(['open', 'fsync', 'rename', 'write', 'stat', 'unlink', 'mkdir', 'opendir', 'close'] as const),
  ...(['fdatasync', 'read', 'scandir', 'statfs', 'lstat', 'realpath', 'access', 'link'] as const),
]
const codes = ['EIO', 'EACCES', 'EMFILE', 'ENOSPC'] as const
/** Single files that a fault strikes alone. */
const files = [/\/mark$/, /spool\.json/, /check-state/, /ballast/, /ledger/, /audit/, /LOCK/] as const

export function diskAct(world: World): EndAct | undefined {
  const { random, machine, causes } = world
  const { disk } = machine
  const act = random.pick<() => EndAct | undefined>([
    () => disk.fail({ call: 'db-write', code: random.pick(['EIO', 'ENOSPC']), times: 1 }),
    () => disk.fail({ call: 'db-read', code: 'EIO', times: 1 + random.below(3) }),
    () => disk.fail({ call: 'db-open', code: random.pick(['EIO', 'EMFILE']), times: 1 + random.below(5) }),
    () =>
      disk.fail({
        call: 'db-write',
        code: random.pick(['EIO', 'ENOSPC']),
        after: random.below(20),
        times: 1,
      }),
    () => disk.stall({ call: 'db-write', ms: random.below(3000) }),
    () => causes.hold('hanging writes', disk.stall({ call: 'db-write' })),
    () => {
      const bytes = random.below(random.pick([700_000, 4_000_000]))
      const end = filled(disk, { bytes: disk.usedBytes + bytes })
      return bytes < bytesFreeMin / 2 ? causes.hold('low disk', end) : end
    },
    () => lowDisk(world),
    () => filled(disk, { files: random.below(50) }),
    () => {
      disk.setReadOnly(true)
      return () => void disk.setReadOnly(false)
    },
    // The file system is unmounted, and an empty directory is in its place.
    () => (isPlain(disk) ? causes.hold('spool away', disk.world.hide(spoolPath)) : undefined),
    () => causes.hold('spool away', moved(disk, spoolPath)),
    () => moved(disk, storePath),
    () => swapped(world),
    () => swapped(world),
    () => swapped(world),
    () =>
      disk.fail({
        call: random.pick(calls),
        path: spoolPath,
        code: random.pick(codes),
        times: 1 + random.below(5),
      }),
    () =>
      disk.fail({
        call: random.pick(calls),
        path: random.pick(files),
        code: random.pick(codes),
        after: random.below(3),
        times: 1 + random.below(50),
      }),
    () =>
      disk.fail({
        call: random.pick(['open', 'write']),
        path: files[0],
        code: 'EIO',
        times: 1 + random.below(5),
      }),
    // Directories cannot be synced.
    () => disk.fail({ call: 'fsync', path: /(sim|spool|store)$/, code: 'EIO', times: 1 + random.below(5) }),
    () => disk.fail({ call: 'rename', path: spoolPath, code: 'EIO', times: 1 + random.below(3) }),
  ])
  try {
    return act()
  } catch (error) {
    // As `mv` of a mount, or `umount` of what is not there: it says so, and nothing has changed.
    if (error instanceof Error && 'syscall' in error) return undefined
    throw error
  }
}

/** The store is lost, and opened again. */
export function failedWrite({ machine: { disk }, random }: World): EndAct {
  return disk.fail({ call: 'db-write', code: 'EIO', after: random.below(5), times: 1 })
}

/** What comes meanwhile waits behind the write that runs. */
export function slowWrites({ machine: { disk }, random }: World): EndAct {
  return disk.stall({ call: 'db-write', ms: 100 + random.below(900) })
}

/** What was read waits until the disk has room again. */
export function lowDisk({ machine: { disk }, causes, random }: World): EndAct | undefined {
  return causes.hold('low disk', filled(disk, { bytes: disk.usedBytes + random.below(bytesFreeMin / 2) }))
}

/** Until the end of the fault; others may overlap. */
function filled(disk: SimDisk, capacity: Parameters<SimDisk['setCapacity']>[0]): EndAct {
  disk.setCapacity(capacity)
  return () => void disk.setCapacity({ bytes: 100e9, files: 1e6 })
}

/** `mv` to another place, and back. */
function moved(disk: SimDisk, path: string): EndAct | undefined {
  if (!isPlain(disk)) return undefined
  disk.world.rename(path, asidePath)
  return () => {
    if (!disk.world.exists(asidePath)) return
    // What the daemon made there meanwhile is not the spool.
    disk.world.remove(path)
    disk.world.rename(asidePath, path)
  }
}

/** An older copy of the spool comes in the place of the one that the daemon has open, and goes again. */
export function swapped(world: World): EndAct | undefined {
  const { machine, daemon } = world
  const { disk } = machine
  if (!isPlain(disk) || !disk.world.exists(olderPath) || !daemon.isReady) return undefined
  world.isSwapped = true
  disk.world.rename(spoolPath, asidePath)
  disk.world.rename(olderPath, spoolPath)
  return () => {
    if (!disk.world.exists(asidePath)) return
    disk.world.rename(spoolPath, olderPath)
    disk.world.rename(asidePath, spoolPath)
    world.isSwapped = false
  }
}

/** No other act has moved or hidden the spool. */
function isPlain(disk: SimDisk): boolean {
  return (
    !disk.world.exists(asidePath) &&
    disk.world.exists(storePath) &&
    disk.world.exists(`${spoolPath}/spool.json`)
  )
}

/** A backup of the spool, made while the daemon does not run. */
export function backUp({ disk }: Machine): void {
  if (!isPlain(disk)) return
  disk.world.remove(olderPath)
  copyTree(disk, spoolPath, olderPath)
}

function copyTree(disk: SimDisk, from: string, to: string): void {
  disk.world.makeDirectory(to)
  for (const { name, kind } of disk.world.list(from)) {
    if (kind === 'directory') copyTree(disk, `${from}/${name}`, `${to}/${name}`)
    else if (kind === 'file') disk.world.write(`${to}/${name}`, disk.world.read(`${from}/${name}`))
  }
  const database = disk.attachment(from)
  if (database instanceof Database) disk.attach(to, database.copy())
}
