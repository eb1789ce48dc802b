// body.ts: what is done with the bytes of a message before its encoding reads them: `compression`, `charset`.
// The entry file of the folder.
//
//   bytes -> unpacked -> text in UTF-8, unless the encoding is binary -> the encoding
//
// A message that does not begin like gzip or zlib is read as it is, since devices that learn to compress do
// so one by one. What is refused says which other options would read it (body-kinds.ts).

import { isAscii, isUtf8 } from 'node:buffer'
import { gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import { messageOf } from '../../std/gateway-error.ts'
import { bounded } from '../../std/quote.ts'
import { refused } from '../reasons.ts'
import type { Decode, Decoded } from '../types.ts'
import { tooManyBytes, type BodyLimits } from './body-limits.ts'
import { isGzip, isZlib, kindHint, firstBadByte, utf8Of, type Charset } from './body-kinds.ts'

export const compressions = ['gzip', 'zlib', 'deflate'] as const

export type Compression = (typeof compressions)[number]

type Refused = ReturnType<typeof refused>

export type BodyOptions = {
  encoding: string
  isText: boolean
  compression: Compression | undefined
  charset: Charset | undefined
  limits: BodyLimits
}

/** `decode` with the options of a source. */
export function compileBody(decode: Decode, options: BodyOptions): Decode {
  const { compression, isText, limits } = options
  return (bytes) => {
    if (bytes.length > limits.bytesMax) return tooManyBytes(limits)
    const plain = compression === undefined ? bytes : plainOf(bytes, compression, limits)
    if (!Buffer.isBuffer(plain)) return plain
    const decoded = isText ? decodedText(plain, decode, options) : decode(plain, limits)
    if (decoded.kind !== 'refused' || decoded.reason === 'TOO_MANY') return decoded
    const hint = kindHint(plain, options)
    return hint === null ? decoded : refused(decoded.reason, `${decoded.detail} ${hint}`)
  }
}

function decodedText(bytes: Buffer, decode: Decode, { charset, limits }: BodyOptions): Decoded {
  const text = utf8Of(bytes, charset)
  const decoded = decode(text, limits)
  if (!isUtf8(text)) {
    const badByteAt = firstBadByte(text) + 1
    if (decoded.kind === 'value') return { ...decoded, badByteAt, omitted: ['text|not UTF-8'] }
    return refused('NOT_UTF8', `The message is not UTF-8 from byte ${badByteAt} on.`)
  }
  const isDoubtful = charset === 'latin1' && text !== bytes && decoded.kind === 'value' && isOtherUtf8(bytes)
  return isDoubtful ? { ...decoded, flagged: 'text|UTF-8, read as latin1' } : decoded
}

/** Texts of Latin-1 with letters beyond ASCII are UTF-8 by chance only, once in many thousands. */
function isOtherUtf8(bytes: Buffer): boolean {
  return !isAscii(bytes) && isUtf8(bytes)
}

function plainOf(bytes: Buffer, compression: Compression, limits: BodyLimits): Buffer | Refused {
  const isPacked =
    compression === 'gzip' ? isGzip(bytes) : compression === 'zlib' ? isZlib(bytes) : bytes.length > 0
  return isPacked ? unpacked(bytes, compression, limits) : bytes
}

/** Whatever the header says of the size. */
export function unpacked(
  bytes: Buffer,
  compression: Compression,
  { unpackedBytesMax: bytesMax }: BodyLimits,
): Buffer | Refused {
  const unpack = compression === 'gzip' ? gunzipSync : compression === 'zlib' ? inflateSync : inflateRawSync
  try {
    return unpack(bytes, { maxOutputLength: bytesMax })
  } catch (error) {
    if (error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE')
      return refused(
        'TOO_LARGE',
        `The message has more than ${bytesMax} bytes when it is unpacked (max_unpacked_bytes of the source).`,
      )
    return refused('BAD_FRAME', `The message cannot be unpacked: ${bounded(messageOf(error), 200)}.`)
  }
}
