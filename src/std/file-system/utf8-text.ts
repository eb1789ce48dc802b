// utf8-text.ts: files that must be UTF-8. What is not would be read as U+FFFD, and a password with it
// would be another one.

import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { createBoundedReader } from './regular-file.ts'

export class NotUtf8Error extends Error {
  readonly line: number
  readonly column: number
  /** With U+FFFD in place of what is not UTF-8. */
  readonly text: string

  constructor(bytes: Buffer, firstLine = 1) {
    super()
    const isWide = seemsUtf16(bytes)
    const { line, column } = isWide ? { line: 1, column: 1 } : firstBadPlace(bytes)
    this.line = firstLine + line - 1
    this.column = column
    this.message = isWide
      ? 'The file is UTF-16: save it as UTF-8'
      : `The file is not UTF-8 at line ${this.line}, column ${column}: save it as UTF-8`
    this.text = bytes.toString()
  }
}

/** As createBoundedReader. Without a byte order mark. Rejects with NotUtf8Error, too. */
export function createBoundedUtf8Reader(): (path: string) => Promise<string> {
  const read = createBoundedReader()
  return async (path) => utf8Text(await read(path))
}

/** Of a command: also of a pipe. Without a byte order mark. Rejects with NotUtf8Error. */
export async function readUtf8(path: string): Promise<string> {
  return utf8Text(await readFile(path))
}

/** Without a byte order mark. Throws NotUtf8Error. `firstLine`: of the bytes in their file. */
export function utf8Text(bytes: Buffer, firstLine = 1): string {
  if (!isUtf8(bytes) || seemsUtf16(bytes)) throw new NotUtf8Error(bytes, firstLine)
  return bytes.toString().replace(/^\ufeff/, '')
}

/** With a byte order mark, or beginning with a character of ASCII. */
function seemsUtf16([first, second]: Buffer): boolean {
  if (first === undefined || second === undefined) return false
  return (first ^ second) === 1 ? first >= 0xfe : (first === 0) !== (second === 0)
}

/** Of bytes that are not UTF-8; from 1, the column in characters. */
function firstBadPlace(bytes: Buffer): { line: number; column: number } {
  let line = 1
  let start = 0
  for (;;) {
    const end = bytes.indexOf(0x0a, start)
    const own = bytes.subarray(start, end === -1 ? undefined : end)
    if (!isUtf8(own) || end === -1) return { line, column: soundStart(own).length + 1 }
    start = end + 1
    line += 1
  }
}

/** A character has at most four bytes. */
function soundStart(line: Buffer): string {
  let sound = 0
  for (let end = 1; end <= line.length && end - sound <= 4; end += 1)
    if (isUtf8(line.subarray(sound, end))) sound = end
  return line.toString('utf8', 0, sound)
}
