import { expect, test } from 'vitest'
import {
  crcAdd,
  crcOf,
  crcStart,
  maskCrc,
  maskedCrc,
  unmaskCrc,
} from '../../../src/storage/level-files/crc32c.ts'

const crc = (bytes: Buffer) => crcOf(crcAdd(crcStart, bytes, 0, bytes.length))

test('the checksum of the nine digits is the published check value of CRC-32C', () => {
  expect(crc(Buffer.from('123456789'))).toBe(0xe3069283)
})

test('the test vectors of RFC 3720 B.4 give their checksums', () => {
  expect(crc(Buffer.alloc(32))).toBe(0x8a9136aa)
  expect(crc(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43)
  expect(crc(Buffer.from(Array.from({ length: 32 }, (_, n) => n)))).toBe(0x46dd794e)
})

test('a checksum in parts is the checksum of the whole', () => {
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, n) => (n * 7919) & 255))
  for (const cut of [0, 1, 7, 8, 9, 500, 999, 1000]) {
    const state = crcAdd(crcAdd(crcStart, bytes, 0, cut), bytes, cut, bytes.length)
    expect(crcOf(state)).toBe(crc(bytes))
  }
})

test('a masked checksum is another number and comes back', () => {
  for (const one of [0, 1, 0xe3069283, 0xffffffff]) {
    expect(maskCrc(one)).not.toBe(one)
    expect(unmaskCrc(maskCrc(one))).toBe(one)
  }
  expect(unmaskCrc(maskedCrc(Buffer.from('123456789'), 0, 9))).toBe(0xe3069283)
})
