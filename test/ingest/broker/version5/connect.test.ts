import { afterEach, describe, expect, test } from 'vitest'
import { hashPassword } from '../../../../src/std/passwords/passwords.ts'
import { Secret } from '../../../../src/std/secret.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, textOf, type IngestWorld } from '../../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { openDevice5, type Device5 } from '../../../support/mqtt5-device.ts'
import {
  connectPacket,
  property,
  text,
  uint32,
  userProperty,
  type ConnectFields,
} from '../../../support/mqtt5-packets.ts'
import { createDevice } from '../../../support/mqtt-device.ts'

// Over a real socket: what a client of MQTT 5 gets for its CONNECT.

const auto = () => createMemoryIntakeSpool({ commits: 'auto' })
const devices: Device5[] = []

afterEach(() => {
  for (const device of devices.splice(0)) device.destroy()
})

async function open({ port }: { port: number }, from?: string): Promise<Device5> {
  const device = await openDevice5({
    url: `mqtt://127.0.0.1:${port}`,
    ...(from === undefined ? {} : { from }),
  })
  devices.push(device)
  return device
}

const users = [
  { name: 'north', password: new Secret('right') },
  { name: 'south', password: new Secret('right') },
]
const guarded = {
  access: [{ anonymous: false, certificates: false, users, passwordFile: null, tokens: [] }],
  passwords: { waitingMax: 100, rememberedMax: 100, refusalDelayMs: 1, refusalDelayMaxMs: 1 },
}
const north = { userName: 'north', password: 'right' }
const will = { topic: 'status', payload: 'lost' }

type Refused = {
  reason: string
  code: number
  fields: ConnectFields
  options?: Parameters<typeof openIngest>[1]
}

const refusals: readonly Refused[] = [
  { reason: 'client_id_too_long', code: 0x85, fields: { clientId: 'x'.repeat(300) } },
  { reason: 'bad_credentials', code: 0x86, fields: { ...north, password: 'wrong' }, options: guarded },
  { reason: 'no_user_name', code: 0x87, fields: {}, options: guarded },
  { reason: 'bad_will_topic', code: 0x90, fields: { will: { ...will, topic: 'a/+' } } },
  { reason: 'will_retain', code: 0x9a, fields: { will: { ...will, retain: true } } },
  {
    reason: 'authentication_method',
    code: 0x8c,
    fields: { properties: [property.authenticationMethod, text('SCRAM-SHA-1')] },
  },
]

