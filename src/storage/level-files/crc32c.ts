// crc32c.ts: the checksum of LevelDB's files: CRC-32C (Castagnoli), stored masked. zlib has only CRC-32.
//
// Eight bytes a step with eight tables, about 800 MB/s: a start may have to read many tables.

const polynomial = 0x82f63b78
const maskDelta = 0xa282ead8

const tables = makeTables()
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
]

/** Adds one byte: `crcByByte[(state ^ byte) & 255] ^ (state >>> 8)`. */
export const crcByByte = t0

/** The state before the first byte. */
export const crcStart = -1

/** Adds the bytes from `start` up to `end` to a state. crcOf() makes the checksum of a state. */
export function crcAdd(state: number, bytes: Uint8Array, start: number, end: number): number {
  let crc = state
  let at = start
  for (; at + 8 <= end; at += 8) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    crc =
      t7[crc & 255]! ^
      t6[(crc >>> 8) & 255]! ^
      t5[(crc >>> 16) & 255]! ^
      t4[crc >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!
  }
  for (; at < end; at += 1) crc = t0[(crc ^ bytes[at]!) & 255]! ^ (crc >>> 8)
  return crc
}

/** The CRC-32C of a state, as an unsigned number. */
export function crcOf(state: number): number {
  return ~state >>> 0
}

/** The CRC-32C of the bytes from `start` up to `end`, as LevelDB stores it. */
export function maskedCrc(bytes: Uint8Array, start: number, end: number): number {
  return maskCrc(crcOf(crcAdd(crcStart, bytes, start, end)))
}

/** LevelDB stores checksums masked, because its logs hold bytes that contain checksums themselves. */
export function maskCrc(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + maskDelta) >>> 0
}

export function unmaskCrc(masked: number): number {
  const rotated = (masked - maskDelta) >>> 0
  return ((rotated >>> 17) | (rotated << 15)) >>> 0
}

function makeTables(): Int32Array[] {
  const first = new Int32Array(256)
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    first[byte] = crc
  }
  const made = [first]
  for (let index = 1; index < 8; index += 1) {
    const before = made[index - 1]!
    made.push(before.map((crc) => first[crc & 255]! ^ (crc >>> 8)))
  }
  return made
}
