import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { decodeIotm } from '../../../src/mapping/encodings/iotm.ts'

const { elements } = rowsBeside(import.meta.filename) as { elements: Record<string, unknown> }

/** With its sum behind it. */
function sealed(bytes: Buffer): Buffer {
  const sum = bytes.reduce((total, byte) => (total + byte) & 0xff, 0)
  return Buffer.concat([bytes, Buffer.from([sum])])
}

function part(type: number, value: Buffer): Buffer {
  const head = Buffer.from([type, 0, 0])
  head.writeUInt16LE(value.length, 1)
  return Buffer.concat([head, value])
}

const message = (...parts: Buffer[]) => sealed(Buffer.concat([Buffer.from([2]), ...parts]))

const imei = Buffer.alloc(8)
imei.writeBigUInt64LE(864_636_060_000_001n)

const time = Buffer.alloc(4)
time.writeUInt32LE(1_767_085_201)

const position = Buffer.alloc(19)
position.writeUInt8(14, 0)
position.writeUInt16LE(0xd000, 1)
position.writeFloatLE(51.25, 3)
position.writeFloatLE(-9.5, 7)
position.writeUInt16LE(64, 11)
position.writeUInt8(8, 13)
position.writeUInt8(11, 14)
position.writeUInt16LE(271, 15)
position.writeInt16LE(-3, 17)

const record = (...elements: Buffer[]) => part(1, Buffer.concat([time, ...elements]))

describe('a message of an IOTM tracker', () => {
  test('contains the device, its records and its events', () => {
    const event = part(3, Buffer.concat([time, Buffer.from([1, 46, 0, 0])]))
    const bytes = message(part(2, imei), record(position), event, record(Buffer.from('006d00', 'hex')))
    expect(decodeIotm(bytes)).toEqual({
      kind: 'value',
      value: {
        version: 2,
        imei: '864636060000001',
        records: [
          {
            ts: 1_767_085_201,
            latitude: 51.25,
            longitude: -9.5,
            speed: 64,
            hdop: 0.8,
            satellites: 11,
            course: 271,
            altitude: -3,
            io: {},
          },
          { ts: 1_767_085_201, io: { '006d': false } },
        ],
        events: [{ ts: 1_767_085_201, function: 1, event: 46 }],
      },
    })
  })

  test.each(Object.entries(elements))('reads the element %s as %j', (hex, value) => {
    const [read] = recordsIn(message(record(Buffer.from(hex, 'hex'))))
    expect(read).toEqual({ ts: 1_767_085_201, io: { '0000': value } })
  })

  test.each([
    ['nothing', Buffer.alloc(0), 'empty'],
    ['one byte', Buffer.from([2]), 'TRUNCATED'],
    [
      'a sum that is wrong',
      Buffer.concat([message(record(position)).subarray(0, -1), Buffer.from([0])]),
      'BAD_CHECKSUM',
    ],
    ['a part that is cut short', sealed(Buffer.from('02010900aabb', 'hex')), 'TRUNCATED'],
    ['a record without its time', message(part(1, Buffer.from('aabb', 'hex'))), 'TRUNCATED'],
    ['a value that is cut short', message(record(Buffer.from('060000ff', 'hex'))), 'TRUNCATED'],
    ['a text that is cut short', message(record(Buffer.from('20000005', 'hex'))), 'TRUNCATED'],
    ['an element that nobody knows', message(record(Buffer.from('020000', 'hex'))), 'BAD_FRAME'],
    ['too many parts', message(...Array.from({ length: 1001 }, () => part(9, Buffer.alloc(0)))), 'TOO_MANY'],
    ['too many elements', message(record(Buffer.alloc(3003))), 'TOO_MANY'],
  ])('%s is %s', (_, bytes, what) => {
    const decoded = decodeIotm(bytes)
    expect(decoded.kind === 'refused' ? decoded.reason : decoded.kind).toBe(what)
  })
})

function recordsIn(bytes: Buffer): unknown[] {
  const decoded = decodeIotm(bytes)
  if (decoded.kind !== 'value') throw new Error(JSON.stringify(decoded))
  return (decoded.value as { records: unknown[] }).records
}