describe('a CONNECT of MQTT 5 that is refused', () => {
  test.each(refusals)(
    '[MQTT-3.1.4-2] [MQTT-3.2.2-6] [MQTT-3.2.2-7] is answered with the code of $reason, and closed',
    async ({ reason, code, fields, options }) => {
      await using world = await openIngest(auto(), options)
      const device = await open(world)
      expect(await device.connect(fields)).toMatchObject({ code, sessionPresent: false })
      await device.gone()
      expect(device.received.map(({ type }) => type)).toEqual(['connack'])
      expect(device.received[0]?.properties.get(property.reasonString)).toBe(reason)
      expect(reasonsOf(world)).toEqual([reason])
    },
  )

  test('[MQTT-3.1.3-8] an id of a client with another identity is not valid', async () => {
    await using world = await openIngest(auto(), guarded)
    expect(await (await open(world)).connect(north)).toMatchObject({ code: 0 })
    const other = await open(world)
    expect(await other.connect({ ...north, userName: 'south' })).toMatchObject({ code: 0x85 })
    await other.gone()
    expect(reasonsOf(world)).toEqual(['client_id_in_use'])
  })

  test('one more than an identity may have exceeds its quota', async () => {
    await using world = await openIngest(auto(), { ...guarded, connectionsPerIdentityMax: 1 })
    expect(await (await open(world)).connect(north)).toMatchObject({ code: 0 })
    const second = await open(world)
    expect(await second.connect({ ...north, clientId: 'second' })).toMatchObject({ code: 0x97 })
    await second.gone()
  })

  test('a session that cannot be stored is refused as unavailable', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    spool.lose()
    const device = await open(world)
    const properties = [property.sessionExpiry, uint32(60)]
    expect(await device.connect({ properties })).toMatchObject({ code: 0x88, sessionPresent: false })
    await device.gone()
    expect(reasonsOf(world)).toEqual(['session_not_stored'])
  })

  test('too many passwords that wait to be checked make the gateway busy', async () => {
    const hashed = [{ name: 'north', password: new Secret(await hashPassword('right', 15)) }]
    const [access] = guarded.access
    await using world = await openIngest(auto(), {
      access: [{ ...access!, users: hashed }],
      passwords: { ...guarded.passwords, waitingMax: 1 },
    })
    const waiting = await Promise.all(Array.from({ length: 8 }, () => open(world)))
    for (const [index, device] of waiting.entries())
      device.send(connectPacket({ ...north, clientId: `c${index}`, password: `wrong ${index}` }))
    const codes = await Promise.all(waiting.map(async (device) => (await device.next('connack')).code))
    expect(codes).toContain(0x89)
    expect(codes).toContain(0x86)
  })

  test('one that is closed at a bound while its password is checked hears that the gateway is busy', async () => {
    const passwords = { ...guarded.passwords, refusalDelayMs: 60_000, refusalDelayMaxMs: 60_000 }
    await using world = await openIngest(auto(), { ...guarded, passwords, unauthenticatedMax: 2 })
    const checked = [await open(world, '127.0.0.5'), await open(world, '127.0.0.5')]
    for (const [index, device] of checked.entries()) {
      device.send(connectPacket({ ...north, clientId: `c${index}`, password: 'wrong' }))
      await eventually(() => world.ingest.counters().refusalsDelayed === index + 1)
    }
    // Of the address with most of them, the newest.
    await open(world, '127.0.0.6')
    expect(await checked[1]?.next('connack')).toMatchObject({ code: 0x89, sessionPresent: false })
    await checked[1]?.gone()
    expect(checked[0]?.closed).toBe(false)
  })

  test('[MQTT-3.1.4-6] what comes behind it in the same segment is not taken', async () => {
    const spool = auto()
    await using world = await openIngest(spool, guarded)
    const device = await open(world)
    const publish = Buffer.from([0x30, 5, 0, 1, 0x74, 0, 0x78])
    device.send(connectPacket({ ...north, password: 'wrong' }), publish, Buffer.from([0xc0, 0]))
    await device.gone()
    expect(device.received.map(({ type }) => type)).toEqual(['connack'])
    expect(world.ingest.counters().received).toBe(0)
  })

  test('[MQTT-3.1.2-2] a level that does not exist is answered in the layout of 3.1.1', async () => {
    await using world = await openIngest(auto())
    const device = await createDevice({ port: world.port, clientId: 'future' })
    device.sendBytes(connectPacket({ level: 6 }))
    await device.gone()
    expect(device.received).toMatchObject([{ cmd: 'connack', returnCode: 1 }])
  })

  test('[MQTT-3.1.2-24] a client that takes no packet of five bytes is closed without an answer', async () => {
    await using world = await openIngest(auto(), guarded)
    const device = await open(world)
    device.send(connectPacket({ properties: [property.maximumPacketSize, uint32(4)] }))
    expect(await device.gone()).toBeNull()
    expect(device.received).toEqual([])
  })

  test('[MQTT-3.1.2-24] a client that has no room for CONNACK is closed, and not admitted', async () => {
    await using world = await openIngest(auto())
    const device = await open(world)
    device.send(connectPacket({ properties: [property.maximumPacketSize, uint32(20)] }))
    await device.gone()
    expect(device.received.map(({ code }) => code)).toEqual([0x95])
    expect(world.ingest.clients.find('truck')?.state).not.toBe('connected')
  })
})

describe('a CONNECT of MQTT 5 whose layout is wrong', () => {
  const malformed: readonly { what: string; code: number; fields: ConnectFields }[] = [
    { what: '[MQTT-3.1.2-3] the reserved flag', code: 0x81, fields: { flags: 0x03 } },
    { what: '[MQTT-3.1.2-12] a will with QoS 3', code: 0x81, fields: { will: { ...will, qos: 3 } } },
    { what: '[MQTT-3.1.2-11] a will QoS without a will', code: 0x81, fields: { flags: 0x0a } },
    { what: '[MQTT-3.1.2-13] a will retain flag without a will', code: 0x81, fields: { flags: 0x22 } },
    { what: '[MQTT-3.1.3-1] bytes behind its fields', code: 0x81, fields: { rest: [0, 0] } },
    {
      what: 'a receive maximum of 0 (3.1.2.11.3)',
      code: 0x82,
      fields: { properties: [property.receiveMaximum, 0, 0] },
    },
    {
      what: 'a maximum packet size of 0 (3.1.2.11.4)',
      code: 0x82,
      fields: { properties: [property.maximumPacketSize, uint32(0)] },
    },
    {
      what: 'a property twice (3.1.2.11.2)',
      code: 0x82,
      fields: {
        properties: [property.sessionExpiry, uint32(1), property.sessionExpiry, uint32(1)],
      },
    },
  ]

  test.each(malformed)('$what is answered with a refusal', async ({ code, fields }) => {
    await using world = await openIngest(auto())
    const device = await open(world)
    expect(await device.connect(fields)).toMatchObject({ code, sessionPresent: false })
    await device.gone()
    expect(device.received).toHaveLength(1)
  })
})

