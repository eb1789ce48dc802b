// plain-text.ts: messages that are one text.
//
//   text     { value: "..." }   the text, without a byte order mark and NULs at the end
//   scalar   { value: "..." }   also without the blanks around it; { value: null } where nothing is left

import type { Decoded } from '../types.ts'

export function decodeText(bytes: Buffer): Decoded {
  const value = plainTextIn(bytes)
  return value === '' ? { kind: 'empty' } : { kind: 'value', value: { value } }
}

export function decodeScalar(bytes: Buffer): Decoded {
  const value = plainTextIn(bytes).trim()
  return { kind: 'value', value: { value: value === '' ? null : value } }
}

/** UTF-8 without a byte order mark and the NULs at the end. */
export function plainTextIn(bytes: Buffer): string {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end -= 1
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  return end <= start ? '' : bytes.toString('utf8', start, end)
}
