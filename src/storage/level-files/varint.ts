// varint.ts: the numbers and byte strings of LevelDB's formats, read within strict bounds and written.
//
//   varint   7 bits a byte, the lowest first; the top bit says that another byte follows
//   string   its length as a varint, then its bytes
//
// Reads up to the end of the buffer. Malformed input is a result (-1 or null), never an error. Sequences and
// file numbers have up to 64 bits in the format; those beyond 2 ** 53 occur in no real file and are
// malformed.

export type ByteReader = {
  atEnd(): boolean
  /** The next byte; -1 at the end. */
  byte(): number
  /** -1 where it is malformed. */
  varint(): number
  /** A view of the bytes, not a copy; null where it is malformed. */
  string(): Buffer | null
}

export function createByteReader(bytes: Buffer, start = 0): ByteReader {
  let at = start
  return {
    atEnd() {
      return at >= bytes.length
    },
    byte: () => bytes[at++] ?? -1,
    varint,
    string() {
      const length = varint()
      if (length < 0 || length > bytes.length - at) return null
      at += length
      return bytes.subarray(at - length, at)
    },
  }

  function varint(): number {
    let value = 0
    let weight = 1
    for (let count = 0; count < 10; count += 1) {
      const byte = bytes[at++]
      if (byte === undefined) return -1
      value += (byte & 127) * weight
      if (value > Number.MAX_SAFE_INTEGER) return -1
      if (byte < 128) return value
      weight *= 128
    }
    return -1
  }
}

export function encodeVarint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  while (rest >= 128) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

export function encodeString(bytes: Buffer): Buffer {
  return Buffer.concat([encodeVarint(bytes.length), bytes])
}
