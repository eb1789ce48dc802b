import { readFileSync } from 'node:fs'
import path from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeTeltonika } from '../../../src/mapping/encodings/teltonika.ts'
import {
  tcpFrame,
  teltonikaBody,
  udpFrame,
  type AvlRecord,
  type Codec,
} from '../../support/teltonika-frame.ts'
import type { Decoded } from '../../../src/mapping/types.ts'

const thirdParty = process.env['TELEMETRY_TEST_DATA']

const truck: AvlRecord = {
  ts: 1_767_085_201_000,
  priority: 1,
  latitude: 513_127_451,
  longitude: -94_797_103,
  altitude: -12,
  angle: 93,
  satellites: 14,
  speed: 64,
  event: 240,
  elements: [
    { id: 239, bytes: 1, value: 1n },
    { id: 66, bytes: 2, value: 24_118n },
    { id: 216, bytes: 4, value: 4_000_000_001n },
    { id: 207, bytes: 8, value: 9_007_199_254_740_993n },
  ],
}

const codecs: readonly Codec[] = [0x08, 0x8e, 0x10]
const frame = (codec: Codec = 0x08, records: readonly AvlRecord[] = [truck]) =>
  tcpFrame(teltonikaBody(codec, records))

function recordsIn(decoded: Decoded): readonly Record<string, unknown>[] {
  if (decoded.kind !== 'value') throw new Error(JSON.stringify(decoded))
  return (decoded.value as { records: readonly Record<string, unknown>[] }).records
}

function refusalOf(bytes: Buffer): string {
  const decoded = decodeTeltonika(bytes)
  return decoded.kind === 'refused' ? `${decoded.reason}: ${decoded.detail}` : decoded.kind
}

describe('a frame of a tracker', () => {
  test('gives its records, with exact degrees and elements by number', () => {
    expect(decodeTeltonika(frame())).toEqual({
      kind: 'value',
      value: {
        codec: 8,
        records: [
          {
            ts: 1_767_085_201_000,
            priority: 1,
            latitude: 51.3127451,
            longitude: -9.4797103,
            altitude: -12,
            angle: 93,
            satellites: 14,
            speed: 64,
            event: 240,
            io: { 239: 1, 66: 24_118, 216: 4_000_000_001, 207: '9007199254740993' },
          },
        ],
      },
    })
  })

  test('in Codec 16 contains the cause of each record', () => {
    const [record] = recordsIn(decodeTeltonika(frame(0x10, [{ ...truck, generation: 5 }])))
    expect(record).toMatchObject({ generation: 5, event: 240 })
  })

  test('in Codec 8 Extended gives elements of any length, as hexadecimal', () => {
    const elements = [
      { id: 11_317, raw: Buffer.from([0x01, 0xaf, 0x00]) },
      { id: 10_800, raw: Buffer.alloc(0) },
    ]
    const [record] = recordsIn(decodeTeltonika(frame(0x8e, [{ ...truck, elements }])))
    expect(record).toMatchObject({ io: { 11317: '0x01af00', 10800: '' } })
  })

  test('keeps its records in their order, newest first as the unit sends them', () => {
    const records = [truck, { ...truck, ts: truck.ts - 5000 }, { ...truck, ts: truck.ts - 26_000_000_000 }]
    expect(recordsIn(decodeTeltonika(frame(0x8e, records))).map(({ ts }) => ts)).toEqual(
      records.map(({ ts }) => ts),
    )
  })

  test('is also read without its header, with or without the checksum', () => {
    const body = teltonikaBody(0x8e, [truck])
    const whole = decodeTeltonika(tcpFrame(body))
    expect(decodeTeltonika(body)).toEqual(whole)
    expect(decodeTeltonika(tcpFrame(body).subarray(8))).toEqual(whole)
  })

  test('over UDP contains the device identifier', () => {
    const decoded = decodeTeltonika(udpFrame(teltonikaBody(0x08, [truck]), '864636060000001'))
    expect(decoded).toMatchObject({ value: { imei: '864636060000001', codec: 8 } })
    expect(recordsIn(decoded)).toEqual(recordsIn(decodeTeltonika(frame())))
  })

  test('without a record gives an empty list', () => {
    expect(recordsIn(decodeTeltonika(frame(0x08, [])))).toEqual([])
  })
})

describe('data of a tracker other than frames', () => {
  test.each([
    ['a login', Buffer.concat([Buffer.from([0, 15]), Buffer.from('864636060000001')]), 'login'],
    ['a keep-alive', Buffer.from([0xff]), 'keep-alive'],
    ['an answer to a command', tcpFrame(Buffer.from('0c0106000000074f4b20646f6e6501', 'hex')), 'command'],
  ])('%s is ignored', (_, bytes, reason) => {
    expect(decodeTeltonika(bytes)).toEqual({ kind: 'ignored', reason })
  })

  test('zero bytes are an empty message', () => {
    expect(decodeTeltonika(Buffer.alloc(0))).toEqual({ kind: 'empty' })
  })
})

