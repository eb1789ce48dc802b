// text-bytes.ts: bytes that are written as text in a message. Undefined for a text that is not of the
// notation from its first to its last character: the decoders of Node stop at other characters, or skip them.

/** `F5 37 00`, `0xF53700`, `f5:37:00`. */
export function bytesFromHex(text: string): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(text.length >> 1)
  let count = 0
  let at = text.charCodeAt(0) === 0x30 && (text.charCodeAt(1) | 0x20) === 0x78 ? 2 : 0
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === 0x20 || unit === 0x3a || unit === 0x2d) {
      at += 1
      continue
    }
    const high = hexDigit(unit)
    const low = hexDigit(text.charCodeAt(at + 1))
    if (high < 0 || low < 0) return undefined
    bytes[count] = high * 16 + low
    count += 1
    at += 2
  }
  return bytes.subarray(0, count)
}

/** The value of a hexadecimal digit; -1 for anything else. */
export function hexDigit(unit: number): number {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  const lower = unit | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** RFC 4648, both alphabets, with or without padding and line ends. */
export function bytesFromBase64(text: string): Buffer | undefined {
  let digits = 0
  let padded = false
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === 0x0a || unit === 0x0d || unit === 0x20) continue
    if (unit === 0x3d) padded = true
    else if (padded || !isBase64(unit)) return undefined
    else digits += 1
  }
  return digits % 4 === 1 ? undefined : Buffer.from(text, 'base64')
}

function isBase64(unit: number): boolean {
  const lower = unit | 0x20
  return (
    (lower >= 0x61 && lower <= 0x7a) ||
    (unit >= 0x30 && unit <= 0x39) ||
    unit === 0x2b ||
    unit === 0x2f ||
    unit === 0x2d ||
    unit === 0x5f
  )
}
