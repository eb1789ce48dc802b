// file-system.ts: on which file system a path is, and whether what is written there stays. By the table of
// mounts: statfs(2) cannot tell ext2 from ext4.
//
//   in memory   tmpfs, ramfs: everything is gone when the machine restarts
//   doubtful    a power cut, or a server elsewhere, can take what fsync confirmed
//   overlay     what its upper directory is on

import { existsSync } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { codeOf, GatewayError } from '../gateway-error.ts'

export type FileSystem = {
  type: string
  mountPoint: string
  source: string
  /** What can become of acknowledged data there, as a sentence; null where it is kept. */
  risk: string | null
  isInMemory: boolean
}

const inMemory: ReadonlySet<string> = new Set(['tmpfs', 'ramfs', 'rootfs', 'devtmpfs'])

const noJournal =
  'It has no journal: after a power cut, files of the spool can be missing, empty or old, although they were ' +
  'flushed.'
const onServer =
  'It is on a server: what a flush means there is not known here, and while the server does not answer, the ' +
  'gateway hangs.'
const unseenLayer =
  'It is the layer of a container: it is deleted with the container. Give the spool a volume.'

const risks: Readonly<Record<string, string>> = {
  vfat: noJournal,
  msdos: noJournal,
  exfat: noJournal,
  ext2: noJournal,
  minix: noJournal,
  nfs: onServer,
  nfs4: onServer,
  cifs: onServer,
  smb3: onServer,
  '9p': onServer,
  ceph: onServer,
  'fuse.sshfs': onServer,
}

/** Of the nearest part of the path that exists. Null where the machine does not say it. */
export async function fileSystemAt(path: string): Promise<FileSystem | null> {
  try {
    return fileSystemIn(await readFile('/proc/self/mountinfo', 'utf8'), await nearestReal(resolve(path)))
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return null
  }
}

async function nearestReal(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error
    return nearestReal(dirname(path))
  }
}

/** `mountinfo` as in proc(5). `path` is absolute and has no links. `isSeen`: a directory exists here. */
export function fileSystemIn(mountinfo: string, path: string, isSeen = existsSync): FileSystem | null {
  const mount = mountOf(mountinfo, path)
  if (mount === null) return null
  const { type, mountPoint, source, options } = mount
  if (type !== 'overlay')
    return { type, mountPoint, source, risk: risks[type] ?? null, isInMemory: inMemory.has(type) }
  const upper = /(?:^|,)upperdir=([^,]*)/.exec(options)?.[1]
  // In a container the upper directory is one of the host: its path leads to nothing or to the overlay.
  const below = upper === undefined || !isSeen(upper) ? null : mountOf(mountinfo, upper)
  if (below === null || below.type === 'overlay')
    return { type, mountPoint, source, risk: unseenLayer, isInMemory: false }
  return {
    type: `overlay on ${below.type}`,
    mountPoint,
    source,
    risk: risks[below.type] ?? null,
    isInMemory: inMemory.has(below.type),
  }
}

type Mount = { type: string; mountPoint: string; source: string; options: string }

function mountOf(mountinfo: string, path: string): Mount | null {
  let found: Mount | null = null
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const mountPoint = unescaped(before.split(' ')[4] ?? '')
    const [type = '', source = '', options = ''] = after.split(' ').map(unescaped)
    if (mountPoint === '' || !(mountPoint === '/' || `${path}/`.startsWith(`${mountPoint}/`))) continue
    // Of several at one place, the last hides the others.
    if (mountPoint.length >= (found?.mountPoint.length ?? 0)) found = { type, mountPoint, source, options }
  }
  return found
}

/** Spaces and the like are octal there. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)))
}

/** `ext4, mounted at / from /dev/vda`. */
export function fileSystemText({ type, mountPoint, source }: FileSystem): string {
  return `${type}, mounted at ${mountPoint} from ${source}`
}

/** SPOOL_IN_MEMORY, or null. */
export function inMemoryFault(spoolPath: string, fileSystem: FileSystem | null): GatewayError | null {
  if (fileSystem?.isInMemory !== true) return null
  return new GatewayError('SPOOL_IN_MEMORY', {
    what: `The spool ${spoolPath} is on a file system in memory.`,
    why: `It is on ${fileSystemText(fileSystem)}. A restart of the machine deletes what was acknowledged.`,
    act: 'Set spool.path to a directory on a disk. For trying out: spool.allow_in_memory: true.',
  })
}

/** What the file system of the spool means for acknowledged data, for `check` and the start. */
export async function fileSystemWarnings(spoolPath: string): Promise<{ what: string; act: string }[]> {
  const fileSystem = await fileSystemAt(spoolPath)
  if (fileSystem === null) return []
  const memory = fileSystem.isInMemory ? 'A restart of the machine deletes what was acknowledged.' : null
  const risk = fileSystem.risk ?? memory
  if (risk === null) return []
  return [
    {
      what: `The spool ${spoolPath} is on ${fileSystemText(fileSystem)}. ${risk}`,
      act: 'Put spool.path on a local disk with ext4, xfs or btrfs.',
    },
  ]
}
