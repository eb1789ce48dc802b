// What a bridge with leave_group_on_stop says of its session at a planned stop: left, left with a rest, or kept.

import type { IPublishPacket } from 'mqtt-packet'
import { expect, test } from 'vitest'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { openScriptedBroker, type BrokerScript } from '../../support/scripted-broker.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

const publish = (messageId: number, payload: string): IPublishPacket => ({
  cmd: 'publish',
  topic: 't/1',
  payload,
  qos: 1,
  dup: false,
  retain: false,
  messageId,
})

async function openMember(commits: 'auto' | 'by hand', script: BrokerScript = {}, topics = ['t/#']) {
  const broker = await openScriptedBroker(script)
  const spool = createMemoryIntakeSpool({ commits })
  const url = `mqtt://127.0.0.1:${broker.port}`
  const group = { share_group: 'g', leave_group_on_stop: true }
  const bridges = parseMqttBridges([{ name: 'depot', url, topics, client_id: 'gw', ...group }]).map(
    bridgeOptions,
  )
  const world = await openIngest(spool, { bridges })
  const link = await broker.connection(0)
  const { ingest, events } = world
  await eventually(() => ingest.messageSources()[1]!.links[0]!.state === 'connected')
  return {
    link,
    spool,
    ingest,
    stop: async () => {
      await ingest.stopAccepting()
      await ingest.close()
      return events.flatMap((event) => (event.kind === 'message_source_released' ? [event.session] : []))
    },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      await broker[Symbol.asyncDispose]()
    },
  }
}

test('a member that is quiet after it left has left nothing', async () => {
  await using member = await openMember('auto')
  expect(await member.stop()).toEqual(['left_group'])
})

test('a member whose broker refuses UNSUBSCRIBE is still a member', async () => {
  await using member = await openMember('auto', { unsubscribed: () => 0x87 })
  expect(await member.stop()).toEqual(['kept'])
})

const twelve = Array.from({ length: 12 }, (_, n) => `t/${n}/#`)

test('more than 8 filters leave in packets of 8, for brokers such as AWS IoT Core', async () => {
  await using member = await openMember('auto', {}, twelve)
  expect(await member.stop()).toEqual(['left_group'])
  const packets = member.link.received.flatMap((one) =>
    one.cmd === 'unsubscribe' ? [one.unsubscriptions] : [],
  )
  expect(packets.map(({ length }) => length)).toEqual([8, 4])
  expect(packets.flat()).toEqual(twelve.map((topic) => `$share/g/${topic}`))
})

test.each([0, 11])(
  'a member whose broker refuses to let go of filter %d of 12 is still a member',
  async (n) => {
    const unsubscribed = (filter: string) => (filter === `$share/g/t/${n}/#` ? 0x87 : 0)
    await using member = await openMember('auto', { unsubscribed }, twelve)
    expect(await member.stop()).toEqual(['kept'])
  },
)

test('messages that wait for their acknowledgement are no quiet: the broker may have more behind its window', async () => {
  await using member = await openMember('by hand')
  const { link, spool } = member
  link.send(publish(1, 'one'))
  await spool.ended(1)
  const stopped = member.stop()
  await eventually(() => link.received.some(({ cmd }) => cmd === 'unsubscribe'))
  // A commit that takes longer than the quiet time (300 ms); then the broker sends the next one.
  const committedAtMs = performance.now() + 400
  await eventually(() => performance.now() > committedAtMs)
  spool.commit()
  await eventually(() => link.ackWrites.flat().length === 1)
  link.send(publish(2, 'two'))
  await spool.ended(2)
  spool.commit()
  expect(await stopped).toEqual(['left_group'])
  expect(link.ackWrites.flat()).toEqual([1, 2])
})

test('with a full spool its session keeps the rest', async () => {
  await using member = await openMember('auto')
  member.spool.setHold('spool_full')
  expect(await member.stop()).toEqual(['left_with_rest'])
})

test('a connection that ends meanwhile leaves the rest to the session', async () => {
  await using member = await openMember('auto')
  const { link } = member
  const stopped = member.stop()
  await eventually(() => link.received.some(({ cmd }) => cmd === 'unsubscribe'))
  link.destroy()
  expect(['kept', 'left_with_rest']).toContain((await stopped)[0])
})

test('a member without a connection has not left: its session is kept', async () => {
  await using member = await openMember('auto')
  member.link.destroy()
  await eventually(() => member.ingest.messageSources()[1]!.links[0]!.state === 'waiting')
  expect(await member.stop()).toEqual(['kept'])
})
