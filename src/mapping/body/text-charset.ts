// text-charset.ts: texts of messages that are not UTF-8.
//
//   a byte order mark   says that a text is UTF-16; it counts before `charset`
//   `charset`           the charset of all other messages of a source
//   neither             each byte that is not UTF-8 becomes U+FFFD. Where nothing reads it, the message is
//                       mapped; else it is refused (damaged-text.ts)

import { isUtf8 } from 'node:buffer'
import { refused } from '../reasons.ts'
import type { Decode, Decoded } from '../types.ts'
import type { BodyLimits } from './body-limits.ts'

/** Names of the WHATWG standard: `latin1` has the signs of windows-1252 too. */
export const charsets = ['latin1', 'utf-16le', 'utf-16be'] as const

export type Charset = (typeof charsets)[number]

/** Decodes a text that is not UTF-8, by the decoder of the same text in UTF-8. */
export function decodeWithCharset(bytes: Buffer, decode: Decode, limits?: BodyLimits): Decoded {
  const charset = markedCharset(bytes)
  if (charset !== null) return decode(utf8From(bytes, charset), limits)
  const text = bytes.toString('utf8')
  const decoded = decode(Buffer.from(text), limits)
  const badByteAt = firstBadByte(bytes, text) + 1
  if (decoded.kind !== 'value')
    return refused('NOT_UTF8', `The message is not UTF-8 from byte ${badByteAt} on.`)
  return { ...decoded, badByteAt, omitted: ['text|not UTF-8'] }
}

/** The text in UTF-8, for a source with `charset`. */
export function utf8Of(bytes: Buffer, charset: Charset): Buffer {
  const marked = markedCharset(bytes)
  if (marked === null && hasUtf8Mark(bytes) && isUtf8(bytes)) return bytes
  return utf8From(bytes, marked ?? charset)
}

export function markedCharset(bytes: Buffer): Charset | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : null
}

function hasUtf8Mark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function utf8From(bytes: Buffer, charset: Charset): Buffer {
  return Buffer.from(new TextDecoder(charset).decode(bytes))
}

/** The first byte that the decoded text replaces by a replacement character. */
function firstBadByte(bytes: Buffer, text: string): number {
  let good = 0
  for (let start = 0; ;) {
    const at = text.indexOf('\uFFFD', start)
    if (at === -1) return good
    good += Buffer.byteLength(text.slice(start, at))
    if (bytes[good] !== 0xef || bytes[good + 1] !== 0xbf || bytes[good + 2] !== 0xbd) return good
    good += 3
    start = at + 1
  }
}
