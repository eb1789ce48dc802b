import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { envelopeOf, isEnvelope, type Message } from '../../../../src/domain/message.ts'
import { createMessagePropertyReader } from '../../../../src/ingest/broker/version5/message-properties.ts'
import { integerAt, integerSize, textEnd } from '../../../../src/ingest/broker/version5/packet-bytes.ts'
import { clientProperties } from '../../../../src/ingest/broker/version5/property-rules.ts'
import { takePublishes5, type PublishState } from '../../../../src/ingest/broker/version5/publish-packets.ts'
import { createReceiveQuota } from '../../../../src/ingest/broker/version5/receive-quota.ts'
import { createTopicAliases } from '../../../../src/ingest/broker/version5/topic-aliases.ts'
import { createVersion5Counts } from '../../../../src/ingest/broker/version5/version5.ts'
import { messageFrom } from '../../../../src/ingest/remap/kept-message.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import {
  property,
  propertiesOf,
  publishPacket,
  text,
  uint16,
  uint32,
  userProperty,
  variableInteger,
  type Part,
} from '../../../support/mqtt5-packets.ts'

// What MQTT 5 keeps for a connection, and its encodings, compared with plain models over random sequences.

function stateOf({ inFlightMax = 60_000, topicAliasesMax = 5 } = {}): PublishState {
  return {
    receivedBytesMax: 100_000,
    quota: createReceiveQuota(inFlightMax),
    aliases: createTopicAliases(topicAliasesMax),
    counts: createVersion5Counts(),
    fault: null,
  }
}

function topicsIn(portion: Buffer, state: PublishState): string[] {
  const topics: string[] = []
  const message: Message = { ...messageOf(''), userProperties: null, properties: null }
  const takePublish = () => topics.push(message.topic) > 0
  takePublishes5(portion, state, message, { takePublish, takePing: () => true })
  return topics
}

test('[MQTT-3.3.2-12] topic aliases are a map from number to topic, over any sequence of messages', () => {
  const step = fc.record({
    topic: fc.constantFrom('', 'a', 'b', 'fleet/7/\u00e4', 'x'.repeat(300)),
    alias: fc.option(fc.integer({ min: 0, max: 6 }), { nil: null }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const model = new Map<number, string>()
      const expected: string[] = []
      let code: number | null = null
      for (const { topic, alias } of steps) {
        if (alias === 0 || (alias ?? 0) > 5) code = 0x94
        else if (alias === null && topic === '') code = 0x82
        else if (topic === '' && !model.has(alias!)) code = 0x94
        if (code !== null) break
        if (alias !== null && topic !== '') model.set(alias, topic)
        expected.push(topic === '' ? model.get(alias!)! : topic)
      }
      const packets = steps.map(({ topic, alias }) =>
        publishPacket({ topic, properties: alias === null ? [] : [property.topicAlias, uint16(alias)] }),
      )
      const state = stateOf()
      expect(topicsIn(Buffer.concat(packets), state)).toEqual(expected)
      expect(state.fault?.code ?? null).toBe(code)
    }),
    { numRuns: 300 },
  )
})

test('topics of aliases never take more room than they have, and an alias never keeps an earlier topic', () => {
  const topic = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  const sets = fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), topic), { maxLength: 40 })
  fc.assert(
    fc.property(sets, fc.integer({ min: 0, max: 60 }), (steps, bytesMax) => {
      const aliases = createTopicAliases(6, bytesMax)
      const last = new Map<number, string>()
      for (const [alias, name] of steps) {
        aliases.set(alias, name)
        last.set(alias, name)
        let bytes = 0
        for (const [number, set] of last) {
          const kept = aliases.get(number)
          expect([set, null]).toContain(kept)
          bytes += Buffer.byteLength(kept ?? '')
        }
        expect(bytes).toBeLessThanOrEqual(bytesMax)
        // It is kept wherever it fits beside the others.
        const others = bytes - Buffer.byteLength(aliases.get(alias) ?? '')
        const hasRoom = others + Buffer.byteLength(name) <= bytesMax
        expect(aliases.get(alias)).toBe(hasRoom ? name : null)
      }
    }),
    { numRuns: 300 },
  )
})

test('[MQTT-3.3.4-7] the quota counts from 0 to the maximum, and 0x93 comes exactly beyond it', () => {
  const steps = fc.array(fc.constantFrom('qos0', 'qos1', 'qos2', 'ack'), { maxLength: 60 })
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), (all, inFlightMax) => {
      const state = stateOf({ inFlightMax })
      let used = 0
      const found: unknown[] = []
      const expected: unknown[] = []
      for (const [index, step] of all.entries()) {
        const qos = step === 'ack' ? null : Number(step.slice(3))
        const isTooMany = qos !== null && qos > 0 && used === inFlightMax
        if (qos === null) {
          state.quota.free()
          used = Math.max(0, used - 1)
        } else used += qos > 0 ? 1 : 0
        const packet = qos === null ? Buffer.alloc(0) : publishPacket({ qos, messageId: index + 1 })
        found.push([topicsIn(packet, state).length, state.quota.used(), state.fault?.reason ?? null])
        expected.push([qos === null || isTooMany ? 0 : 1, used, isTooMany ? 'receive_maximum' : null])
        if (isTooMany) break
      }
      expect(found).toEqual(expected)
    }),
    { numRuns: 300 },
  )
})

test('[MQTT-1.5.5-1] a number is read in its shortest form only, and never behind its end', () => {
  const number = fc.integer({ min: 0, max: 268_435_455 })
  fc.assert(
    fc.property(number, fc.uint8Array({ maxLength: 5 }), (value, behind) => {
      const encoded = variableInteger(value)
      const bytes = Buffer.concat([encoded, behind])
      expect([integerSize(bytes, 0, bytes.length), integerAt(bytes, 0)]).toEqual([encoded.length, value])
      for (let end = 0; end < encoded.length; end += 1) expect(integerSize(bytes, 0, end)).toBe(0)
      const long = Buffer.from([...encoded, 0])
      long[encoded.length - 1]! |= 0x80
      expect(integerSize(long, 0, long.length)).toBe(0)
    }),
    { numRuns: 300 },
  )
})

test('[MQTT-1.5.4-1] [MQTT-1.5.4-2] a text is valid where it is UTF-8 without null, as a strict decoder says', () => {
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
