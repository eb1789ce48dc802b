import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { decodeCbor } from '../../../src/mapping/binary-values/cbor.ts'
import { decodeMessagePack } from '../../../src/mapping/binary-values/message-pack.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

const { cbor, message_pack: messagePack } = rowsBeside(import.meta.filename) as Record<
  'cbor' | 'message_pack',
  Record<string, unknown>
>

describe.each([
  ['CBOR', decodeCbor, Object.entries(cbor)],
  ['MessagePack', decodeMessagePack, Object.entries(messagePack)],
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
      Buffer.concat([hex('9a 00011170'), repeated('a0', 70_000)]),
      'TOO_MANY',
    ],
  ])('is not believed: %s', (_what, decode, bytes, reason) => {
    expect(decode(bytes)).toMatchObject({ kind: 'refused', reason })
  })
})
