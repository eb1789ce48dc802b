import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { connectAsync } from 'mqtt'
import type { ISubackPacket } from 'mqtt-packet'
import { describe, expect, test, vi } from 'vitest'
import { collectGarbage } from '../../support/garbage.ts'
import { useFakeTimers } from '../../support/fake-timers.ts'
import { openIngest, textOf, type IngestWorld } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes, type Device } from '../../support/mqtt-device.ts'

const auto = () => createMemoryIntakeSpool({ commits: 'auto' })
const run = promisify(execFile)
const mosquittoSub = '/usr/bin/mosquitto_sub'

/** Without garbage. */
function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** Subscribes, and returns what was granted. */
async function granted(device: Device, topics: readonly (readonly [string, 0 | 1 | 2])[]): Promise<unknown> {
  const subscriptions = topics.map(([topic, qos]) => ({ topic, qos }))
  device.send({ cmd: 'subscribe', messageId: 0x1234, subscriptions })
  await device.until((received) => received.some(({ cmd }) => cmd === 'suback'))
  const answer = device.received.find((packet) => packet.cmd === 'suback') as ISubackPacket
  expect(answer.messageId).toBe(0x1234)
  return answer.granted
}

async function closed(world: IngestWorld): Promise<void> {
  while (world.ingest.counters().connections > 0) await new Promise(setImmediate)
}

describe('subscriptions', () => {
  test.each([true, false])(
    'are granted with the QoS that was asked for (clean session: %s)',
    async (clean) => {
      await using world = await openIngest(auto())
      const device = await world.connection('curious')
      await device.connect({ clean })
      const asked = [
        ['#', 1],
        ['commands/+/x', 0],
        ['a', 2],
        ['a', 0],
        ['$SYS/#', 1],
        ['+', 1],
      ] as const
      expect(await granted(device, asked)).toEqual([1, 0, 2, 0, 1, 1])
      expect(world.ingest.counters()).toMatchObject({ subscriptions: 6, subscriptionsRefused: 0 })
    },
  )

  test('are refused one by one with 128 where the config says so, and the connection stays', async () => {
    await using world = await openIngest(auto(), { subscriptions: 'refuse' })
    const device = await world.device('curious')
    const asked = [
      ['#', 1],
      ['a', 0],
    ] as const
    expect(await granted(device, asked)).toEqual([128, 128])
    expect(world.ingest.counters()).toMatchObject({ subscriptions: 0, subscriptionsRefused: 2 })
    device.publish({ topic: 'a', payload: 'x' })
    await device.acked(1)
  })

  test('get nothing: neither what others publish nor what they publish themselves', async () => {
    await using world = await openIngest(auto())
    const curious = await world.device('curious')
    expect(await granted(curious, [['#', 1]])).toEqual([1])
    const other = await world.device('other')
    other.publish({ topic: 'a', payload: 'x', retain: true })
    await other.acked(1)
    curious.publish({ topic: 'a', payload: 'y' })
    await curious.acked(1)
    curious.send({ cmd: 'pingreq' })
    await curious.until((received) => received.some(({ cmd }) => cmd === 'pingresp'))
    expect(curious.received.map(({ cmd }) => cmd)).toEqual(['connack', 'suback', 'puback', 'pingresp'])
  })

  test('are not kept: a session that is resumed gets its answer again', async () => {
    await using world = await openIngest(auto())
    const first = await world.connection('truck')
    await first.connect({ clean: false })
    await granted(first, [['commands', 1]])
    first.send({ cmd: 'disconnect' })
    await first.gone()
    const second = await world.connection('truck')
    expect(await second.connect({ clean: false })).toMatchObject({ sessionPresent: true })
    expect(await granted(second, [['commands', 1]])).toEqual([1])
  })

  test('a SUBACK has a code for each of 10,000 topic filters', async () => {
    await using world = await openIngest(auto(), { controlPacketsPerSecondMax: 100_000 })
    const device = await world.device('curious')
    const asked = Array.from({ length: 10_000 }, (_, index) => [`t/${index}`, 1] as const)
    expect(await granted(device, asked)).toEqual(asked.map(() => 1))
  })

  test('unsubscribing is answered', async () => {
    await using world = await openIngest(auto())
    const device = await world.device('curious')
    device.send({ cmd: 'unsubscribe', messageId: 513, unsubscriptions: ['#', 'never/subscribed'] })
    await device.until((received) => received.some(({ cmd }) => cmd === 'unsuback'))
    expect(device.received.at(-1)).toMatchObject({ messageId: 513 })
  })

  test('200,000 of them leave nothing behind', async () => {
    await using world = await openIngest(auto(), { controlPacketsPerSecondMax: 100_000 })
    const device = await world.device('curious')
    let before = 0
    for (let round = 0; round < 21; round += 1) {
      const subscriptions = Array.from({ length: 10_000 }, (_, n) => ({
        topic: `${round}/${n}`,
        qos: 1 as const,
      }))
      device.send({ cmd: 'subscribe', messageId: round + 1, subscriptions })
      await device.until((received) => received.filter(({ cmd }) => cmd === 'suback').length > round)
      if (round === 0) before = heapBytes()
    }
    expect(world.ingest.counters().subscriptions).toBe(210_000)
    // What the device itself keeps are the 200,000 codes. A filter that is stored costs more than 100 bytes.
    expect(heapBytes() - before).toBeLessThan(10e6)
  })

  test('what follows a fault or DISCONNECT in the same segment is not answered', async () => {
    await using world = await openIngest(auto())
    const subscribe = Buffer.from([0x82, 6, 0, 1, 0, 1, 0x61, 0])
    for (const end of [Buffer.from([0xe0, 0]), Buffer.from([0x62, 2, 0, 0])]) {
      const device = await world.connection('truck')
      device.sendBytes(Buffer.concat([connectBytes('truck'), end, subscribe]))
      await device.gone()
      expect(device.received.map(({ cmd }) => cmd)).toEqual(['connack'])
    }
    expect(world.ingest.counters().subscriptions).toBe(0)
  })

  test('a client that subscribes in one segment with its CONNECT and a message gets all answers', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.connection('truck')
    const subscribe = Buffer.from([0x82, 6, 0, 1, 0, 1, 0x61, 1])
    const message = publishBytes({ topic: 't', payload: 'x', messageId: 2 })
    device.sendBytes(Buffer.concat([connectBytes('truck'), subscribe, message, subscribe]))
    await device.until((received) => received.length === 4)
    expect(device.received.map(({ cmd }) => cmd).toSorted()).toEqual([
      'connack',
      'puback',
      'suback',
      'suback',
    ])
    expect(spool.payloads.map(textOf)).toEqual(['x'])
  })

  test('a client that only subscribes is kept alive by it', async () => {
    useFakeTimers()
    await using world = await openIngest(auto())
    const device = await world.connection('quiet')
    await device.connect({ keepalive: 60 })
    for (let count = 1; count <= 4; count += 1) {
      vi.advanceTimersByTime(80_000)
      device.send({ cmd: 'subscribe', messageId: count, subscriptions: [{ topic: 'a', qos: 0 }] })
      await device.until((received) => received.length > count)
    }
    expect(device.closed).toBe(false)
    vi.advanceTimersByTime(92_000)
    await device.gone()
  })
})

