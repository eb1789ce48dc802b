import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeCbor } from '../../../src/mapping/binary-values/cbor.ts'
import { decodeMessagePack } from '../../../src/mapping/binary-values/message-pack.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** Examples of RFC 8949, appendix A, and what devices send. */
const cbor: readonly [hex: string, value: unknown][] = [
  ['17', 23],
  ['18 64', 100],
  ['19 03e8', 1000],
  ['1a 000f4240', 1_000_000],
  ['1b 000000e8d4a51000', 1_000_000_000_000],
  ['1b ffffffffffffffff', '18446744073709551615'],
  ['1b 112210f47de98115', '1234567890123456789'],
  ['3b ffffffffffffffff', '-18446744073709551616'],
  ['3b 001fffffffffffff', '-9007199254740992'],
  ['20', -1],
  ['39 03e7', -1000],
  ['c2 49 010000000000000000', '18446744073709551616'],
  ['c3 49 010000000000000000', '-18446744073709551617'],
  ['f9 3e00', 1.5],
  ['f9 c400', -4],
  ['f9 0001', 5.960464477539063e-8],
  ['f9 7c00', null],
  ['fa 47c35000', 100_000],
  // A float of 32 bits is its shortest decimal.
  ['fa 41449ba6', 12.288],
  ['fb 3ff199999999999a', 1.1],
  ['fb c010666666666666', -4.1],
  ['fa 7fc00000', null],
  ['fb fff0000000000000', null],
  ['f4', false],
  ['f5', true],
  ['f6', null],
  ['f7', null],
  ['f0', null],
  ['f8 ff', null],
  ['c0 74 323031332d30332d32315432303a30343a30305a', '2013-03-21T20:04:00Z'],
  ['c1 1a 514b67b0', 1_363_896_240],
  ['44 01020304', '01020304'],
  ['64 f0908591', '𐅑'],
  ['83 01 82 02 03 82 04 05', [1, [2, 3], [4, 5]]],
  ['a2 01 02 03 04', { 1: 2, 3: 4 }],
  // SenML has negative numbers as keys.
  ['a2 21 63 6c6174 02 fb 404a000000000000', { '-2': 'lat', 2: 52 }],
  ['bf 61 61 01 61 62 9f 02 03 ff ff', { a: 1, b: [2, 3] }],
  ['7f 65 7374726561 64 6d696e67 ff', 'streaming'],
  ['7f 41 00 ff', 'refused'],
  ['d9 d9f7 a1 61 61 01', { a: 1 }],
]

const messagePack: readonly [hex: string, value: unknown][] = [
  ['7f', 127],
  ['e0', -32],
  ['ff', -1],
  ['cc ff', 255],
  ['cd ffff', 65_535],
  ['ce ffffffff', 4_294_967_295],
  ['cf 112210f47de98115', '1234567890123456789'],
  ['cf 001fffffffffffff', 9_007_199_254_740_991],
  ['d0 80', -128],
  ['d1 8000', -32_768],
  ['d2 80000000', -2_147_483_648],
  ['d3 eeddef0b82167eeb', '-1234567890123456789'],
  ['ca 41449ba6', 12.288],
  ['cb 3ff199999999999a', 1.1],
  ['cb 7ff8000000000000', null],
  ['c0', null],
  ['c2', false],
  ['c3', true],
  ['c1', 'refused'],
  ['a3 616263', 'abc'],
  ['d9 03 616263', 'abc'],
  ['da 0003 616263', 'abc'],
  ['db 00000003 616263', 'abc'],
  ['c4 02 0aff', '0aff'],
  ['c5 0002 0aff', '0aff'],
  ['93 01 02 03', [1, 2, 3]],
  ['dc 0002 01 02', [1, 2]],
  ['dd 00000002 01 02', [1, 2]],
  ['82 a1 61 01 a1 62 c0', { a: 1, b: null }],
  ['de 0001 a1 61 01', { a: 1 }],
  ['df 00000001 a1 61 01', { a: 1 }],
  ['81 05 06', { 5: 6 }],
  // Times: 32 bits of seconds, with nanoseconds, and before 1970.
  ['d6 ff 692b4a57', 1_764_444_759],
  ['d7 ff 77359400 692b4a57', '1764444759.500000000'],
  ['c7 0c ff 1dcd6500 00000000692b4a57', '1764444759.500000000'],
  ['c7 0c ff 00000000 ffffffffffffffff', -1],
  ['d4 01 10', '10'],
  ['c7 03 02 010203', '010203'],
]

describe.each([
  ['CBOR', decodeCbor, cbor],
  ['MessagePack', decodeMessagePack, messagePack],
] as const)('%s', (_format, decode, examples) => {
  test.each(examples)('%s is %j', (bytes, value) => {
    const decoded = decode(hex(bytes))
    expect(decoded.kind === 'value' ? decoded.value : decoded.kind).toEqual(value)
  })

  test('that is cut short anywhere is refused', () => {
    const whole = examples.filter(([, value]) => value !== 'refused')
    for (const [bytes] of whole)
      for (let end = 1; end < hex(bytes).length; end += 1)
        expect(decode(hex(bytes).subarray(0, end))).toMatchObject({ kind: 'refused' })
  })

  test('with bytes behind its end is refused, with the place', () => {
    expect(decode(hex('01 02'))).toMatchObject({
      reason: 'BAD_FRAME',
      detail: expect.stringContaining('has bytes behind its end, at byte 1.'),
    })
  })

  test('of any bytes is refused or read', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(['value', 'empty', 'refused']).toContain(decode(Buffer.from(bytes)).kind)
      }),
      { numRuns: 20_000 },
    )
  })

  test('keeps a key of every name', () => {
    const key = [...Buffer.from('__proto__')]
    const head = decode === decodeCbor ? [0xa1, 0x69] : [0x81, 0xa9]
    const decoded = decode(Buffer.from([...head, ...key, 1]))
    expect(Object.entries(decoded.kind === 'value' ? (decoded.value as object) : {})).toEqual([
      ['__proto__', 1],
    ])
  })
})

describe('what a few bytes claim', () => {
  const repeated = (bytes: string, count: number) =>
    Buffer.concat(Array.from({ length: count }, () => hex(bytes)))

  // Each list says that it has 80,000 elements: believed, they would take 640 KB for every five bytes.
  test.each([
    ['lists of 80,000 in MessagePack', decodeMessagePack, repeated('dd 00013880', 16_000), 'TOO_DEEP'],
    ['lists of 80,000 in CBOR', decodeCbor, repeated('9a 00013880', 16_000), 'TOO_DEEP'],
    ['lists without end in CBOR', decodeCbor, repeated('9f', 80_000), 'TOO_DEEP'],
    ['tags of tags in CBOR', decodeCbor, repeated('c1', 80_000), 'TOO_DEEP'],
    ['a list of 4 billion', decodeMessagePack, hex('dd ffffffff 01'), 'TRUNCATED'],
    ['an object of 2^64', decodeCbor, hex('bb ffffffffffffffff 01'), 'TRUNCATED'],
    ['a text of 4 GB', decodeMessagePack, hex('db ffffffff 61'), 'TRUNCATED'],
    [
      'more values than are read',
      decodeCbor,
      Buffer.concat([hex('9a 0000ea60'), repeated('a0', 60_000)]),
      'TOO_MANY',
    ],
  ])('is not believed: %s', (_what, decode, bytes, reason) => {
    expect(decode(bytes)).toMatchObject({ kind: 'refused', reason })
  })
})
