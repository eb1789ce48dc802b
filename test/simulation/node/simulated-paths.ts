// simulated-paths.ts: which calls of node:fs go to the simulated disk, and which to the real one.
//
// A call is simulated when one of its paths is below /sim, or its descriptor is one of the simulated disk. A
// function that is not simulated throws then: it would act on the real disk without anybody noticing.

import { fileURLToPath } from 'node:url'
import { current } from '../machine/current.ts'
import { isSimulatedPath } from '../machine/directory-tree.ts'
import { firstFd, type Entry, type SimDisk } from '../machine/disk.ts'
import { systemError, type DiskCall } from '../machine/system-error.ts'

const { Dirent } = process.getBuiltinModule('node:fs')

type Callable = (...given: never[]) => unknown
export type Functions = Record<string, Callable>

/** The functions of a module: each calls `simulated` for paths of the simulated disk, else `real`. */
export function routed<Module extends object>(
  real: Module,
  { simulated, failed }: { simulated: Functions; failed: (error: Error) => unknown },
): Module {
  const all: Record<string, unknown> = Object.fromEntries(Object.entries(real))
  for (const [name, given] of Object.entries(real))
    if (typeof given === 'function' && /^[a-z]/.test(name)) {
      const own = simulated[name] ?? (() => failed(new Error(`${name}() is not simulated`)))
      all[name] = choosing(name, { real: given as Callable, simulated: own, failed })
    }
  return all as Module
}

function choosing(
  name: string,
  { real, simulated, failed }: { real: Callable; simulated: Callable; failed: (error: Error) => unknown },
): Callable {
  const call = twoPaths[name.replace(/Sync$/, '')]
  const onRealDisk = (...given: never[]): unknown => {
    const result = real(...given)
    // Virtual time waits for it, or the order of what follows would not depend on the seed alone.
    if (result instanceof Promise) current.machine?.kernel.hold(result)
    return result
  }
  const chosen = (...given: never[]): unknown => {
    const { disk } = current
    if (disk === null) return real(...given)
    const first = isSimulated(given[0])
    const second = isSimulated(given[1])
    const isVirtual = name.startsWith('readFile') && disk.hasVirtualFile(String(given[0]))
    if (call === undefined) return first || isVirtual ? simulated(...given) : onRealDisk(...given)
    if (!first && !second) return onRealDisk(...given)
    if (call !== 'symlink' && !(first && second))
      return failed(systemError('EXDEV', { call, path: String(given[0]), dest: String(given[1]) }))
    return simulated(...given)
  }
  // Some functions have others as properties, such as realpath.native.
  return Object.assign(chosen, real)
}

const twoPaths: Readonly<Record<string, DiskCall>> = {
  copyFile: 'copyfile',
  cp: 'copyfile',
  link: 'link',
  rename: 'rename',
  symlink: 'symlink',
}

function isSimulated(value: unknown): boolean {
  if (typeof value === 'number') return value >= firstFd
  if (typeof value === 'object' && value !== null && 'isSimulated' in value) return true
  const path = value instanceof URL && value.protocol === 'file:' ? fileURLToPath(value) : value
  return typeof path === 'string' && isSimulatedPath(path)
}

export function theDisk(): SimDisk {
  if (current.disk === null) throw new Error('No simulated disk is set.')
  return current.disk
}

export type GivenPath = string | URL
export const pathText = (path: GivenPath) => (typeof path === 'string' ? path : fileURLToPath(path))

export type GivenEncoding = BufferEncoding | { encoding?: BufferEncoding | null } | null | undefined

export function encodingOf(options: GivenEncoding): BufferEncoding | null {
  return (typeof options === 'string' ? options : options?.encoding) ?? null
}

export function decoded(bytes: Buffer, options: GivenEncoding): string | Buffer {
  const encoding = encodingOf(options)
  return encoding === null ? bytes : bytes.toString(encoding)
}

export type GivenBytes = string | NodeJS.ArrayBufferView

export function bytesOf(content: GivenBytes, encoding?: BufferEncoding | null): Uint8Array {
  if (typeof content === 'string') return Buffer.from(content, encoding ?? 'utf8')
  return new Uint8Array(content.buffer, content.byteOffset, content.byteLength)
}

/** Those of libuv. */
const direntTypes: Readonly<Record<string, number>> = {
  file: 1,
  directory: 2,
  link: 3,
  socket: 5,
} satisfies Record<Entry['kind'], number>

type MakeDirent = new (name: string, type: number | undefined, parentPath: string) => import('node:fs').Dirent

export function direntOf(name: string, kind: string, parentPath: string): import('node:fs').Dirent {
  return new (Dirent as unknown as MakeDirent)(name, direntTypes[kind], parentPath)
}

export function statfsOf(disk: SimDisk, path: string): object {
  const bsize = 4096
  return { type: 0xef53, bsize, frsize: bsize, ...disk.statfs(path) }
}

/** The times of utimes() are seconds or dates. */
export const msOf = (time: number | string | Date) =>
  time instanceof Date ? time.getTime() : Number(time) * 1000

export type GivenMode = number | string | null | undefined

export const modeOf = (mode: GivenMode) =>
  typeof mode === 'string' ? parseInt(mode, 8) : (mode ?? undefined)
