import { describe, expect, test } from 'vitest'
import {
  acceptingConnack,
  refusingConnack,
  type AcceptedConnect,
  type ConnackTerms,
} from '../../../../src/ingest/broker/version5/connack-packet.ts'
import { property } from '../../../support/mqtt5-packets.ts'
import { readServerPacket, type ServerPacket } from '../../../support/mqtt5-reader.ts'

const terms: ConnackTerms = {
  inFlightMax: 1000,
  packetBytesMax: 1_048_576,
  topicAliasesMax: 10,
  retain: 'refuse',
}

const always = new Map<number, unknown>([
  [property.receiveMaximum, 1000],
  [property.retainAvailable, 0],
  [property.maximumPacketSize, 1_048_576],
  [property.topicAliasMaximum, 10],
  [property.wildcardsAvailable, 0],
  [property.subscriptionIdsAvailable, 0],
  [property.sharedAvailable, 0],
])

describe('CONNACK that accepts', () => {
  test('[MQTT-3.2.2-9] names what the gateway takes, and no Maximum QoS', () => {
    const packet = readAccepting({})
    expect(packet).toMatchObject({ type: 'connack', code: 0, sessionPresent: false })
    expect(packet.properties).toEqual(always)
  })

  test('says where a session is present', () => {
    expect(readAccepting({ sessionPresent: true }).sessionPresent).toBe(true)
  })

  test('names no Retain Available where retained messages are accepted', () => {
    const bytes = acceptingConnack(accepted({}), { ...terms, retain: 'accept' })
    expect(read(bytes).properties.has(property.retainAvailable)).toBe(false)
  })

  test('[MQTT-3.2.2-16] names the client id that the client got, and none that it gave', () => {
    const packet = readAccepting({ request: { needsClientId: true }, clientId: 'auto-1' })
    expect(packet.properties.get(property.assignedClientId)).toBe('auto-1')
  })

  test('[MQTT-3.2.2-21] names expiry and keepalive only where they are not what was asked for', () => {
    const asked = { sessionExpiryMs: Infinity, keepaliveMs: 0 }
    const packet = readAccepting({
      request: asked,
      sessionExpiryMs: 3600_000,
      keepaliveMs: 60_000,
    })
    expect(packet.properties.get(property.sessionExpiry)).toBe(3600)
    expect(packet.properties.get(property.serverKeepAlive)).toBe(60)
    const same = { sessionExpiryMs: 3600_000, keepaliveMs: 60_000 }
    expect(readAccepting({ request: same, ...same }).properties).toEqual(always)
  })

  test('[MQTT-3.1.2-24] is none where the client takes no packet of its size', () => {
    const size = readAccepting({}).bytes
    const exact = accepted({ request: { packetBytesMax: size } })
    const less = accepted({ request: { packetBytesMax: size - 1 } })
    expect(acceptingConnack(exact, terms)).toHaveLength(size)
    expect(acceptingConnack(less, terms)).toBeNull()
    expect(size).toBeLessThan(64)
  })
})

describe('CONNACK that refuses', () => {
  test('[MQTT-3.2.2-6] has no session present, and names the reason by its key', () => {
    const packet = read(refusingConnack(0x86, 'bad_credentials', null))
    expect(packet).toMatchObject({ type: 'connack', code: 0x86, sessionPresent: false })
    expect(packet.properties).toEqual(new Map([[property.reasonString, 'bad_credentials']]))
  })

  test('[MQTT-3.2.2-19] leaves the reason out where it does not fit', () => {
    const bytes = refusingConnack(0x86, 'bad_credentials', { packetBytesMax: 20, wantsReasons: true })
    expect(bytes).toEqual(Buffer.from([0x20, 3, 0, 0x86, 0]))
  })

  test('leaves the reason out where the client wants none', () => {
    const request = { packetBytesMax: Infinity, wantsReasons: false }
    expect(refusingConnack(0x86, 'bad_credentials', request)).toHaveLength(5)
  })

  test('[MQTT-3.1.2-24] is none where the client takes no packet of five bytes', () => {
    const request = { packetBytesMax: 4, wantsReasons: true }
    expect(refusingConnack(0x86, 'bad_credentials', request)).toBeNull()
    expect(refusingConnack(0x86, 'bad_credentials', { ...request, packetBytesMax: 5 })).toHaveLength(5)
  })
})

type Changes = {
  request?: Partial<AcceptedConnect['request']>
  sessionExpiryMs?: number
  keepaliveMs?: number
  sessionPresent?: boolean
  clientId?: string
}

function accepted({ request, ...rest }: Changes): AcceptedConnect {
  return {
    request: {
      cleanStart: true,
      needsClientId: false,
      sessionExpiryMs: 0,
      keepaliveMs: 0,
      receiveMaximum: 65_535,
      topicAliasMaximum: 0,
      packetBytesMax: Infinity,
      wantsReasons: true,
      userProperties: null,
      will: null,
      ...request,
    },
    sessionExpiryMs: 0,
    keepaliveMs: 0,
    sessionPresent: false,
    clientId: 'truck',
    ...rest,
  }
}

function readAccepting(changes: Changes): ServerPacket {
  return read(acceptingConnack(accepted(changes), terms))
}

function read(bytes: Buffer | null): ServerPacket {
  const packet = readServerPacket(bytes ?? Buffer.alloc(0))
  if (packet === null) throw new Error('there is no whole packet')
  return packet
}
