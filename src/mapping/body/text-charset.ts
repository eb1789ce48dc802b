// text-charset.ts: texts of messages that are not UTF-8.
//
//   a byte order mark   says that a text is UTF-16; it counts before `charset`
//   `charset`           the charset of all other messages of a source
//   neither             each byte that is not UTF-8 becomes U+FFFD. Where nothing reads it, the message is
//                       mapped; else it is refused (damaged-text.ts)

import { isUtf8 } from 'node:buffer'

/** Names of the WHATWG standard: `latin1` has the signs of windows-1252 too. */
export const charsets = ['latin1', 'utf-16le', 'utf-16be'] as const

export type Charset = (typeof charsets)[number]

/** A text in UTF-8. Without a charset, bytes of it that are not UTF-8 stay as they are. */
export function utf8Of(bytes: Buffer, charset: Charset | undefined): Buffer {
  const known = markedCharset(bytes) ?? (isMarkedUtf8(bytes) ? undefined : charset)
  return known === undefined ? bytes : Buffer.from(new TextDecoder(known).decode(bytes))
}

export function markedCharset(bytes: Buffer): Charset | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : null
}

function isMarkedUtf8(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf && isUtf8(bytes)
}

/** The place of the first byte that is not UTF-8, in bytes that have one: behind whole characters. */
export function firstBadByte(bytes: Buffer): number {
  let good = 0
  for (const step of [65_536, 256, 1])
    for (let end: number | undefined = good; end !== undefined;) {
      good = end
      end = [0, 1, 2, 3].map((more) => good + step + more).find((at) => isUtf8(bytes.subarray(good, at)))
    }
  return good
}