describe('real clients that subscribe', () => {
  test.each([3, 4] as const)('mqtt.js with protocol version %i', async (protocolVersion) => {
    await using world = await openIngest(auto())
    const protocolId = protocolVersion === 3 ? 'MQIsdp' : 'MQTT'
    const options = { protocolVersion, protocolId, clientId: 'js', reconnectPeriod: 0 } as const
    const client = await connectAsync(`mqtt://127.0.0.1:${world.port}`, options)
    const grants = await client.subscribeAsync({ 'commands/js': { qos: 1 }, 'config/#': { qos: 2 } })
    expect(grants.map(({ topic, qos }) => [topic, qos])).toEqual([
      ['commands/js', 1],
      ['config/#', 2],
    ])
    await client.publishAsync('t', 'x', { qos: 1 })
    await client.unsubscribeAsync('commands/js')
    await client.endAsync()
    await closed(world)
    expect([...world.ingest.counters().droppedByReason]).toEqual([])
  })

  test.skipIf(!existsSync(mosquittoSub))(
    'mosquitto_sub stays connected until its own timeout, and gets nothing',
    async () => {
      await using world = await openIngest(auto())
      const args = [
        '-h',
        '127.0.0.1',
        '-p',
        String(world.port),
        '-t',
        'commands/#',
        '-q',
        '1',
        '-d',
        '-W',
        '1',
      ]
      const { stdout } = await run(mosquittoSub, args).catch((error: { stdout: string }) => error)
      expect(stdout).toContain('Subscribed (mid: 1): 1')
      expect(stdout).not.toContain('PUBLISH')
      expect(world.ingest.counters().subscriptions).toBe(1)
    },
  )
})