describe('a damaged frame is refused as a whole', () => {
  const good = frame(0x8e, [truck, truck])
  const body = teltonikaBody(0x8e, [truck, truck])

  test('a change of any byte is detected', () => {
    for (let at = 8; at < good.length; at += 1) {
      const damaged = Buffer.from(good)
      damaged[at] = (damaged[at] ?? 0) ^ 0x10
      expect(refusalOf(damaged)).toContain('BAD_CHECKSUM: The checksum is 0x')
    }
  })

  test.each([4, 7, 8, 9, 40, good.length - 5, good.length - 1])('cut after %i bytes', (length) => {
    expect(refusalOf(good.subarray(0, length))).toContain('TRUNCATED: The frame')
  })

  test('without a header and cut anywhere, it is never read as a shorter frame', () => {
    for (let length = 1; length < body.length; length += 1)
      expect(refusalOf(body.subarray(0, length))).toBe('TRUNCATED: The frame ends in the middle of a record.')
  })

  test.each([
    ['something behind it', Buffer.concat([good, Buffer.from([0])]), 'BAD_FRAME: The frame has 1 byte after'],
    ['two frames in one message', Buffer.concat([good, good]), `${good.length} bytes after its end`],
    [
      'something behind a bare one',
      Buffer.concat([body, Buffer.alloc(4)]),
      'BAD_FRAME: The frame has 4 bytes',
    ],
    [
      'counts that differ',
      Buffer.from(body).fill(3, body.length - 1),
      'counts 2 records at its start and 3 at its end',
    ],
    ['another codec', tcpFrame(Buffer.from([0x07, 0, 0])), 'in codec 0x07, not in Codec 8, 8 Extended'],
    ['a text', Buffer.from('{"state":{}}'), 'begins with 0x7b; frames of Codec 8'],
    ['zeros', Buffer.alloc(64), 'BAD_FRAME: The frame has 52 bytes after its end'],
    ['a length of zero', Buffer.alloc(12), 'TRUNCATED: The frame ends in the middle of a record'],
    ['a length without end', Buffer.from('00000000ffffffff08', 'hex'), '4294967298 bytes shorter'],
    [
      'something behind the records',
      tcpFrame(Buffer.concat([body, Buffer.from([9])])),
      'BAD_FRAME: The frame has 1',
    ],
  ])('%s', (_, bytes, sentence) => {
    expect(refusalOf(bytes)).toContain(sentence)
  })
})

describe('for any tracker', () => {
  const byte = fc.integer({ min: 0, max: 255 })
  const word = fc.integer({ min: 0, max: 65_535 })
  const signed = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })

  function recordFor(codec: Codec) {
    const id = codec === 0x08 ? byte : word
    const numbers = fc.oneof(
      ...([1, 2, 4, 8] as const).map((bytes) =>
        fc.record({ id, bytes: fc.constant(bytes), value: fc.bigInt(0n, 2n ** BigInt(bytes * 8) - 1n) }),
      ),
    )
    const raws = fc.record({ id, raw: fc.uint8Array({ maxLength: 40 }).map((raw) => Buffer.from(raw)) })
    const element = codec === 0x8e ? fc.oneof(numbers, raws) : numbers
    return fc.record({
      ts: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      priority: byte,
      latitude: signed,
      longitude: signed,
      altitude: fc.integer({ min: -32_768, max: 32_767 }),
      angle: word,
      satellites: byte,
      speed: word,
      event: id,
      generation: byte,
      elements: fc.uniqueArray(element, { maxLength: 12, selector: (one) => one.id }),
    })
  }

  test.each(codecs)('a frame of codec %i is read back unchanged', (codec) => {
    fc.assert(
      fc.property(fc.array(recordFor(codec), { maxLength: 6 }), (records) => {
        const expected = records.map(({ elements, latitude, longitude, generation, ...rest }) => ({
          ...rest,
          latitude: Number(`${latitude}e-7`),
          longitude: Number(`${longitude}e-7`),
          ...(codec === 0x10 && { generation }),
          io: Object.fromEntries(
            elements.map((one) => {
              if ('raw' in one) return [one.id, one.raw.length === 0 ? '' : `0x${one.raw.toString('hex')}`]
              return [one.id, one.value > Number.MAX_SAFE_INTEGER ? String(one.value) : Number(one.value)]
            }),
          ),
        }))
        expect(recordsIn(decodeTeltonika(frame(codec, records)))).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })
})

describe.skipIf(thirdParty === undefined)('recorded frames (TELEMETRY_TEST_DATA)', () => {
  type Recorded = {
    hex: string
    codec: number
    crcOk: boolean | null
    records: Record<string, unknown>[]
  }
  const file = path.join(thirdParty ?? '', 'data', 'teltonika-frames.ndjson')
  const read = () =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Recorded)

  test('each is read as by another decoder', () => {
    let records = 0
    for (const recorded of read().filter(({ crcOk }) => crcOk === true)) {
      const found = recordsIn(decodeTeltonika(Buffer.from(recorded.hex, 'hex')))
      expect(found).toHaveLength(recorded.records.length)
      for (const [index, one] of recorded.records.entries()) {
        expect({ ...found[index], io: asRecorded(found[index]?.['io']) }).toEqual({
          ts: one['ts'],
          priority: one['prio'],
          latitude: one['lat'],
          longitude: one['lon'],
          altitude: one['alt'],
          angle: one['ang'],
          satellites: one['sat'],
          speed: one['sp'],
          event: one['evt'],
          generation: one['gen'],
          io: one['io'],
        })
        records += 1
      }
    }
    expect(records).toBeGreaterThan(60)
  })

  test('damaged and cut frames are refused', () => {
    const damaged = read().filter(({ crcOk }) => crcOk !== true)
    for (const { hex } of damaged)
      expect(refusalOf(Buffer.from(hex, 'hex'))).toMatch(/^(?:BAD_CHECKSUM|TRUNCATED):/)
    expect(damaged.length).toBeGreaterThan(0)
  })

  /** The other decoder rounded what is beyond 2^53, and wrote bytes without 0x. */
  function asRecorded(io: unknown) {
    const entries = Object.entries(io as Record<string, number | string>)
    return Object.fromEntries(
      entries.map(([id, value]) => {
        if (typeof value !== 'string') return [id, value]
        return [id, /^\d{16,20}$/.test(value) ? Number(value) : value.replace(/^0x/, '')]
      }),
    )
  }
})
