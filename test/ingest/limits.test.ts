import { describe, expect, test, vi } from 'vitest'
import { openIngest, type IngestWorld } from '../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../support/memory-intake-spool.ts'
import { connectBytes, publishBytes, type Device } from '../support/mqtt-device.ts'
import { useFakeTimers } from '../support/fake-timers.ts'
import { createRandom } from '../support/random.ts'

const auto = () => createMemoryIntakeSpool({ commits: 'auto' })

function reasons(world: IngestWorld): string[] {
  return world.events.flatMap((event) => (event.kind === 'client_dropped' ? [event.reason] : []))
}

/** A PUBLISH of QoS 1 with these bytes behind the fixed header. */
function rawPublish(head: number, ...body: number[]): Buffer {
  return Buffer.from([head, body.length, ...body])
}

/** The gateway reads behind CONNECT now. */
async function pinged(device: Device): Promise<void> {
  device.send({ cmd: 'pingreq' })
  await device.until((received) => received.some(({ cmd }) => cmd === 'pingresp'))
}

/** Changes bytes that stand where `text` is. */
function replaced(packet: Buffer, text: string, bytes: readonly number[]): Buffer {
  packet.set(bytes, packet.indexOf(text))
  return packet
}

/** CONNECT with other flags (MQTT 3.1.2.3). */
function withFlags(connect: Buffer, flags: number): Buffer {
  connect[9] = flags
  return connect
}

const topicA = [0, 1, 0x61]

describe('before CONNECT', () => {
  test.each([
    ['a PUBLISH', publishBytes({ topic: 't', payload: 'x' }), 'not_connect'],
    ['a request of HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'not_connect'],
    ['a TLS handshake', Buffer.from([0x16, 3, 1, 2, 0, 1]), 'tls_on_plain_port'],
    ['a CONNECT of 200 MB', Buffer.from([0x10, 0x80, 0x84, 0xaf, 0x5f, 0, 4]), 'connect_too_large'],
    ['a length without end', Buffer.from([0x10, 0x80, 0x80, 0x80, 0x80, 0x01]), 'malformed_length'],
    [
      'another protocol',
      Buffer.from([0x10, 12, 0, 4, 0x48, 0x54, 0x54, 0x50, 4, 2, 0, 0, 0, 0]),
      'protocol_error',
    ],
    ['a CONNECT that is too short', Buffer.from([0x10, 2, 0, 4]), 'protocol_error'],
    [
      'a CONNECT with a reserved flag',
      Buffer.from([0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 3, 0, 0, 0, 0]),
      'protocol_error',
    ],
    ['a client id with a null character', connectBytes('tru\0ck'), 'bad_client_id'],
    ['a client id that is not UTF-8', replaced(connectBytes('tr~(ck'), '~(', [0xc3, 0x28]), 'bad_client_id'],
    [
      'a user name that is not UTF-8',
      replaced(connectBytes('truck', { username: 'us~(' }), '~(', [0xc3, 0x28]),
      'bad_user_name',
    ],
    ['a user name with a null character', connectBytes('truck', { username: 'us\0' }), 'bad_user_name'],
    [
      'a will on a topic that is not UTF-8',
      replaced(connectBytes('truck', { will: { topic: 'w~(', payload: 'x' } }), '~(', [0xc3, 0x28]),
      'bad_will_topic',
    ],
    [
      'a password without a user name',
      // Flags: clean session, password.
      Buffer.from([0x10, 16, 0, 4, ...Buffer.from('MQTT'), 4, 0x42, 0, 0, 0, 1, 0x61, 0, 1, 0x70]),
      'password_without_user',
    ],
    [
      'a will with QoS 3',
      withFlags(connectBytes('truck', { will: { topic: 'w', payload: 'x' } }), 0x1e),
      'bad_will_qos',
    ],
    [
      'a will on a wildcard',
      connectBytes('truck', { will: { topic: 'a/#', payload: 'x' } }),
      'bad_will_topic',
    ],
  ])('%s ends the connection with a reason', async (_what, bytes, reason) => {
    await using world = await openIngest(auto())
    const device = await world.connection('truck')
    device.sendBytes(bytes)
    await device.gone()
    expect(reasons(world)).toEqual([reason])
    expect(world.ingest.counters().droppedByReason).toEqual(new Map([[reason, 1]]))
  })

  test('a client that never sends CONNECT is closed after connect_timeout', async () => {
    useFakeTimers()
    await using world = await openIngest(auto())
    const device = await world.connection('truck')
    device.sendBytes(connectBytes('truck').subarray(0, 5))
    while (world.ingest.counters().connections === 0) await new Promise(setImmediate)
    vi.advanceTimersByTime(9999)
    expect(reasons(world)).toEqual([])
    vi.advanceTimersByTime(1)
    await device.gone()
    expect(reasons(world)).toEqual(['connect_timeout'])
  })

  test('200 MB that are announced and sent are not buffered', async () => {
    await using world = await openIngest(auto())
    const before = process.memoryUsage().arrayBuffers
    const device = await world.device('truck')
    device.sendBytes(Buffer.from([0x32, 0x80, 0x84, 0xaf, 0x5f]))
    const block = Buffer.alloc(1024 ** 2)
    for (let index = 0; index < 200; index += 1) device.sendBytes(block)
    await device.gone()
    expect(reasons(world)).toEqual(['packet_too_large'])
    expect(world.ingest.counters().bytes).toBe(0)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * 1024 ** 2)
  })
})

