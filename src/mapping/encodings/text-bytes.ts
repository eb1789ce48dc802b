// text-bytes.ts: bytes that are written as text in a message. Undefined for a text that is not of the
// notation from its first to its last character: the decoders of Node stop at other characters, or skip them.

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
