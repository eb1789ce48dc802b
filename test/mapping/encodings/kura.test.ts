import { gzipSync } from 'node:zlib'
import protobuf from 'protobufjs/light.js'
import { describe, expect, test } from 'vitest'
import { decodeKura } from '../../../src/mapping/encodings/kura.ts'

const { Writer } = protobuf

/** The bytes of one field: written by hand, so that no schema of the decoder can hide its own mistake. */
const field = (id: number, wire: number, write: (writer: protobuf.Writer) => unknown): Buffer => {
  const writer = Writer.create().uint32(id * 8 + wire)
  write(writer)
  return Buffer.from(writer.finish())
}
const varint = (id: number, value: number | string) => field(id, 0, (writer) => writer.int64(value))
const double = (id: number, value: number) => field(id, 1, (writer) => writer.double(value))
const float = (id: number, value: number) => field(id, 5, (writer) => writer.float(value))
const bytes = (id: number, value: Buffer | string) =>
  field(id, 2, (writer) => writer.bytes(Buffer.from(value as string)))

const metric = (name: string, type: number, value: Buffer) =>
  bytes(5000, Buffer.concat([bytes(1, name), varint(2, type), value]))

const time = 1_767_085_201_000
const position = bytes(
  2,
  Buffer.concat([double(1, 46.94809), double(2, -7.5), double(6, 15.5), varint(7, time), varint(9, 4)]),
)

function valueIn(message: Buffer): unknown {
  const decoded = decodeKura(message)
  return decoded.kind === 'value' ? decoded.value : decoded
}

const metricsIn = (...metrics: Buffer[]): unknown =>
  (valueIn(Buffer.concat(metrics)) as { metrics?: unknown }).metrics

describe('a payload of Kura', () => {
  const message = Buffer.concat([
    varint(1, time),
    position,
    metric('odometer', 0, double(3, 512_340.985)),
    bytes(5001, 'on'),
  ])
  const value = {
    timestamp: time,
    position: { latitude: 46.94809, longitude: -7.5, speed: 15.5, timestamp: time, status: 4 },
    metrics: { odometer: 512_340.985 },
    body: { text: 'on' },
  }

  test('has its time, position, metrics and body, plain and packed', () => {
    expect(valueIn(message)).toEqual(value)
    expect(valueIn(gzipSync(message))).toEqual(value)
  })

  test.each([
    [0, double(3, 1e-7), 1e-7],
    [0, double(3, Number.NaN), undefined],
    [1, float(4, 12.3), 12.3],
    [1, float(4, Number.NEGATIVE_INFINITY), undefined],
    [2, varint(5, '9007199254740993'), '9007199254740993'],
    [2, varint(5, -4371), -4371],
    [3, varint(6, -1), -1],
    [3, varint(6, 0), 0],
    [4, varint(7, 0), false],
    [5, bytes(8, ''), ''],
    [5, bytes(8, 'Zürich'), 'Zürich'],
    [6, bytes(9, Buffer.from('00ff', 'hex')), '0x00ff'],
    // A value in another field than its type names is none.
    [2, double(3, 1), undefined],
    [7, double(3, 1), undefined],
    [-1, double(3, 1), undefined],
  ])('of the type %i: %#', (type, written, read) => {
    expect(metricsIn(metric('value', type, written))).toEqual({ value: read })
  })

  test('keeps any name of a metric, and the last of two with one name', () => {
    const metrics = metricsIn(
      metric('__proto__', 3, varint(6, 1)),
      metric('constructor', 3, varint(6, 2)),
      metric('a', 3, varint(6, 3)),
      metric('a', 3, varint(6, 4)),
    )
    expect(Object.entries(metrics as object)).toEqual([
      ['__proto__', 1],
      ['constructor', 2],
      ['a', 4],
    ])
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  test('has bytes that are no text as hexadecimal digits, and skips fields that are not known', () => {
    expect(
      valueIn(Buffer.concat([bytes(5001, Buffer.from([0xff])), bytes(3, 'x'), varint(4999, 7)])),
    ).toEqual({
      body: { hex: '0xff' },
    })
  })
})

describe('what is refused', () => {
  const whole = Buffer.concat([varint(1, time), position, metric('a', 0, double(3, 1.5))])

  test.each([
    ['cut short', whole.subarray(0, -1), 'TRUNCATED'],
    ['another format', bytes(77, 'hello'), 'BAD_FRAME'],
    ['a wire type that does not exist', Buffer.from([0x0f]), 'BAD_FRAME'],
    ['JSON', Buffer.from('{"SENTON":1}'), 'BAD_FRAME'],
    ['JSON that is packed', gzipSync('{"SENTON":1}'), 'BAD_FRAME'],
    ['gzip that was cut short', gzipSync(whole).subarray(0, -4), 'BAD_FRAME'],
    ['gzip with another text behind it', Buffer.concat([gzipSync(whole), Buffer.from('x')]), 'BAD_FRAME'],
    ['gzip in gzip', gzipSync(gzipSync(whole)), 'BAD_FRAME'],
    ['gzip of 256 MiB', gzipSync(Buffer.alloc(256 * 1024 * 1024)), 'TOO_LARGE'],
    ['more metrics than are read', bytes(5000, '').toString('latin1').repeat(10_001), 'TOO_MANY'],
  ])('%s', (_what, message, reason) => {
    const decoded = decodeKura(typeof message === 'string' ? Buffer.from(message, 'latin1') : message)
    expect(decoded).toMatchObject({ kind: 'refused', reason })
  })

  test('an empty message is empty', () => {
    expect(decodeKura(Buffer.alloc(0))).toEqual({ kind: 'empty' })
  })

  // Groups inside groups are skipped by recursion.
  test('groups that never end are refused', () => {
    for (const levels of [10, 1000, 1_000_000])
      expect(decodeKura(Buffer.alloc(levels, 0x1b))).toMatchObject({ kind: 'refused' })
  })
})