describe('after CONNECT', () => {
  test.each([
    ['a second CONNECT', connectBytes('truck')],
    ['CONNACK, which only servers send', Buffer.from([0x20, 2, 0, 0])],
    ['SUBACK, which only servers send', Buffer.from([0x90, 3, 0, 1, 0])],
    ['PINGRESP, which only servers send', Buffer.from([0xd0, 0])],
    ['reserved packet type 0', Buffer.from([0x00, 0])],
    ['reserved packet type 15', Buffer.from([0xf0, 0])],
    ['QoS 3', rawPublish(0x36, ...topicA, 0, 1)],
    ['an empty topic', rawPublish(0x32, 0, 0, 0, 1)],
    ['a topic with #', publishBytes({ topic: 'aaa', payload: '' }).fill('#', 4, 5)],
    ['a topic with +', publishBytes({ topic: 'aaa', payload: '' }).fill('+', 4, 5)],
    ['a topic with a null character', rawPublish(0x32, 0, 1, 0, 0, 1)],
    ['a topic that is not UTF-8', rawPublish(0x32, 0, 2, 0xc3, 0x28, 0, 1)],
    ['a topic of QoS 2 that is not UTF-8', rawPublish(0x34, 0, 2, 0xc3, 0x28, 0, 1)],
    ['a topic with U+FFFD and malformed bytes', rawPublish(0x32, 0, 4, 0xef, 0xbf, 0xbd, 0xff, 0, 1)],
    ['a topic with a surrogate', rawPublish(0x32, 0, 3, 0xed, 0xa0, 0x80, 0, 1)],
    ['a topic longer than its packet', rawPublish(0x32, 0, 200, 0x61, 0, 1)],
    ['a topic of 101 levels', publishBytes({ topic: 'a/'.repeat(100), payload: '' })],
    ['a topic of 5,000 bytes', publishBytes({ topic: 'a'.repeat(5000), payload: '' })],
    ['a topic below $SYS', publishBytes({ topic: '$SYS/x', payload: '' })],
    ['packet identifier 0', rawPublish(0x32, ...topicA, 0, 0)],
    ['no packet identifier', rawPublish(0x32, ...topicA)],
    [
      'no packet identifier, and another packet behind',
      Buffer.concat([rawPublish(0x32, ...topicA), Buffer.from([0xc0, 0])]),
    ],
    ['PUBREL with wrong flags', Buffer.from([0x60, 2, 0, 1])],
    ['PUBREL with packet identifier 0', Buffer.from([0x62, 2, 0, 0])],
    [
      'PUBREL without packet identifier, and a packet behind',
      Buffer.concat([Buffer.from([0x62, 0]), Buffer.from([0xc0, 0])]),
    ],
    ['SUBSCRIBE with packet identifier 0', Buffer.from([0x82, 6, 0, 0, 0, 1, 0x61, 0])],
    ['UNSUBSCRIBE with packet identifier 0', Buffer.from([0xa2, 5, 0, 0, 0, 1, 0x61])],
    ['SUBSCRIBE without a topic filter', Buffer.from([0x82, 2, 0, 1])],
    ['UNSUBSCRIBE without a topic filter', Buffer.from([0xa2, 2, 0, 1])],
    ['SUBSCRIBE to an empty topic filter', Buffer.from([0x82, 5, 0, 1, 0, 0, 0])],
    ['SUBSCRIBE to a#', Buffer.from([0x82, 7, 0, 1, 0, 2, 0x61, 0x23, 0])],
    ['SUBSCRIBE to #/a', Buffer.from([0x82, 8, 0, 1, 0, 3, 0x23, 0x2f, 0x61, 0])],
    ['SUBSCRIBE to a filter that is not UTF-8', Buffer.from([0x82, 7, 0, 1, 0, 2, 0xc3, 0x28, 0])],
    ['SUBSCRIBE with wrong flags', Buffer.from([0x80, 6, 0, 1, 0, 1, 0x61, 0])],
    ['SUBSCRIBE with QoS 3', Buffer.from([0x82, 6, 0, 1, 0, 1, 0x61, 3])],
    ['a length of five bytes', Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 1])],
    ['a packet beyond the limit', publishBytes({ topic: 't', payload: Buffer.alloc(1024 ** 2) })],
  ])('%s ends this connection and does not affect others', async (_what, bytes) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const good = await world.device('good')
    const bad = await world.device('bad')
    bad.sendBytes(bytes)
    await bad.gone()
    expect(reasons(world)).toHaveLength(1)
    good.publish({ topic: 't', payload: 'still here' })
    await good.acked(1)
    expect(spool.payloads).toHaveLength(1)
  })

  test.each([1, 2] as const)('U+FFFD is a character of a topic like any other (QoS %i)', async (qos) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    device.publish({ topic: 'depot/\ufffd', payload: 'x', qos })
    await device.acked(1)
    expect(JSON.parse(spool.payloads[0]!.json)).toMatchObject({ topic: 'depot/\ufffd' })
  })

  test('the largest packet that is allowed arrives whole', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    const payload = 'x'.repeat(1024 ** 2 - 2 - 1 - 2)
    device.publish({ topic: 't', payload })
    await device.acked(1)
    expect(spool.payloads[0]?.json).toContain(payload)
  })

  test('random bytes never crash the gateway and never affect another client', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const good = await world.device('good')
    const samples = [
      publishBytes({ topic: 'a/b', payload: 'hello', qos: 2, messageId: 9 }),
      publishBytes({ topic: 'a/b', payload: 'hello', qos: 1, messageId: 9 }),
      Buffer.from([0x82, 8, 0, 1, 0, 3, 0x61, 0x2f, 0x62, 1]),
      Buffer.from([0xa2, 7, 0, 1, 0, 3, 0x61, 0x2f, 0x62]),
      Buffer.from([0x40, 2, 0, 1]),
      Buffer.from([0x62, 2, 0, 9]),
      Buffer.from([0xe0, 0]),
    ]
    for (let seed = 1; seed <= 150; seed += 1) {
      const random = createRandom(seed)
      const bad = await world.connection(`bad${seed}`)
      if (random.chance(0.8)) await bad.connect({ clean: random.chance(0.5) })
      const bytes = Buffer.concat(Array.from({ length: 5 }, () => random.pick(samples)))
      for (let flips = random.below(6); flips >= 0; flips -= 1)
        bytes[random.below(bytes.length)] = random.below(256)
      bad.sendBytes(bytes)
      bad.end()
      await bad.gone()
      good.publish({ topic: 't', payload: `after ${seed}`, messageId: seed })
      await good.acked(seed)
    }
    const { received, mapped, duplicates, ignored, dead, dropped, held } = world.ingest.counters()
    expect(received).toBe(mapped + duplicates + ignored + dead + dropped + held)
  })
})

