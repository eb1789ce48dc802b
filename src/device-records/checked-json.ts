// checked-json.ts: what device records store: JSON, and behind it a line with its checksum. A bit that flips
// in the middle of a text mostly leaves JSON that can be read, and says something else.
//
// Builds before this one wrote no checksum: what has none is read as it is.

import { crc32 } from 'node:zlib'

const newline = 0x0a
const checkBytes = 9

export function encodeChecked(list: readonly unknown[]): Buffer {
  const text = JSON.stringify(list)
  return Buffer.from(`${text}\n${checksumOf(Buffer.from(text))}`)
}

/** Null for what is damaged, or no list. */
export function decodeChecked(bytes: Buffer): readonly unknown[] | null {
  const end = bytes.length - checkBytes
  const isChecked = end >= 0 && bytes[end] === newline
  const text = isChecked ? bytes.subarray(0, end) : bytes
  if (isChecked && bytes.toString('latin1', end + 1) !== checksumOf(text)) return null
  try {
    const value: unknown = JSON.parse(text.toString())
    return Array.isArray(value) ? value : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function checksumOf(text: Buffer): string {
  return crc32(text).toString(16).padStart(8, '0')
}
