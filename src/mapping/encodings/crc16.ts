// crc16.ts: CRC-16/IBM, also called CRC-16/ARC (polynomial 0x8005 reflected, start 0): the checksum of frames
// of Teltonika.

const reflectedPolynomial = 0xa001

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit += 1)
    remainder = (remainder & 1) === 1 ? (remainder >>> 1) ^ reflectedPolynomial : remainder >>> 1
  return remainder
})

/** Of the bytes from `start` to before `end`, which must not be beyond the end. */
export function crc16(bytes: Buffer, start: number, end: number): number {
  let crc = 0
  for (let at = start; at < end; at += 1) crc = (crc >>> 8) ^ (table[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0)
  return crc
}
