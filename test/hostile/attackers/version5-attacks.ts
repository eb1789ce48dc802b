// version5-attacks.ts: attackers with what only MQTT 5 has: aliases, properties, the receive maximum, expiries, delays,
// AUTH, and DISCONNECT with properties. Each needs a target of version 5.

import type { Socket } from 'node:net'
import {
  bytesOf,
  connectPacket,
  disconnectPacket,
  packetOf,
  property,
  propertiesOf,
  publishPacket,
  subscribePacket,
  text,
  uint16,
  uint32,
  userProperty,
  variableInteger,
} from '../../support/mqtt5-packets.ts'
import { repeated, type Attack, type AttackKit } from './attack-kit.ts'

const connections = 8
const mib = 1024 * 1024
const topic = 'telemetry/v1/truck-7'
const payload = JSON.stringify({ ts: Date.now(), gps: { lat: 1, lon: 2 } })
const never = 0xffff_ffff

/** Writes what `make` makes, again and again, on a connection of each index. */
function writes(name: string, does: string, make: (turn: number) => Buffer): Attack {
  return {
    name,
    does,
    needs: 'version5',
    run: (kit) =>
      kit.crowd(connections, async (index, turn) => {
        const socket = await kit.join(`version5-${index}-${turn}`)
        if (socket === null) return kit.pause(20)
        await writeOn(kit, socket, make)
        socket.destroy()
        return undefined
      }),
  }
}

async function writeOn(kit: AttackKit, socket: Socket, make: (turn: number) => Buffer): Promise<void> {
  for (let turn = 0; await kit.write(socket, make(turn)); turn += 1) await new Promise(setImmediate)
}

const aliased = (alias: number, name: string) =>
  publishPacket({ topic: name, payload, qos: 0, properties: [property.topicAlias, uint16(alias)] })

/** Topics of 4 KB, each under another alias: more than the gateway keeps. */
function longAliases(turn: number): Buffer {
  const long = (alias: number) => `telemetry/v1/${String(turn).padEnd(4000, 'x')}${alias}`
  return bytesOf(Array.from({ length: 10 }, (_, alias) => aliased(alias + 1, long(alias))))
}

const sectionOf = (bytes: number): Buffer => {
  const one = userProperty('n'.repeat(100), 'v'.repeat(1000))
  return propertiesOf(repeated(one, Math.floor(bytes / one.length)))
}
/** As large as a packet may be. */
const largeSection = sectionOf(mib - 2000)
const largePublish = publishPacket({ topic, payload, qos: 0, section: largeSection })
const smallProperties = bytesOf(Array.from({ length: 5000 }, (_, number) => userProperty(String(number), '')))
const manyProperties = publishPacket({ topic, payload, qos: 0, properties: [smallProperties] })

/** A PUBLISH whose properties do not end. */
function cutSection(bytes: number): Buffer {
  const head = bytesOf([text(topic), uint16(1), variableInteger(bytes)])
  const one = userProperty('name', 'v'.repeat(1000))
  const some = repeated(one, Math.floor((bytes * 0.9) / one.length))
  return bytesOf([0x32, variableInteger(head.length + bytes), head, some])
}

const qos2Run = bytesOf(
  Array.from({ length: 1500 }, (_, id) => publishPacket({ topic, payload, qos: 2, messageId: id + 1 })),
)

const manyFilters = subscribePacket(
  1,
  Array.from({ length: 500 }, (_, number) => [`filter/${number}/#`, 2] as const),
  [userProperty('n'.repeat(500), 'v'.repeat(500))],
)

