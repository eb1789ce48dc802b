import { AckPolicy } from '@nats-io/jetstream'
import { generate } from 'mqtt-packet'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkJetStream } from '../../../src/ingest/jetstream/jetstream-check.ts'
import { jetstreamBridgeSchema } from '../../../src/ingest/jetstream/jetstream-config.ts'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasNats, startNats, type NatsOptions } from '../../engines/nats-engine.ts'
import { eventually } from '../../support/eventually.ts'
import {
  mappings,
  openDevice,
  openMember,
  openNats,
  publishAll,
  type NatsMember,
} from '../../support/nats-world.ts'

const like = (pattern: RegExp) => expect.stringMatching(pattern) as string
const users = (permissions = '') =>
  `authorization { users: [ { user: gw, password: right${permissions === '' ? '' : `, permissions: ${permissions}`} }, { user: other, password: other } ] }`

const lines = (...more: string[]): NatsOptions => ({ lines: [...mappings, ...more] })
const mappingsTo = (partitions: number) => [
  `mappings { "t.*": "gw.{{partition(${partitions},1)}}.t.{{wildcard(1)}}" }`,
]
const right = { username: 'gw', password: 'right' }

function check({ urls }: Pick<Engine, 'urls'>, more: Record<string, unknown> = {}) {
  const config = jetstreamBridgeSchema.parse({
    name: 'nats',
    url: urls,
    topics: ['t/{device}', 'v/{device}/#'],
    durables: { prefix: 'gw', partitions: 4 },
    ...more,
  })
  return checkJetStream(config, new AbortController().signal)
}

const atRisk = (member: NatsMember, risk: string) => member.risks().filter((state) => state.risk === risk)
const isSafe = (member: NatsMember, risk: string) => atRisk(member, risk).length === 0

