// crash-link.ts: a connection of a device of a crash run: MQTT 3.1.1 or 5, over TCP or WebSocket.
//
// A device of MQTT 5 uses what the gateway allows: the whole receive maximum, a topic alias after the first message
// of a connection, properties with each message. Where an answer breaks the protocol or refuses a message, `wrong`
// says so.

import { openDevice5 } from '../support/mqtt5-device.ts'
import {
  cleanStart,
  property,
  publishPacket,
  pubrelPacket,
  text,
  uint16,
  uint32,
  userProperty,
} from '../support/mqtt5-packets.ts'
import { createDevice, type DeviceAck } from '../support/mqtt-device.ts'

export type Ports = { mqttPort: number; wsPort: number }

export type LinkOptions = {
  ports: Ports
  clientId: string
  version: 4 | 5
  overWebSocket: boolean
  /** Clean Session, or Clean Start. */
  clean: boolean
  /** Of MQTT 5. */
  expiryS: number
}

/** What the mapping and the envelope get of a message of MQTT 5. */
export type SentProperties = { trip: string; contentType: string; correlation: string }

export type SentMessage = {
  topic: string
  payload: string | Buffer
  qos: 1 | 2
  messageId: number
  dup: boolean
  /** Null for 3.1.1. */
  properties: SentProperties | null
}

export type Link = {
  /** In the order in which they came. */
  readonly acks: readonly DeviceAck[]
  readonly closed: boolean
  /** What the gateway did that it may not do. */
  readonly wrong: readonly string[]
  /** Rejects where the connection ends before. `receiveMaximum` is Infinity for 3.1.1. */
  connect(): Promise<{ returnCode: number; sessionPresent: boolean; receiveMaximum: number }>
  publish(message: SentMessage): void
  /** Sends PUBREL. */
  release(messageId: number): void
  /** Resolves when `count` acks have come; rejects when the connection ends before. */
  acked(count: number): Promise<unknown>
  gone(): Promise<unknown>
  destroy(): void
}

/** DISCONNECT where the gateway stops, and where its disk is full: nothing else is the fault of no device. */
const expectedEnds: ReadonlySet<number> = new Set([0x8b, 0x83])

export async function openLink(options: LinkOptions): Promise<Link> {
  return options.version === 5 ? openLink5(options) : openLink3(options)
}

async function openLink3({ ports, clientId, overWebSocket, clean }: LinkOptions): Promise<Link> {
  const device = await createDevice({
    port: overWebSocket ? ports.wsPort : ports.mqttPort,
    overWebSocket,
    clientId,
    releases: false,
  })
  return {
    acks: device.acks,
    get closed() {
      return device.closed
    },
    wrong: [],
    async connect() {
      const { returnCode = -1, sessionPresent } = await device.connect({ clean })
      return { returnCode, sessionPresent, receiveMaximum: Infinity }
    },
    publish: ({ properties: _none, ...message }) => device.publish(message),
    release: (messageId) => device.send({ cmd: 'pubrel', messageId }),
    acked: (count) => device.acked(count),
    gone: () => device.gone(),
    destroy: () => device.destroy(),
  }
}

async function openLink5(options: LinkOptions): Promise<Link> {
  const { ports, clientId, overWebSocket, clean, expiryS } = options
  const url = overWebSocket ? `ws://127.0.0.1:${ports.wsPort}/mqtt` : `mqtt://127.0.0.1:${ports.mqttPort}`
  const device = await openDevice5({ url })
  const acks: DeviceAck[] = []
  const wrong: string[] = []
  const aliases = new Map<string, number>()
  let aliasMax = 0
  let looked = 0

  function look(): void {
    for (; looked < device.received.length; looked += 1) {
      const { type, code, messageId } = device.received[looked]!
      if (type === 'puback' || type === 'pubrec' || type === 'pubcomp') {
        acks.push({ cmd: type, messageId })
        if (code !== 0) wrong.push(`${clientId} got ${type} ${code} for message ${messageId}`)
      } else if (type === 'disconnect' && !expectedEnds.has(code))
        wrong.push(`${clientId} got DISCONNECT ${code}`)
    }
  }

  return {
    acks,
    get closed() {
      return device.closed
    },
    get wrong() {
      try {
        look()
      } catch (error) {
        wrong.push(`${clientId}: ${String(error)}`)
      }
      return wrong
    },
    async connect() {
      const { code, sessionPresent, properties } = await device.connect({
        clientId,
        flags: clean ? cleanStart : 0,
        properties: [
          Buffer.from([property.sessionExpiry]),
          uint32(expiryS),
          Buffer.from([property.receiveMaximum]),
          uint16(10),
        ],
      })
      const numberOf = (id: number, otherwise: number) =>
        (properties.get(id) as number | undefined) ?? otherwise
      aliasMax = numberOf(property.topicAliasMaximum, 0)
      return { returnCode: code, sessionPresent, receiveMaximum: numberOf(property.receiveMaximum, 65_535) }
    },
    publish({ properties, topic, ...message }) {
      const known = aliases.get(topic)
      const alias = known ?? (aliases.size < aliasMax ? aliases.size + 1 : 0)
      if (alias > 0) aliases.set(topic, alias)
      const parts = [
        ...(alias === 0 ? [] : [Buffer.from([property.topicAlias]), uint16(alias)]),
        ...(properties === null ? [] : partsOf(properties)),
      ]
      device.send(publishPacket({ ...message, topic: known === undefined ? topic : '', properties: parts }))
    },
    release: (messageId) => device.send(pubrelPacket(messageId)),
    acked: (count) =>
      device.until(() => {
        look()
        return acks.length >= count
      }),
    gone: () => device.gone(),
    destroy: () => device.destroy(),
  }
}

function partsOf({ trip, contentType, correlation }: SentProperties): Buffer[] {
  return [
    Buffer.from([property.payloadFormat, 1]),
    Buffer.from([property.contentType]),
    text(contentType),
    Buffer.from([property.correlationData]),
    text(correlation),
    userProperty('depot', 'north'),
    userProperty('trip', trip),
  ]
}
