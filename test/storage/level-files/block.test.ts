import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readBlock, readStored } from '../../../src/storage/level-files/table-reader/block.ts'
import { unsnappy } from '../../../src/storage/level-files/table-reader/snappy.ts'
import { tableOf, valueOf } from '../../support/level-tables.ts'

const decoded = (hex: string) => {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  return unsnappy(bytes, 0, bytes.length)?.toString('latin1') ?? null
}

test('Snappy: literals and copies are decoded', () => {
  expect(decoded('00')).toBe('')
  expect(decoded('03 08 616263')).toBe('abc')
  // A copy of four bytes at a distance of one, two and four bytes.
  expect(decoded('06 04 6162 01 02')).toBe('ababab')
  expect(decoded('06 04 6162 0e 0200')).toBe('ababab')
  expect(decoded('06 04 6162 0f 02000000')).toBe('ababab')
  // A literal whose length is in a byte of its own.
  expect(decoded(`41 f0 40 ${'61'.repeat(65)}`)).toBe('a'.repeat(65))
})

test.each([
  ['no length', ''],
  ['a length without an end', 'ffffffffff01'],
  ['fewer bytes than its length', '04 08 616263'],
  ['more bytes than its length', '02 08 616263'],
  ['a literal behind the end', '05 10 616263'],
  ['a distance of zero', '06 04 6162 01 00'],
  ['a distance before the start', '06 04 6162 01 03'],
  ['half a copy', '06 04 6162 01'],
  ['a length that no such source can have', 'ffffff7f 00 61'],
])('Snappy: %s is malformed', (_, hex) => {
  expect(decoded(hex)).toBeNull()
})

test('any bytes are decoded or malformed, and no read fails', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (array) => {
      const bytes = Buffer.from(array)
      const decodedBytes = unsnappy(bytes, 0, bytes.length)
      expect(decodedBytes?.length ?? 0).toBeLessThan(200 * 22)
      expect(readBlock(bytes)?.length ?? 0).toBeLessThan(200)
    }),
  )
})

test('a changed byte of a table gives other entries or none, and no read fails', async () => {
  const { bytes } = await tableOf(Array.from({ length: 200 }, (_, n) => valueOf(n, 20 + n, true)))
  for (let at = 0; at < 3000; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 0xff
    for (const type of [0, 1]) {
      changed[3000] = type
      expect(readStored(changed, 0, 3000)?.length ?? 0).toBeLessThan(3000)
    }
  }
})