describe.skipIf(!hasNats)('what is not as it must be at NATS', { timeout: 60_000 }, () => {
  test('nothing is there: stream, bucket and durables are named one after the other, and mended by the commands', async () => {
    const engine = await startNats(lines())
    await using nats = await openNats(engine)
    await using member = await openMember(engine, { provision: false })
    const faults = () =>
      member.events('message_source_lost').map(({ reason, act }) => `${String(reason)}: ${String(act)}`)
    await eventually(() =>
      faults().some((fault) => fault.startsWith('not_found: NATS creates it when the first MQTT client')),
    )
    expect(await check(engine)).toMatchObject({
      state: 'failed',
      why: like(/no stream \$MQTT_msgs/),
    })
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await eventually(() => faults().some((fault) => fault.includes('nats kv add gw-members')))
    await nats.jsm.streams.add({
      name: 'KV_gw-members',
      subjects: ['$KV.gw-members.>'],
      max_msgs_per_subject: 1,
    })
    await eventually(() => atRisk(member, 'durable_missing').length > 0)
    expect(atRisk(member, 'durable_missing')[0]).toMatchObject({
      detail: like(/gw-0 .* does not exist\. NATS acknowledges .* does not store/),
      act: like(/nats consumer add '\$MQTT_msgs' gw-0 --pull --ack=all .*--filter='\$MQTT\.msgs\.gw\.0\.>'/),
    })
    expect(await check(engine)).toMatchObject({
      state: 'failed',
      what: like(/gw-0 does not exist/),
    })
    for (const n of [0, 1, 2, 3])
      await nats.jsm.consumers.add(mqttStream, {
        durable_name: `gw-${n}`,
        ack_policy: AckPolicy.All,
        filter_subject: `$MQTT.msgs.gw.${n}.>`,
        max_ack_pending: 20_000,
      })
    await eventually(() => isSafe(member, 'durable_missing'))
    await publishAll(device, [{ topic: 't/truck-1', text: 'one' }])
    await eventually(() => member.status().acked === 1)
    device.end(true)
    expect(await check(engine)).toMatchObject({
      state: 'ok',
      what: like(/"t\.\*": "gw\.\{\{partition\(4,1\)\}\}/),
    })
  })

  test.each([
    [{ ack_policy: AckPolicy.Explicit }, /ack_policy explicit/, /another `durables.prefix`/],
    [
      { filter_subject: '$MQTT.msgs.gw.9.>' },
      /filters .*gw\.9/,
      /nats consumer edit .*--filter='\$MQTT\.msgs\.gw\.1\.>'/,
    ],
    [{ inactive_threshold: 60e9 }, /deleted with its messages after 1 min/, /--inactive-threshold=0/],
    [{ max_deliver: 5 }, /after 5 deliveries/, /--max-deliver=-1/],
    [{ max_ack_pending: 10 }, /allows 10 outstanding/, /--max-pending=20000/],
    [{ ack_wait: 1e9 }, /delivers again after 1 s/, /--wait=/],
  ])('a durable with %j is refused, the others are used', async (different, detail, act) => {
    const engine = await startNats(lines())
    await using nats = await openNats(engine)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await nats.jsm.consumers.add(mqttStream, {
      durable_name: 'gw-1',
      ack_policy: AckPolicy.All,
      filter_subject: '$MQTT.msgs.gw.1.>',
      max_ack_pending: 20_000,
      ...different,
    })
    await using member = await openMember(engine)
    await eventually(() => atRisk(member, 'durable_differs').length > 0)
    expect(atRisk(member, 'durable_differs')[0]).toMatchObject({
      detail: like(detail),
      act: like(act),
    })
    // truck-7 is in the partition 0, truck-1 in the partition 1.
    await publishAll(device, [{ topic: 't/truck-7', text: 'one' }])
    await eventually(() => member.status().acked === 1)
    expect(await check(engine, { provision: true })).toMatchObject({
      state: 'failed',
      what: like(detail),
    })
    device.end(true)
  })

  test.each([
    [[], /does not map the subject t\./],
    [
      ['mappings { "t.*": "gw.{{partition(8,1)}}.t.{{wildcard(1)}}" }'],
      /to 8 partitions, and this gateway has 4\. Where the durables gw-4 to gw-7 do not exist, .* lost/,
    ],
    [['mappings { "t.*": "gw.9.t.{{wildcard(1)}}" }'], /to the partition 9, and .*\(4\) say \d/],
  ])('mappings of the account: %j', async (given, detail) => {
    const engine = await startNats({ lines: given })
    await using member = await openMember(engine, { topics: ['t/{device}'] })
    await eventually(() => atRisk(member, 'mapping_differs').length > 0)
    expect(atRisk(member, 'mapping_differs')[0]).toMatchObject({
      detail: like(detail),
      act: like(/mappings \{ "t\.\*": "gw\.\{\{partition\(4,1\)\}\}\.t\.\{\{wildcard\(1\)\}\}" \}/),
    })
  })

  test.each([
    [{ username: 'gw', password: 'wrong' }, users(), 'refused', /refuses the user "gw"/],
    [{}, users(), 'refused', /a client without a user/],
    [
      right,
      users('{ publish: "t.>", subscribe: "_INBOX.>" }'),
      'permission_denied',
      /may not publish to "\$JS\.API/,
    ],
    [right, users('{ publish: ">", subscribe: "t.>" }'), 'permission_denied', /may not subscribe to "_INBOX/],
  ])('credentials %j', async (credentials, config, reason, detail) => {
    const engine = await startNats(lines(config))
    await using member = await openMember(engine, credentials)
    await eventually(() => member.events('message_source_lost').length > 0)
    expect(member.events('message_source_lost')[0]).toMatchObject({
      reason,
      detail: like(detail),
    })
    expect(await check(engine, credentials)).toMatchObject({
      state: 'failed',
      why: like(detail),
    })
  })

  test('a new NATS is in order for a check with provision, and its first durables are no condition', async () => {
    const engine = await startNats(lines())
    expect(await check(engine, { provision: true })).toMatchObject({
      state: 'ok',
      what: like(/creates the stream \$MQTT_msgs, gw-0, .*gw-3, gw-members\. Start it/),
    })
    await using member = await openMember(engine)
    await eventually(() => member.active() === 4)
    expect(atRisk(member, 'durable_created')).toEqual([])
  })

  test('a check says that it cannot compare the mapping without the rights for the probe', async () => {
    const rights = (more: string) =>
      `{ publish: ["$JS.API.>", "$KV.>"${more}], subscribe: ["_INBOX.>", "$KV.>"${more}] }`
    const probe = ', "t.>", "v.>", "gw.>"'
    const without = await startNats(lines(users(rights(''))))
    expect(await check(without, { ...right, provision: true })).toMatchObject({
      state: 'warning',
      what: like(/creates the stream .* mapping of partitions was not checked/),
      act: like(/"t\.\*": "gw\./),
    })
    const complete = await startNats(lines(users(rights(probe))))
    expect(await check(complete, { ...right, provision: true })).toMatchObject({ state: 'ok' })
  })

  test('a durable beyond the partitions is a finding: nobody takes its messages', async () => {
    const engine = await startNats({
      lines: ['mappings { "t.*": "gw.{{partition(2,1)}}.t.{{wildcard(1)}}" }'],
    })
    await using member = await openMember(engine, { topics: ['t/{device}'] })
    await eventually(() => member.active() === 4)
    const fewer = { topics: ['t/{device}'], durables: { prefix: 'gw', partitions: 2 } }
    expect(await check(engine, fewer)).toMatchObject({
      state: 'warning',
      what: like(/gw-2 exists, and with partitions: 2 no gateway takes its 0 messages/),
    })
  })

  test('messages in a durable beyond the partitions are a risk, until they are taken', async () => {
    const engine = await startNats(lines())
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await using nats = await openNats(engine)
    {
      await using all = await openMember(engine)
      await eventually(() => all.active() === 4)
    }
    await publishAll(device, [{ topic: 'gw/3/t/truck', text: 'one' }])
    const fewer = { durables: { prefix: 'gw', partitions: 3 } }
    await using member = await openMember(engine, fewer, { times: { lookEveryMs: 200 } })
    await eventually(() => atRisk(member, 'partition_left').length === 1)
    expect(atRisk(member, 'partition_left')[0]).toMatchObject({
      detail: 'Messages wait in gw-3, and with partitions: 3 no gateway takes them',
    })
    await nats.jsm.consumers.delete(mqttStream, 'gw-3')
    await eventually(() => isSafe(member, 'partition_left'))
    device.end(true)
  })

  test('other servers and ports are named', async () => {
    const engine = await startNats(lines())
    const { mqttPort, monitorPort } = engine.nodes[0]!
    const at = (port: number, scheme = 'nats') =>
      check({ urls: [`${scheme}://127.0.0.1:${port}`] }, { connect_timeout: '1s' })
    const ports = /NATS usually has 4222; 1883 is its port for MQTT, 8222 that for monitoring/
    expect(await at(monitorPort)).toMatchObject({
      state: 'failed',
      why: like(/not NATS|no answer of nats:.* in `connect_timeout`/),
      act: like(ports),
    })
    expect(await at(mqttPort)).toMatchObject({
      state: 'failed',
      why: like(/no answer of nats:.* in `connect_timeout`|closed before NATS accepted/),
      act: like(ports),
    })
    expect(await at(1)).toMatchObject({
      state: 'failed',
      why: like(/Nothing listens/),
    })
    expect(await at(engine.nodes[0]!.port, 'nats+tls')).toMatchObject({
      state: 'failed',
      why: like(/offers no TLS/),
    })
  })

  test('two gateways with one name: the second one takes nothing, and says so', async () => {
    const engine = await startNats(lines())
    await using first = await openMember(engine)
    await eventually(() => first.active() === 4)
    await using second = await openMember(engine)
    await eventually(() => atRisk(second, 'member_twice').length > 0)
    expect(second.active()).toBe(0)
    expect(first.active()).toBe(4)
    await first.world.ingest.close()
    await eventually(() => second.active() === 4)
    expect(atRisk(second, 'member_twice')).toEqual([])
  })

  test('a mapping that comes, changes or goes while the gateway is connected is noticed', async () => {
    const engine = await startNats()
    const path = join(engine.folder, 'a.conf')
    const config = await readFile(path, 'utf8')
    const reload = async (more: readonly string[]) => {
      await writeFile(path, `${config}${more.join('\n')}\n`)
      process.kill(engine.pid(0)!, 'SIGHUP')
    }
    await using member = await openMember(engine, {}, { times: { lookEveryMs: 200 } })
    const found = () => atRisk(member, 'mapping_differs').map(({ detail }) => detail)
    await eventually(() => found().length === 1)
    await reload(mappings)
    await eventually(() => isSafe(member, 'mapping_differs'))
    await reload(mappings.map((line) => line.replace('partition(4', 'partition(8')))
    await eventually(() => found().length === 1)
    expect(found()[0]).toMatch(/to 8 partitions, and this gateway has 4\. /)
    await reload([])
    await eventually(() => /does not map/.test(found()[0] ?? ''))
    expect(member.events('message_source_connected')).toHaveLength(1)
  })

  test('more partitions while devices publish: the gateways first, then the account, and nothing is lost', async () => {
    const engine = await startNats({ lines: mappingsTo(4) })
    const path = join(engine.folder, 'a.conf')
    const config = await readFile(path, 'utf8')
    const gateway = (member: string, partitions: number) =>
      openMember(
        engine,
        { member, topics: ['t/{device}'], durables: { prefix: 'gw', partitions } },
        { times: { lookEveryMs: 200 } },
      )
    const sent: string[] = []
    const over = new AbortController()
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const publishing = async () => {
      for (let n = 0; !over.signal.aborted; n += 1) {
        const text = `${n % 40}:${n}`
        sent.push(...(await publishAll(device, [{ topic: `t/truck-${n % 40}`, text }])))
      }
    }
    await using former = await gateway('gw-a', 4)
    await eventually(() => former.active() === 4)
    const published = publishing()
    await eventually(() => former.texts().length > 100)
    // The next version of the config, gateway after gateway. It waits for the last one with 4.
    await using next = await gateway('gw-b', 8)
    await eventually(() => atRisk(next, 'partitions_differ').length === 1)
    await former.world.ingest.close()
    await eventually(() => next.active() === 8 && next.texts().length > 100)
    expect(atRisk(next, 'mapping_behind')).toMatchObject([
      {
        detail: like(/to 4 partitions, and this gateway has 8\. Nothing is lost/),
        act: like(/partition\(8,1\)/),
      },
    ])
    await writeFile(path, config.replace('partition(4', 'partition(8'))
    process.kill(engine.pid(0)!, 'SIGHUP')
    await eventually(() => isSafe(next, 'mapping_behind'))
    const before = next.texts().length
    await eventually(() => next.texts().length > before + 200)
    over.abort()
    await published
    device.end(true)
    await eventually(() => former.texts().length + next.texts().length >= sent.length)
    const taken = [...former.texts(), ...next.texts()]
    expect(taken.toSorted()).toEqual(sent.toSorted())
    for (const truck of Array.from({ length: 40 }, (_, index) => `${index}:`)) {
      const numbers = taken.filter((text) => text.startsWith(truck)).map((text) => Number(text.split(':')[1]))
      expect(numbers).toEqual(numbers.toSorted((one, other) => one - other))
    }
    for (const risk of ['durable_created', 'mapping_differs', 'partition_mixed', 'engine_lost_messages'])
      expect(atRisk(next, risk)).toEqual([])
  })

  test('what is deleted while the gateway runs comes back, and what was lost with it is said', async () => {
    const engine = await startNats(lines())
    await using nats = await openNats(engine)
    await using member = await openMember(engine, { custody: 'delivered' }, { times: { lookEveryMs: 200 } })
    await eventually(() => member.active() === 4)
    await nats.jsm.streams.delete('gw-parked')
    await eventually(() => atRisk(member, 'custody_deleted').length === 1)
    expect(atRisk(member, 'custody_deleted')[0]).toMatchObject({
      detail: like(/^The stream gw-parked was deleted while .* parked in it are lost/),
    })
    await nats.jsm.streams.delete('KV_gw-members')
    await eventually(() =>
      nats.jsm.streams.info('KV_gw-members').then(
        () => true,
        () => false,
      ),
    )
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await publishAll(device, [{ topic: 't/truck-7', text: 'one' }])
    await eventually(() => member.texts().length === 1)
    device.end(true)
    expect(member.events('message_source_connected')).toHaveLength(1)
  })

  test('two gateways with other numbers of partitions: the second one takes nothing until the first one stops', async () => {
    const engine = await startNats(lines())
    await using first = await openMember(engine)
    await eventually(() => first.active() === 4)
    const more = { member: 'gw-b', durables: { prefix: 'gw', partitions: 8 } }
    await using second = await openMember(engine, more)
    await eventually(() => atRisk(second, 'partitions_differ').length > 0)
    expect(atRisk(second, 'partitions_differ')[0]).toMatchObject({
      detail:
        'The gateway gw-a shares 4 partitions, and this one has partitions: 8. This one takes no messages',
      act: like(/the same `durables\.partitions`/),
    })
    expect(second.active()).toBe(0)
    expect(first.active()).toBe(4)
    await first.world.ingest.close()
    await eventually(() => second.active() === 8)
    expect(atRisk(second, 'partitions_differ')).toEqual([])
  })

  test('streams of custody are named with the command, and mended; those that devices can reach, too', async () => {
    const engine = await startNats(lines())
    await using nats = await openNats(engine)
    {
      // Everything but the streams of custody.
      await using before = await openMember(engine)
      await eventually(() => before.active() === 4)
    }
    const custody = { custody: 'delivered' }
    const found = (member: NatsMember, risk: string) =>
      atRisk(member, risk).map(({ detail, about, act }) => ({ detail, about, act }))
    await using member = await openMember(engine, { provision: false, ...custody })
    await eventually(() => found(member, 'queue_missing').length === 1)
    expect(found(member, 'queue_missing')).toEqual([
      {
        detail: 'The stream gw-parked does not exist, in which custody stores what waits longer than others',
        about: [
          like(/^The stream gw-parked /),
          like(/^The stream gw-dead does not exist, in which custody stores copies of dead letters$/),
          like(
            /^The durable gw-parked of the stream gw-parked does not exist, by which parked entries come back$/,
          ),
        ],
        act: like(
          /^Run: nats stream add gw-parked --subjects='gw-parked\.\+' --retention=work .* Or set provision: true\.$/,
        ),
      },
    ])
    // The partitions are taken all the same.
    await eventually(() => member.active() === 4)
    expect(await check(engine, custody)).toMatchObject({
      state: 'failed',
      what: like(/The stream gw-parked does not exist/),
      why: like(/2 more: The stream gw-dead/),
    })
    await nats.jsm.streams.add({ name: 'gw-parked', subjects: ['gw-parked.>'], retention: 'workqueue' })
    await nats.jsm.streams.add({ name: 'gw-dead', subjects: ['gw-dead.+'] })
    await nats.jsm.consumers.add('gw-parked', { durable_name: 'gw-parked', ack_policy: AckPolicy.Explicit })
    await eventually(() => isSafe(member, 'queue_missing'))
    await eventually(() => found(member, 'queue_differs').length > 0)
    expect(found(member, 'queue_differs')).toEqual([
      {
        detail:
          'The stream gw-parked takes the subjects gw-parked.>, and must take gw-parked.+ alone, which no device can publish to',
        about: [like(/^The stream gw-parked takes the subjects /)],
        act: "Run: nats stream edit gw-parked --force --subjects='gw-parked.+'.",
      },
    ])
    expect(await check(engine, custody)).toMatchObject({
      state: 'failed',
      what: like(/must take gw-parked\.\+ alone/),
    })
    await nats.jsm.streams.update('gw-parked', { subjects: ['gw-parked.+'] })
    await eventually(() => isSafe(member, 'queue_differs'))
    expect(await check(engine, custody)).toMatchObject({ state: 'ok' })
  })

  test('a device cannot store an entry of custody, whatever it publishes to', async () => {
    const engine = await startNats(lines())
    await using nats = await openNats(engine)
    await using member = await openMember(engine, { custody: 'delivered' })
    await eventually(() => member.active() === 4)
    const stored = async () => {
      const infos = await Promise.all(['gw-parked', 'gw-dead'].map((name) => nats.jsm.streams.info(name)))
      return infos.map(({ state }) => state.last_seq)
    }
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const topics = ['gw-parked', 'gw-dead', 'gw-parked/x', 'gw-parked//', 'gw-dead/-', 'gw-parked/%2B']
    const acked = await publishAll(
      device,
      topics.map((topic) => ({ topic, text: topic })),
    )
    device.end(true)
    expect(acked).toHaveLength(topics.length)
    // The topic itself: no client of MQTT sends it, and NATS ends the connection.
    for (const topic of ['gw-parked/+', 'gw-dead/+']) {
      const raw = await openDevice(engine.nodes[0]!.mqttPort, `raw-${topic.length}`)
      const closed = new Promise<void>((resolve) => raw.once('close', () => resolve()))
      raw.stream.write(
        generate({
          cmd: 'publish',
          topic: 'gw-parked/x',
          payload: 'x',
          qos: 1,
          messageId: 7,
          dup: false,
          retain: false,
        })
          .toString('latin1')
          .replace('gw-parked/x', topic.padEnd(11, '+')),
        'latin1',
      )
      await closed
    }
    expect(await stored()).toEqual([0, 0])
    expect(atRisk(member, 'queue_differs')).toEqual([])
  })

  test('a durable that is created is a risk only where messages were published before, or it was deleted', async () => {
    const engine = await startNats(lines())
    await using nats = await openNats(engine)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const details = (member: NatsMember) => atRisk(member, 'durable_created').map(({ detail }) => detail)
    {
      await using first = await openMember(engine)
      await eventually(() => first.active() === 4)
      await publishAll(device, [{ topic: 't/truck-7', text: 'one' }])
      await eventually(() => first.status().acked === 1)
      expect(details(first)).toEqual([])
      await nats.jsm.consumers.delete(mqttStream, 'gw-0')
      await eventually(() => details(first).length === 1)
      expect(details(first)[0]).toMatch(
        /gw-0 was missing and was created\. It was deleted while the gateway ran: NATS has acknowledged/,
      )
    }
    await nats.jsm.consumers.delete(mqttStream, 'gw-0')
    await publishAll(device, [{ topic: 't/truck-7', text: 'two' }])
    await using second = await openMember(engine, { member: 'gw-b' })
    await eventually(() => details(second).length === 1)
    expect(details(second)[0]).toMatch(
      /gw-0 was missing and was created\. Devices had published before: NATS has acknowledged/,
    )
    device.end(true)
  })
})
