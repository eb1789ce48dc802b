// body-kinds.ts: what the bytes of a message look like, and the option that reads them: for the dead letter
// of a message that its encoding refused. In most cases the first bytes say it.

import { isUtf8 } from 'node:buffer'
import { decodeCbor } from '../binary-values/cbor.ts'
import { decodeMessagePack } from '../binary-values/message-pack.ts'
import { isRecord } from '../path/path-eval.ts'
import type { Decoded } from '../types.ts'

type Kind = { looksLike: string; option: string; holds(bytes: Buffer): boolean }

/** In this order. `option`: as it is written in the config; '' where none reads it. */
const kinds: readonly Kind[] = [
  { looksLike: 'gzip', option: 'compression: gzip', holds: isGzip },
  { looksLike: 'zlib', option: 'compression: zlib', holds: isZlib },
  { looksLike: 'Zstandard', option: '', holds: (bytes) => startsWith(bytes, [0x28, 0xb5, 0x2f, 0xfd]) },
  { looksLike: 'LZ4', option: '', holds: (bytes) => startsWith(bytes, [0x04, 0x22, 0x4d, 0x18]) },
  { looksLike: 'UTF-16', option: 'encoding: json', holds: (bytes) => markedCharset(bytes) !== null },
  { looksLike: 'UTF-16', option: 'charset: utf-16le', holds: (bytes) => isUtf16(bytes, 0) },
  { looksLike: 'UTF-16', option: 'charset: utf-16be', holds: (bytes) => isUtf16(bytes, 1) },
  {
    looksLike: 'MessagePack',
    option: 'encoding: msgpack',
    holds: (bytes) => holdsRecords(bytes, decodeMessagePack),
  },
  { looksLike: 'CBOR', option: 'encoding: cbor', holds: (bytes) => holdsRecords(bytes, decodeCbor) },
  { looksLike: 'text in Latin-1', option: 'charset: latin1', holds: isLatin1 },
  { looksLike: 'XML', option: '', holds: (bytes) => firstSign(bytes) === '<' },
  { looksLike: 'JSON', option: 'encoding: json', holds: (bytes) => '{['.includes(firstSign(bytes)) },
  { looksLike: 'NMEA 0183', option: 'encoding: nmea', holds: isNmea },
  { looksLike: 'a frame of Teltonika', option: 'encoding: teltonika', holds: isTeltonika },
]

type Options = { encoding: string; charset: string | undefined; isText: boolean }

/** A sentence; null where the bytes look like nothing, or like what the options say. */
export function kindHint(bytes: Buffer, { encoding, charset, isText }: Options): string | null {
  const found = kinds.find(({ option, holds }) => (isText || !option.startsWith('charset')) && holds(bytes))
  if (found === undefined || found.option === `encoding: ${encoding}`) return null
  if (found.option.startsWith('charset') && charset !== undefined) return null
  const act = found.option === '' ? 'which no option reads' : `which \`${found.option}\` of the source reads`
  return `It looks like ${found.looksLike}, ${act}.`
}

export function isGzip(bytes: Buffer): boolean {
  return startsWith(bytes, [0x1f, 0x8b, 0x08])
}

/** RFC 1950: deflate with a window of up to 32 KiB, and a checksum of the two bytes. */
export function isZlib(bytes: Buffer): boolean {
  const [method = 0, flags = 0] = bytes
  return bytes.length > 2 && (method & 0x0f) === 8 && method >> 4 < 8 && (method * 256 + flags) % 31 === 0
}

function startsWith(bytes: Buffer, start: readonly number[]): boolean {
  return start.every((byte, at) => bytes[at] === byte)
}

/** The first sign that is no blank. */
function firstSign(bytes: Buffer): string {
  return bytes.toString('latin1', 0, 64).replace('\u00EF\u00BB\u00BF', '').trimStart().slice(0, 1) || ' '
}

/** Text in ASCII: each second byte is zero. `lowAt`: the place of the other one in a pair. */
function isUtf16(bytes: Buffer, lowAt: number): boolean {
  if (bytes.length < 4 || bytes.length % 2 !== 0) return false
  const start = bytes.subarray(0, 16)
  return start.every((byte, at) => (at % 2 === lowAt ? byte > 0 && byte < 0x80 : byte === 0))
}

function isNmea(bytes: Buffer): boolean {
  return /^[$!][A-Z]{2,5}[A-Z0-9]*,/.test(bytes.toString('latin1', 0, 16))
}

function isTeltonika(bytes: Buffer): boolean {
  return startsWith(bytes, [0, 0, 0, 0]) && [0x08, 0x8e, 0x10].includes(bytes[8] ?? 0)
}

/** All objects and lists begin with a byte that begins no text in ASCII. */
function holdsRecords(bytes: Buffer, decode: (bytes: Buffer) => Decoded): boolean {
  const decoded = (bytes[0] ?? 0) < 0x80 ? null : decode(bytes)
  if (decoded?.kind !== 'value') return false
  const records: readonly unknown[] = Array.isArray(decoded.value) ? decoded.value : [decoded.value]
  return records.length > 0 && records.every((record) => isRecord(record) && Object.keys(record).length > 0)
}

/**
 * Letters of ASCII and bytes that are not UTF-8, and no control characters but those of texts: around the
 * first byte that is not UTF-8.
 */
function isLatin1(bytes: Buffer): boolean {
  if (isUtf8(bytes)) return false
  const at = firstBadByte(bytes)
  const around = bytes.subarray(Math.max(0, at - 2048), at + 2048)
  if (/[^\0-\x7f\uFFFD]/.test(around.toString())) return false
  return !/[^\0\t\n\r -\u{FF}]/u.test(around.toString('latin1'))
}

// Texts of messages that are not UTF-8.
//
//   a byte order mark   says that a text is UTF-16; it counts before `charset`
//   `charset`           the charset of all other messages of a source
//   neither             each byte that is not UTF-8 becomes U+FFFD. Where nothing reads it, the message is
//                       mapped; else it is refused (damaged-text.ts)

/** Names of the WHATWG standard: `latin1` has the signs of windows-1252 too. */
export const charsets = ['latin1', 'utf-16le', 'utf-16be'] as const

export type Charset = (typeof charsets)[number]

/** A text in UTF-8. Without a charset, bytes of it that are not UTF-8 stay as they are. */
export function utf8Of(bytes: Buffer, charset: Charset | undefined): Buffer {
  const known = markedCharset(bytes) ?? (isMarkedUtf8(bytes) ? undefined : charset)
  return known === undefined ? bytes : Buffer.from(new TextDecoder(known).decode(bytes))
}

function markedCharset(bytes: Buffer): Charset | null {
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