describe('a CONNECT of MQTT 5 that is accepted', () => {
  test('[MQTT-3.1.4-5] names what the gateway takes, and the client is known with its version', async () => {
    await using world = await openIngest(auto(), { topicAliasesMax: 7, inFlightMax: 20 })
    const device = await open(world)
    const connack = await device.connect({ properties: [userProperty('model', 'FMC130')] })
    expect(connack).toMatchObject({ code: 0, sessionPresent: false })
    expect(connack.properties.get(property.receiveMaximum)).toBe(20)
    expect(connack.properties.get(property.topicAliasMaximum)).toBe(7)
    expect(connack.properties.get(property.retainAvailable)).toBe(0)
    expect(connack.properties.has(property.maximumQos)).toBe(false)
    expect(world.ingest.clients.find('truck')).toMatchObject({ state: 'connected', protocol: 'MQTT 5' })
  })

  test('[MQTT-3.2.2-13] a will with the retain flag is taken where the config accepts it', async () => {
    await using world = await openIngest(auto(), { retain: 'accept' })
    const device = await open(world)
    const connack = await device.connect({ will: { ...will, retain: true } })
    expect(connack.code).toBe(0)
    expect(connack.properties.has(property.retainAvailable)).toBe(false)
  })

  test('[MQTT-3.1.3-6] [MQTT-3.2.2-16] a client without an id gets its own, with Clean Start 0 as with 1', async () => {
    await using world = await openIngest(auto())
    const ids: unknown[] = []
    for (const flags of [0, 2]) {
      const device = await open(world)
      const { code, properties } = await device.connect({ clientId: '', flags })
      expect(code).toBe(0)
      ids.push(properties.get(property.assignedClientId))
    }
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) expect(world.ingest.clients.find(String(id))).toMatchObject({ state: 'connected' })
  })

  test('[MQTT-3.2.2-3] [MQTT-3.1.2-23] a session is present where it is stored, and its expiry is bounded', async () => {
    await using world = await openIngest(auto(), { sessionExpiryMs: 60_000 })
    const properties = [property.sessionExpiry, uint32(0xffff_ffff)]
    const first = await open(world)
    const connack = await first.connect({ properties, flags: 0 })
    expect(connack.sessionPresent).toBe(false)
    expect(connack.properties.get(property.sessionExpiry)).toBe(60)
    first.destroy()
    await eventually(() => world.ingest.clients.find('truck')?.state === 'lost')
    expect(await (await open(world)).connect({ properties, flags: 0 })).toMatchObject({
      sessionPresent: true,
    })
    // [MQTT-3.2.2-2]
    expect(await (await open(world)).connect({ properties })).toMatchObject({ sessionPresent: false })
  })

  test('[MQTT-3.1.2-21] [MQTT-3.2.2-21] a keepalive above the setting is announced and used', async () => {
    await using world = await openIngest(auto(), { keepaliveMsMax: 60_000 })
    const none = await (await open(world)).connect({ keepAliveS: 0 })
    expect(none.properties.get(property.serverKeepAlive)).toBe(60)
    const short = await (await open(world)).connect({ keepAliveS: 30 })
    expect(short.properties.has(property.serverKeepAlive)).toBe(false)
  })

  test('[MQTT-3.2.0-1] [MQTT-3.2.0-2] CONNACK comes once, and before all answers', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await open(world)
    // QoS 1, identifier 5, no properties.
    const publish = Buffer.from([0x32, 7, 0, 1, 0x74, 0, 5, 0, 0x78])
    device.send(connectPacket(), publish, Buffer.from([0xc0, 0]))
    await device.next('puback')
    await device.next('pingresp')
    // PUBACK follows the commit.
    expect(device.received[0]?.type).toBe('connack')
    expect(device.received).toHaveLength(3)
    expect(spool.payloads.map(textOf)).toEqual(['x'])
  })

  test('[MQTT-3.1.2-17] a password without a user name is allowed', async () => {
    await using world = await openIngest(auto())
    expect(await (await open(world)).connect({ password: 'alone' })).toMatchObject({ code: 0 })
  })
})

function reasonsOf({ events }: IngestWorld): string[] {
  const reasons: string[] = []
  for (const event of events)
    if (event.kind === 'client_refused' || event.kind === 'client_dropped') reasons.push(event.reason)
  return reasons
}