describe('bounds', () => {
  test('a connection beyond max_connections is closed and counted, until another one ends', async () => {
    await using world = await openIngest(auto(), { connectionsMax: 2 })
    const first = await world.device('a')
    await world.device('b')
    const third = await world.connection('c')
    await third.gone()
    expect(world.ingest.counters().refusedByReason).toEqual(new Map([['max_connections', 1]]))
    first.destroy()
    while (world.ingest.counters().connections > 1) await new Promise(setImmediate)
    await world.device('d')
  })

  test('no more messages than max_in_flight wait for their commit', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'by hand' })
    await using world = await openIngest(spool, { inFlightMax: 10 })
    const device = await world.device('truck')
    for (let id = 1; id <= 95; id += 1) device.publish({ topic: 't', payload: `m${id}`, messageId: id })
    for (let round = 1; round <= 10; round += 1) {
      await spool.ended(Math.min(round * 10, 95))
      await new Promise(setImmediate)
      expect(spool.open).toBeLessThanOrEqual(10)
      spool.commit()
    }
    await device.acked(95)
  })

  test('keepalive: a silent client is dropped after one and a half times its keepalive', async () => {
    useFakeTimers()
    await using world = await openIngest(auto())
    const device = await world.connection('quiet')
    await device.connect({ keepalive: 60 })
    await pinged(device)
    vi.advanceTimersByTime(89_999)
    expect(reasons(world)).toEqual([])
    vi.advanceTimersByTime(2000)
    await device.gone()
    expect(reasons(world)).toEqual(['keepalive_timeout'])
  })
})
