// file-stats.ts: what stat() says of an inode. Own class: the one of Node warns when a program creates it.

import { blockBytes, type Inode } from './inode.ts'

const { constants } = process.getBuiltinModule('node:fs')

export class FileStats {
  readonly dev: number
  readonly ino: number
  readonly mode: number
  readonly nlink: number
  readonly uid: number
  readonly gid: number
  readonly rdev = 0
  readonly blksize = blockBytes
  readonly size: number
  readonly blocks: number
  readonly atimeMs: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly birthtimeMs: number

  constructor(node: Inode) {
    this.dev = node.dev
    this.ino = node.ino
    this.mode = node.mode | formats[node.kind]
    this.nlink = node.kind === 'directory' ? 2 : node.links
    this.uid = node.uid
    this.gid = node.gid
    this.size = sizeOf(node)
    this.blocks = (Math.ceil(this.size / blockBytes) * blockBytes) / 512
    // The disk is mounted with noatime.
    this.atimeMs = node.birthtimeMs
    this.mtimeMs = node.mtimeMs
    this.ctimeMs = node.ctimeMs
    this.birthtimeMs = node.birthtimeMs
  }

  get atime(): Date {
    return new Date(this.atimeMs)
  }
  get mtime(): Date {
    return new Date(this.mtimeMs)
  }
  get ctime(): Date {
    return new Date(this.ctimeMs)
  }
  get birthtime(): Date {
    return new Date(this.birthtimeMs)
  }

  isFile(): boolean {
    return this.#is(constants.S_IFREG)
  }
  isDirectory(): boolean {
    return this.#is(constants.S_IFDIR)
  }
  isSymbolicLink(): boolean {
    return this.#is(constants.S_IFLNK)
  }
  isSocket(): boolean {
    return this.#is(constants.S_IFSOCK)
  }
  isFIFO(): boolean {
    return false
  }
  isBlockDevice(): boolean {
    return false
  }
  isCharacterDevice(): boolean {
    return false
  }

  #is(format: number): boolean {
    return (this.mode & constants.S_IFMT) === format
  }
}

const formats = {
  directory: constants.S_IFDIR,
  file: constants.S_IFREG,
  link: constants.S_IFLNK,
  socket: constants.S_IFSOCK,
} as const

function sizeOf(node: Inode): number {
  if (node.kind === 'file') return node.body.size
  if (node.kind === 'link') return node.target.length
  return node.kind === 'directory' ? blockBytes : 0
}
