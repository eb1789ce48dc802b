// uuid.ts: reads a UUID without a regular expression, because each payload has at least one.

const nibbles = new Uint8Array(128).fill(255)
for (let value = 0; value < 16; value += 1) {
  const digit = value.toString(16)
  nibbles[digit.charCodeAt(0)] = value
  nibbles[digit.toUpperCase().charCodeAt(0)] = value
}

const dash = 45

/** Writes the 16 bytes of `text` to `words` as four numbers; false where it is not a UUID. */
export function parseUuid(text: string, words: Uint32Array): boolean {
  if (text.length !== 36) return false
  let word = 0
  let digits = 0
  for (let index = 0; index < 36; index += 1) {
    const code = text.charCodeAt(index)
    if (index === 8 || index === 13 || index === 18 || index === 23) {
      if (code !== dash) return false
      continue
    }
    const nibble = code < 128 ? (nibbles[code] ?? 255) : 255
    if (nibble === 255) return false
    word = (word << 4) | nibble
    digits += 1
    if (digits % 8 === 0) words[digits / 8 - 1] = word
  }
  return true
}

const scratch = new Uint32Array(4)

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && parseUuid(value, scratch)
}
