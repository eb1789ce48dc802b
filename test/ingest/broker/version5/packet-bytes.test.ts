import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { envelopeOf, isEnvelope, type Message } from '../../../../src/domain/message.ts'
import { createMessagePropertyReader } from '../../../../src/ingest/broker/packets/message-properties.ts'
import { textEnd } from '../../../../src/ingest/broker/packets/packet-bytes.ts'
import { clientProperties } from '../../../../src/ingest/broker/packets/property-rules.ts'
import { messageFrom } from '../../../../src/ingest/remap/kept-message.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { fuzzProperties } from '../../../support/mqtt5-fuzz.ts'
import { fuzzLayouts } from '../../../support/mqtt5-layout-fuzz.ts'
import {
  property,
  propertiesOf,
  text,
  uint32,
  userProperty,
  type Part,
} from '../../../support/mqtt5-packets.ts'

// The encodings of MQTT 5 against plain models, and packets against the parser of mqtt-packet.

test('[MQTT5-1.5.4-1] [MQTT5-1.5.4-2] a text is valid where it is UTF-8 without null, as a strict decoder says', () => {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 4 }),
    fc.integer({ min: 1, max: 0x10_ffff }).map((one) => Buffer.from(String.fromCodePoint(one))),
    fc.constantFrom([0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc0, 0x80], [0xef, 0xbb, 0xbf], [0]),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 4 }), fc.uint8Array({ maxLength: 4 }), (pieces, behind) => {
      const content = Buffer.concat(pieces.map((one) => Buffer.from(one)))
      const bytes = Buffer.concat([text(content), behind])
      const end = 2 + content.length
      let isValid = !content.includes(0)
      try {
        decoder.decode(content)
      } catch {
        isValid = false
      }
      const found = textEnd(bytes, 0, bytes.length)
      expect(found < 0 ? null : found).toBe(isValid ? end : null)
      expect(textEnd(bytes, 0, end - 1)).toBeLessThan(0)
    }),
    { numRuns: 300 },
  )
})

test('properties of a message are the same after it was kept, whatever they are', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((one) => !one.includes('\0'))
  const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })
  const sent = fc.record({
    user: fc.array(fc.tuple(fc.oneof(name, fc.constant('__proto__')), name), { maxLength: 6 }),
    contentType: maybe(name),
    responseTopic: maybe(name.filter((one) => !/[+#]/.test(one))),
    correlation: maybe(fc.uint8Array({ maxLength: 20 })),
    isText: maybe(fc.boolean()),
    expiryS: maybe(fc.integer({ min: 0, max: 0xffff_ffff })),
  })
  const reader = createMessagePropertyReader(clientProperties.publish)
  fc.assert(
    fc.property(sent, ({ user, contentType, responseTopic, correlation, isText, expiryS }) => {
      const parts: Part[] = user.map(([key, value]) => userProperty(key, value))
      if (contentType !== undefined) parts.push(property.contentType, text(contentType))
      if (responseTopic !== undefined) parts.push(property.responseTopic, text(responseTopic))
      if (correlation !== undefined) parts.push(property.correlationData, text(Buffer.from(correlation)))
      if (isText !== undefined) parts.push(property.payloadFormat, isText ? 1 : 0)
      if (expiryS !== undefined) parts.push(property.messageExpiry, uint32(expiryS))
      const section = propertiesOf(...parts)
      expect(reader.read(section, 0, section.length)).toBe(section.length)
      const message: Message = {
        ...messageOf('{}'),
        userProperties: reader.user(),
        properties: reader.properties(),
      }
      // As on the disk and in exported dead letters.
      const kept: unknown = JSON.parse(JSON.stringify(envelopeOf(message, null)))
      expect(isEnvelope(kept)).toBe(true)
      if (!isEnvelope(kept)) return
      const { userProperties, properties } = messageFrom(kept)
      expect(Object.entries(userProperties ?? {})).toEqual(Object.entries(Object.fromEntries(user)))
      const expected = {
        ...(contentType !== undefined && { contentType }),
        ...(responseTopic !== undefined && { responseTopic }),
        ...(correlation !== undefined && { correlation: Buffer.from(correlation).toString('base64') }),
        ...(isText === true && { isText }),
        ...(expiryS !== undefined && { expiryS }),
      }
      expect(properties ?? {}).toEqual(expected)
    }),
    { numRuns: 300 },
  )
})

// `node test/hostile/run.ts --properties 1000000` makes more.
test('messages with random properties are read like mqtt-packet reads them, or are faults', () => {
  const { taken, faults, compared } = fuzzProperties(5000, 7)
  expect([taken > 1000, compared > 1000, faults > 500]).toEqual([true, true, true])
})

test('other packets are judged by their own bytes, and the valid ones are read like mqtt-packet reads them', () => {
  const { valid, faults, compared } = fuzzLayouts(5000, 7)
  expect([valid > 500, faults > 500]).toEqual([true, true])
  for (const kind of ['connect', 'subscribe', 'unsubscribe', 'disconnect', 'pubrel', 'puback'])
    expect([kind, compared[kind]! > 100]).toEqual([kind, true])
})
