// One client id that connects again and again while its earlier connection is open, over each transport, with
// MQTT 3.1.1 and MQTT 5 in turn, as after a network that comes and goes.

import { expect, test } from 'vitest'
import { disconnectPacket, property, pubrelPacket, uint32 } from '../../support/mqtt5-packets.ts'
import { eventually } from '../../support/eventually.ts'
import { packetsOf, type Version } from '../../support/mqtt-versions.ts'
import { createRandom, type Random } from '../../support/random.ts'
import type { RawDevice } from '../../support/raw-device.ts'
import {
  positionText,
  statementWorld,
  topic,
  type StatementWorld,
  type Transport,
} from '../../support/statement-world.ts'

type Message = { id: number; qos: 1 | 2; state: 'sent' | 'received' | 'done' }

const expiry = (seconds: number) => [property.sessionExpiry, uint32(seconds)]

/** The messages of a client, which survive its connections. */
function createOutbox() {
  const messages: Message[] = []
  const open = () => messages.filter(({ state }) => state !== 'done')

  function bytesOf({ id, qos, state }: Message, version: Version, dup: boolean): Buffer {
    if (state === 'received') return pubrelPacket(id)
    // Half of them have no device time, so that only identifier and session say that one comes again.
    const fields =
      id % 4 < 2
        ? { topic, payload: positionText(id) }
        : { topic: 'u/van', payload: JSON.stringify({ lat: id / 100, lon: 13 }) }
    const message = { ...fields, qos, dup, messageId: id }
    return packetsOf[version].publish(message)
  }

  return {
    messages,
    open,
    /** What a new connection sends first. */
    again: (version: Version) => open().map((message) => bytesOf(message, version, true)),
    add(version: Version): Buffer {
      const id = messages.length + 1
      const message: Message = { id, qos: id % 2 === 0 ? 1 : 2, state: 'sent' }
      messages.push(message)
      return bytesOf(message, version, false)
    },
    /** Notes the acknowledgements that `device` has received, and releases messages of QoS 2 over it. */
    note(device: RawDevice): void {
      for (const { type, messageId } of device.received) {
        const message = messages[messageId - 1]
        if (message === undefined) continue
        if (type === 'puback' || type === 'pubcomp') message.state = 'done'
        if (type !== 'pubrec' || message.state !== 'sent') continue
        message.state = 'received'
        device.send(pubrelPacket(messageId))
      }
    },
  }
}

type Connection = {
  device: RawDevice
  version: Version
  /** Resolves with whether a session is present. */
  connect(): Promise<boolean>
  disconnect(): void
}

async function openConnection(
  world: StatementWorld,
  transport: Transport,
  version: Version,
): Promise<Connection> {
  const device = await world.open(version, transport)
  return {
    device,
    version,
    async connect() {
      const { code, sessionPresent } = await device.connect({
        clientId: 'van',
        flags: 0,
        properties: expiry(3600),
      })
      expect(code).toBe(0)
      return sessionPresent
    },
    disconnect: () => device.send(version === 5 ? disconnectPacket(0, expiry(0)) : packetsOf[3].disconnect),
  }
}

const pick = (random: Random) =>
  [random.pick<Transport>(['tcp', 'tls', 'ws', 'wss']), random.pick<Version>([3, 5])] as const

test('[MQTT5-3.1.4-3] 200 take-overs lose and double nothing, and leave nothing behind', async () => {
  const world = await statementWorld(5, ['tcp', 'tls', 'ws', 'wss'])
  const random = createRandom(200)
  const outbox = createOutbox()
  let older: Connection | null = null
  const others: Connection[] = []
  const ends: [version: Version, code: number | null][] = []
  for (let round = 0; round < 200; round += 1) {
    const newer = await openConnection(world, ...pick(random))
    expect(await newer.connect()).toBe(round > 0)
    if (older !== null) {
      ends.push([older.version, (await older.device.gone())?.code ?? null])
      // Acknowledgements that came before the end count.
      outbox.note(older.device)
    }
    const { device, version } = newer
    device.send(...outbox.again(version), ...Array.from({ length: 3 }, () => outbox.add(version)))
    // Without waiting, after some acknowledgements, or when nothing is open.
    const wanted = random.pick([0, 1, 2, Infinity])
    await device.until(() => {
      outbox.note(device)
      const acks = device.received.length - 1
      return acks >= wanted || outbox.open().length === 0
    })
    older = newer
    others.push(newer)
  }
  expect(ends).toEqual(ends.map(([version]) => [version, version === 5 ? 0x8e : null]))
  const last = others.at(-1)!
  last.device.send(...outbox.again(last.version))
  await last.device.until(() => {
    outbox.note(last.device)
    return outbox.open().length === 0
  })
  expect(others.filter(({ device }) => !device.closed)).toEqual([last])

  // Many at once: one of them stays.
  const crowd = await Promise.all(Array.from({ length: 20 }, () => openConnection(world, ...pick(random))))
  await Promise.all(crowd.map((one) => one.connect()))
  await eventually(() => crowd.filter(({ device }) => !device.closed).length === 1)
  expect(await world.counter('gateway_clients_taken_over_total')).toBe(219)

  // The last connection ends the session, and everything is as it was.
  const end = await openConnection(world, 'wss', 5)
  await end.connect()
  end.disconnect()
  await end.device.gone()
  await eventually(async () => (await world.counter('gateway_connections')) === 0)
  for (const gauge of [
    'gateway_messages_resend_stored_total',
    'gateway_sessions',
    'gateway_connections_unauthenticated',
    'gateway_clients_dropped_total',
  ])
    expect([gauge, await world.counter(gauge)]).toEqual([gauge, 0])
  const { length } = outbox.messages
  expect(await world.counter('gateway_messages_mapped_total')).toBe(length)
  await eventually(() => world.sandbox.stats().payloadsAccepted >= length)
  expect(world.sandbox.stats()).toMatchObject({
    payloadsAccepted: length,
    distinctPayloadIds: length,
  })
  // It says that several devices seem to have this client id.
  expect(world.status().conditions.map(({ code }) => code)).toEqual(['CLIENT_ID_SHARED'])
})
