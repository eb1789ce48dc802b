import { describe, expect, test } from 'vitest'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { eventually } from '../../support/eventually.ts'
import {
  mappings,
  openDevice,
  openMember,
  openNats,
  publishAll,
  waitingAt,
} from '../../support/nats-world.ts'

const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => {
    const number = from + index
    return { topic: `t/truck-${number % 10}`, text: `${number % 10}:${number}` }
  })

/** The numbers of each device in the order of the commits. */
function byDevice(texts: readonly string[]): Map<string, number[]> {
  const all = new Map<string, number[]>()
  for (const text of texts) {
    const [device = '', number] = text.split(':')
    all.set(device, [...(all.get(device) ?? []), Number(number)])
  }
  return all
}

const isAscending = (numbers: readonly number[]) =>
  numbers.every((number, index) => index === 0 || number > numbers[index - 1]!)

describe.skipIf(!hasNats)('messages of NATS', { timeout: 60_000 }, () => {
  test('what devices publish over MQTT is taken once, in order per device, and leaves the stream', async () => {
    const engine = await startNats({ lines: mappings })
    await using member = await openMember(engine)
    await eventually(() => member.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const acked = await publishAll(device, [
      ...numbered(500),
      { topic: 'v/truck-1', text: 'v:1' },
      { topic: 'v/truck-1/a//b/', text: 'v:2' },
    ])
    device.end(true)
    expect(acked).toHaveLength(502)
    await eventually(() => member.status().acked === 502)
    expect(member.texts().toSorted()).toEqual(acked.toSorted())
    for (const numbers of byDevice(member.texts()).values()) expect(isAscending(numbers)).toBe(true)
    const topics = member.spool.payloads.map(({ json }) => (JSON.parse(json) as { topic: string }).topic)
    expect(topics).toContain('v/truck-1')
    expect(topics).toContain('v/truck-1/a//b/')
    await using nats = await openNats(engine)
    await eventually(async () => (await waitingAt(nats)) === 0)
    expect(member.status()).toMatchObject({
      kind: 'jetstream',
      received: 502,
      redelivered: 0,
      outstanding: 0,
      partitions: [0, 1, 2, 3].map((n) => ({ partition: `gw-${n}`, member: 'gw-a', role: 'active' })),
    })
  })

  test('what was not committed is not acknowledged, and comes again after a kill of NATS', async () => {
    const engine = await startNats({ lines: mappings })
    await using member = await openMember(engine, {}, { commits: 'by hand' })
    await eventually(() => member.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const acked = await publishAll(device, numbered(300))
    device.end(true)
    await member.spool.ended(300)
    await using nats = await openNats(engine)
    expect(await waitingAt(nats)).toBe(300)
    await engine.kill(0)
    // The old link is gone: what is durable now is acknowledged to nobody.
    await eventually(() => member.events('message_source_lost').length > 0)
    member.spool.commit()
    await engine.restart(0)
    await member.spool.ended(600)
    member.spool.commit()
    await eventually(() => member.status().acked === 300)
    // NATS forgets that it had delivered some of them, and says so of the others only.
    expect(member.status().received).toBe(600)
    // Duplicates are in the dedup window.
    expect(member.texts().toSorted()).toEqual(acked.toSorted())
    await eventually(async () => (await waitingAt(nats)) === 0)
  })

  test('what another member had outstanding comes first, and in order', async () => {
    const engine = await startNats({ lines: mappings })
    await using nats = await openNats(engine)
    {
      await using first = await openMember(engine, { window: 50 }, { commits: 'by hand' })
      await eventually(() => first.active() === 4)
      const device = await openDevice(engine.nodes[0]!.mqttPort)
      await publishAll(device, numbered(400))
      device.end(true)
      await eventually(() => first.status().partitions.every(({ outstanding }) => outstanding === 50))
      // As after a kill: nothing of it is acknowledged or given back.
      first.spool.lose()
    }
    const infos = await Promise.all([0, 1, 2, 3].map((n) => nats.jsm.consumers.info(mqttStream, `gw-${n}`)))
    expect(infos.map((info) => info.num_ack_pending)).toEqual([50, 50, 50, 50])
    await using second = await openMember(engine, { member: 'gw-b' })
    await eventually(() => second.status().acked === 400)
    expect(second.status()).toMatchObject({ received: 400, redelivered: 200 })
    for (const numbers of byDevice(second.texts()).values()) {
      expect(numbers).toHaveLength(40)
      expect(isAscending(numbers)).toBe(true)
    }
  })

  test('deliveries that went to somebody else are not acknowledged', async () => {
    const engine = await startNats({ lines: mappings })
    await using nats = await openNats(engine)
    await using member = await openMember(engine, { window: 10 }, { commits: 'by hand' })
    await eventually(() => member.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await publishAll(
      device,
      Array.from({ length: 100 }, (_, n) => ({ topic: 't/truck-7', text: `7:${n}` })),
    )
    device.end(true)
    const durable = await firstPending()
    // A stranger pulls of the same durable, and dies with what it got.
    const stolen: string[] = []
    nats.nc.subscribe('stranger', { callback: (_error, message) => void stolen.push(message.string()) })
    nats.nc.publish(
      `$JS.API.CONSUMER.MSG.NEXT.${mqttStream}.${durable}`,
      JSON.stringify({ batch: 5, no_wait: true }),
      {
        reply: 'stranger',
      },
    )
    await eventually(() => stolen.length >= 5)
    const commits = setInterval(() => member.spool.commit(), 20)
    await eventually(() => member.texts().length === 100)
    clearInterval(commits)
    const numbers = byDevice(member.texts()).get('7')!
    expect(numbers).toHaveLength(100)
    expect(isAscending(numbers)).toBe(true)
    expect(numbers).toEqual(expect.arrayContaining(stolen.map((text) => Number(text.split(':')[1]))))

    async function firstPending(): Promise<string> {
      for (;;) {
        const busy = member.status().partitions.find(({ outstanding }) => outstanding === 10)
        if (busy !== undefined) return busy.partition
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  })

  test('a planned stop takes nothing more while messages come, and loses none', async () => {
    const engine = await startNats({ lines: mappings })
    await using first = await openMember(engine, { window: 20 }, { commits: 'by hand' })
    await eventually(() => first.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const sent = publishAll(device, numbered(3000))
    const commits = setInterval(() => first.spool.commit(), 10)
    await eventually(() => first.status().acked > 200)
    await first.world.ingest.stopAccepting()
    const { received } = first.status()
    const acked = await sent
    // The first one still gives its share away, which takes longer than a consumer waits before it begins again.
    await using second = await openMember(engine, { member: 'gw-b' })
    await eventually(() => second.active() === 2 && second.status().received > 500)
    expect(first.status().received).toBe(received)
    await first.world.ingest.close()
    clearInterval(commits)
    await eventually(() => first.texts().length + second.texts().length >= acked.length)
    device.end(true)
    expect([...first.texts(), ...second.texts()].toSorted()).toEqual(acked.toSorted())
  })

  test('a message above max_message_bytes is a dead letter, and nothing waits behind it', async () => {
    const engine = await startNats({ lines: mappings })
    await using member = await openMember(engine, { max_message_bytes: '1KiB' })
    await eventually(() => member.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const large = 'x'.repeat(5000)
    const acked = await publishAll(device, [
      { topic: 't/truck-7', text: '7:1' },
      { topic: 't/truck-7', text: large },
      { topic: 't/truck-7', text: 'y'.repeat(100_000) },
      { topic: 't/truck-7', text: '7:2' },
    ])
    device.end(true)
    expect(acked).toHaveLength(4)
    await eventually(() => member.status().acked === 4)
    expect(member.texts()).toEqual(['7:1', '7:2'])
    expect(
      member.spool.deadLetters.map(({ reason, envelope }) => ({ reason, bytes: envelope?.bytes })),
    ).toEqual([
      { reason: 'OVERSIZED', bytes: Buffer.from(large).toString('base64') },
      { reason: 'OVERSIZED', bytes: '' },
    ])
    expect(member.risks()).toMatchObject([
      {
        risk: 'oversized',
        detail: expect.stringMatching(/larger than max_message_bytes \(1\.0 KiB\)/) as string,
      },
    ])
    await using nats = await openNats(engine)
    await eventually(async () => (await waitingAt(nats)) === 0)
  })
})
