// text-bytes.ts: bytes as text, in messages and in what decoders of binary messages make of them. Undefined
// for a text that is not of the notation from its first to its last character: the decoders of Node stop at
// other characters, or skip them.

import { quote } from '../../std/quote.ts'

/**
 * Bytes that a binary message has as a value: `0x0102`, '' for none. With 0x they are no number: 0102 would
 * be read as 102, and 1e05 as 100000.
 */
export function hexOf(bytes: Buffer): string {
  return bytes.length === 0 ? '' : `0x${bytes.toString('hex')}`
}

/** What reads bytes where a number is meant, as a sentence; undefined for any other value. */
export function hexHint(value: unknown): string | undefined {
  if (typeof value !== 'string' || !/^0x(?:[\da-f]{2})+$/i.test(value)) return undefined
  const found = `${quote(value, 40)} is hexadecimal`
  return `${found}: \`expr\` with \`hex(...)\` reads a whole number of it, \`extract\` with \`as: hex\` what its \`layout\` says.`
}

const hex = /^(?:0x)?[ :-]*(?:[\da-f]{2}[ :-]*)*$/i
/** `F5 37 00`, `0xF53700`, `f5:37:00`. */
export function bytesFromHex(text: string): Buffer | undefined {
  if (!hex.test(text)) return undefined
  return Buffer.from(text.replace(/^0x/i, '').replaceAll(/[ :-]/g, ''), 'hex')
}

/** RFC 4648, both alphabets, with or without padding and line ends. */
export function bytesFromBase64(text: string): Buffer | undefined {
  const plain = text.replaceAll(/[\n\r ]/g, '')
  if (!/^[\w+/-]*=*$/.test(plain)) return undefined
  return plain.replace(/=+$/, '').length % 4 === 1 ? undefined : Buffer.from(plain, 'base64')
}

/** The value of a hexadecimal digit; -1 for anything else. */
export function hexDigit(unit: number): number {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  const lower = unit | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
