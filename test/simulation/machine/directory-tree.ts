// directory-tree.ts: finds what a path of the simulated disk leads to, over links and mounts.

import { posix } from 'node:path'
import type { DirectoryNode, Inode } from './inode.ts'
import { systemError, type CallPlace } from './system-error.ts'

export const rootPath = '/sim'

/** Paths below the root are simulated. */
export function isSimulatedPath(path: string): boolean {
  if (!path.startsWith(rootPath)) return false
  return path.length === rootPath.length || path[rootPath.length] === '/'
}

/** `node`: null where the directory has no such name. The name of the root is empty. */
export type Found = { directory: DirectoryNode; name: string; node: Inode | null; realPath: string }

const linksMax = 40
const nameBytesMax = 255

export function findInTree(
  root: DirectoryNode,
  path: string,
  { place, follow }: { place: CallPlace; follow: boolean },
): Found {
  let full = path
  for (let links = 0; links <= linksMax; links += 1) {
    const names = namesOf(full)
    if (names === null) throw systemError('ENOENT', place)
    const step = walk(root, names, { place, follow })
    if (!('linked' in step)) return step
    full = step.linked
  }
  throw systemError('ELOOP', place)
}

/** Of the paths that the daemon uses, which are few. */
const known = new Map<string, readonly string[] | null>()
const knownMax = 2000

/** Below the root. Null: elsewhere. */
function namesOf(path: string): readonly string[] | null {
  let names = known.get(path)
  if (names === undefined) {
    const full = posix.resolve(path)
    names = isSimulatedPath(full) ? full.slice(rootPath.length + 1).split('/') : null
    if (known.size >= knownMax) known.clear()
    known.set(path, names)
  }
  return names
}

/** `linked`: the path to go on with where a link is on the way. */
function walk(
  root: DirectoryNode,
  names: readonly string[],
  { place, follow }: { place: CallPlace; follow: boolean },
): Found | { linked: string } {
  let directory = seen(root)
  let realPath = rootPath
  if (names[0] === '') return { directory, name: '', node: directory, realPath }
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index]!
    if (name.length > nameBytesMax / 4 && Buffer.byteLength(name) > nameBytesMax)
      throw systemError('ENAMETOOLONG', place)
    const isLast = index === names.length - 1
    const entry = directory.entries.get(name) ?? null
    if (entry?.kind === 'link' && (follow || !isLast))
      return { linked: posix.resolve(realPath, entry.target, ...names.slice(index + 1)) }
    realPath = `${realPath}/${name}`
    const node = entry?.kind === 'directory' ? seen(entry) : entry
    if (isLast) return { directory, name, node, realPath }
    if (node === null) throw systemError('ENOENT', place)
    if (node.kind !== 'directory') throw systemError('ENOTDIR', place)
    directory = node
  }
  throw systemError('ENOENT', place)
}

/** What a name shows: the directory itself, or what covers it. */
const seen = (directory: DirectoryNode) => directory.covering ?? directory

/** Every inode that has a name, each once, and the names that it has. */
export function namesOfInodes(root: DirectoryNode): Map<Inode, number> {
  const names = new Map<Inode, number>([[root, 1]])
  const open: DirectoryNode[] = [root]
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    for (const other of [directory.underneath, ...directory.entries.values()]) {
      if (other === null) continue
      const before = names.get(other) ?? 0
      names.set(other, before + 1)
      if (before === 0 && other.kind === 'directory') open.push(other)
    }
  }
  return names
}
