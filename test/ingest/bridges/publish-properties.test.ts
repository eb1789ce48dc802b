import { generate, parser, type IPublishPacket } from 'mqtt-packet'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { propertiesIn } from '../../../src/ingest/bridges/publish-properties.ts'

/** The properties of a packet that a broker writes, and what is behind them. */
function written(properties: IPublishPacket['properties'], payload = 'abc'): Buffer {
  const options = { cmd: 'publish', topic: 't', payload, qos: 0, dup: false, retain: false } as const
  const packet = generate({ ...options, ...(properties && { properties }) }, { protocolVersion: 5 })
  let body = 1
  while (packet[body]! >= 0x80) body += 1
  return packet.subarray(body + 1 + 2 + 1)
}

const name = (byte: number) => Buffer.from([byte])
const text = (value: string | Buffer) => {
  const bytes = Buffer.from(value as string)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])
}
const section = (...parts: Buffer[]) => {
  const bytes = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([bytes.length]), bytes, Buffer.from('payload')])
}

describe('the properties of a PUBLISH from a broker', () => {
  test.each([
    ['a text that is not UTF-8', section(name(0x26), text('vin'), text(Buffer.from([0x56, 0xff])))],
    ['a null character', section(name(0x26), text('vin'), text('V\0'))],
    ['a property twice', section(name(0x03), text('a'), name(0x03), text('b'))],
    ['a response topic with a wildcard', section(name(0x08), text('a/#'))],
  ])('with %s do not end the connection', (_what, bytes) => {
    const found = propertiesIn(bytes)
    expect(bytes.subarray(found?.size).toString()).toBe('payload')
    expect(found?.user ?? found?.others).not.toBeNull()
  })

  test('are read as far as they are there, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const found = propertiesIn(Buffer.from(bytes))
        expect(found === null || found.size <= bytes.length).toBe(true)
      }),
    )
  })

  test('are those that mqtt-packet reads', () => {
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
    const word = fc
      .string({ minLength: 1, maxLength: 20 })
      .filter((value) => !value.includes('\0') && value.isWellFormed())
    const properties = fc.record({
      contentType: optional(word),
      messageExpiryInterval: optional(fc.nat()),
      userProperties: optional(fc.dictionary(word, word, { minKeys: 1, maxKeys: 5, noNullPrototype: true })),
    })
    fc.assert(
      fc.property(properties, (given) => {
        const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
        const bytes = written(set)
        const head = Buffer.from([0x30, 3 + bytes.length, 0, 1, 0x74])
        let read: IPublishPacket | null = null
        const reader = parser({ protocolVersion: 5 })
        reader.on('packet', (packet) => (read = packet as IPublishPacket))
        if (bytes.length < 120) reader.parse(Buffer.concat([head, bytes]))
        const theirs = (read as IPublishPacket | null)?.properties
        const ours = propertiesIn(bytes)
        expect(ours).not.toBeNull()
        if (theirs === undefined) return
        expect(ours?.others?.contentType).toBe(theirs.contentType)
        expect(ours?.others?.expiryS).toBe(theirs.messageExpiryInterval)
        expect({ ...ours?.user }).toEqual({ ...theirs.userProperties })
      }),
      { numRuns: 300 },
    )
  })
})