/** Connects again and again with these bytes instead of the CONNECT of `join`, then sends `behind`. */
function connects(name: string, does: string, make: (serial: number) => readonly Buffer[]): Attack {
  return {
    name,
    does,
    needs: 'version5',
    run: (kit) => {
      let serial = 0
      return kit.crowd(16, async () => {
        let answered: () => void = () => undefined
        const answer = new Promise<void>((resolve) => {
          answered = resolve
        })
        const socket = await kit.open({ onChunk: () => answered() })
        if (socket === null) return kit.pause(20)
        socket.once('close', () => answered())
        const [connect = Buffer.alloc(0), ...behind] = make((serial += 1))
        if (await kit.write(socket, connect)) await Promise.race([answer, kit.pause(5000)])
        for (const bytes of behind) await kit.write(socket, bytes)
        // What was written is sent before the end.
        socket.end()
        await kit.pause(5)
        socket.destroy()
        return undefined
      })
    },
  }
}

const longExpiry = [property.sessionExpiry, uint32(never)]
const unreleased = publishPacket({ topic, payload, qos: 2 })

export const version5Attacks: readonly Attack[] = [
  writes('alias-topics', 'gives aliases to topics of 4 KB, always other ones', longAliases),
  writes('alias-out-of-range', 'uses topic aliases that no client may have', (turn) =>
    aliased(turn % 2 === 0 ? 65_535 : 11, turn % 2 === 0 ? topic : ''),
  ),
  writes('alias-unset', 'publishes under aliases that it has not set', () => aliased(3, '')),
  writes('properties-large', 'publishes with 1 MiB of user properties', () => largePublish),
  writes('properties-many', 'publishes with 5,000 user properties', () => manyProperties),
  {
    name: 'properties-partial',
    does: 'opens 600 connections of as many addresses and sends 9 of 10 parts of a property section of 900 KB',
    needs: 'version5',
    growthMbMax: { plain: 130, tls: 210 },
    keptMbMax: { plain: 50, tls: 120 },
    run: (kit) =>
      kit.crowd(600, async (index, turn) => {
        const socket = await kit.join(`section-${index}-${turn}`, { stranger: index + 1 })
        if (socket === null) return kit.pause(200)
        await kit.write(socket, cutSection(900_000))
        while (!kit.over && !socket.destroyed) await kit.pause(250)
        socket.destroy()
        return kit.pause(200)
      }),
  },
  writes('receive-maximum', 'publishes with QoS 2 beyond the receive maximum', () => qos2Run),
  connects('expiries', 'opens sessions that never expire, each with a message of QoS 2', (serial) => [
    connectPacket({ clientId: `hoarder-${serial}-${'x'.repeat(200)}`, properties: longExpiry }),
    unreleased,
  ]),
  connects('wills-delayed', 'leaves wills of 50 KB with a delay of years', (serial) => [
    connectPacket({
      clientId: `will-${serial}`,
      properties: longExpiry,
      will: {
        topic: `telemetry/v1/truck-${30 + (serial % 50)}`,
        payload: 'x'.repeat(25_000),
        properties: [property.willDelay, uint32(never), userProperty('name', 'v'.repeat(25_000))],
      },
    }),
  ]),
  connects('expiries-raised', 'raises the expiry of its session in DISCONNECT', (serial) => [
    connectPacket({
      clientId: `raised-${serial}`,
      properties: [property.sessionExpiry, uint32(serial % 2)],
    }),
    disconnectPacket(0x04, longExpiry),
  ]),
  connects('auth', 'asks for enhanced authentication in CONNECT, and sends AUTH', (serial) => [
    connectPacket({
      clientId: `auth-${serial}`,
      properties: serial % 2 === 0 ? [property.authenticationMethod, text('SCRAM-SHA-1')] : [],
    }),
    packetOf(0xf0, 0x19, propertiesOf(property.authenticationMethod, text('SCRAM-SHA-1'))),
  ]),
  connects('connect-properties', 'sends CONNECT with 60 KB of user properties', (serial) => [
    connectPacket({ clientId: `properties-${serial}`, section: sectionOf(60_000) }),
    bytesOf([0xc0, 0]),
  ]),
  connects('small-clients', 'takes packets of 5 bytes at most', (serial) => [
    connectPacket({ clientId: `small-${serial}`, properties: [property.maximumPacketSize, uint32(5)] }),
    manyFilters,
  ]),
  writes('subscribe-properties', 'subscribes to 500 filters with properties', () => manyFilters),
]
