// Rebirth requests of Sparkplug: what the gateway asks, and a node of the test that answers over real connections.

import { connectAsync } from 'mqtt'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import { createRebirthRequests } from '../../src/ingest/rebirth-requests.ts'
import { encodeRebirth } from '../../src/mapping/sparkplug/sparkplug-wire.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { messageOf } from '../support/mapping-world.ts'
import { openMqttBroker } from '../support/mqtt-broker.ts'
import { startPipeline } from '../support/pipeline-world.ts'
import { sparkplugPayload, types } from '../support/sparkplug-payload.ts'

const command = 'spBv1.0/Yard/NCMD/GW-1'
const request = (topic = command) => ({ topic, bytes: encodeRebirth(1) })

describe('rebirth requests', () => {
  function requests(publish: (message: Message) => boolean = () => true, isEnabled = true) {
    let nowMs = 0
    const clock = { ...createFakeClock(), monotonic: () => nowMs }
    const advance = (ms: number) => (nowMs += ms)
    const events: string[] = []
    const emit = (event: { kind: string }) => void events.push(event.kind)
    return { clock, advance, events, ...createRebirthRequests({ clock, emit, publish }, isEnabled) }
  }
  const minuteMs = 60_000

  test('to a node that does not answer become rare, to an hour; one that was in order starts again', () => {
    const { clock, advance, request: ask, counters, events } = requests()
    const pauses: number[] = []
    let lastAtMs = clock.monotonic()
    for (let minute = 0; minute < 300; minute += 1) {
      const before = counters().rebirthsRequested
      ask(request(), messageOf(''))
      if (counters().rebirthsRequested > before) {
        pauses.push((clock.monotonic() - lastAtMs) / minuteMs)
        lastAtMs = clock.monotonic()
      }
      advance(minuteMs)
    }
    expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60, 60])
    expect(counters().rebirthsLimited).toBeGreaterThan(100)
    expect(new Set(events)).toEqual(new Set(['rebirth_requested']))
    advance(200 * minuteMs)
    ask(request(), messageOf(''))
    advance(minuteMs)
    ask(request(), messageOf(''))
    expect(counters().rebirthsRequested).toBe(12)
  })

  test('are bounded for all nodes together, and do not count for a node without a way', () => {
    const { advance, request: ask, counters } = requests(({ from }) => from !== 'lost')
    ask(request(), messageOf('', { from: 'lost' }))
    expect(counters()).toEqual({ rebirthsRequested: 0, rebirthsLimited: 0, rebirthsUnreachable: 1 })
    for (let node = 0; node < 1000; node += 1) ask(request(`spBv1.0/Yard/NCMD/${node}`), messageOf(''))
    expect(counters().rebirthsRequested).toBe(20)
    advance(1000)
    ask(request(), messageOf(''))
    expect(counters().rebirthsRequested).toBe(21)
  })

  test('are not sent where the config says so', () => {
    const { request: ask, counters } = requests(() => true, false)
    ask(request(), messageOf(''))
    expect(counters()).toEqual({ rebirthsRequested: 0, rebirthsLimited: 0, rebirthsUnreachable: 0 })
  })
})

const config = (ingest: string) => (baseUrl: string) => `
ingest: ${ingest}
sources: [{ name: yard, preset: sparkplug-b }]
spool: { path: ./spool, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 5ms } }
ops: { listen: "127.0.0.1:0" }
`

/** A node that has published its birth before the gateway was there. It answers a rebirth request. */
async function startNode(url: string) {
  const client = await connectAsync(url, { protocolVersion: 4, clientId: 'node' })
  onTestFinished(() => client.endAsync(true))
  const commands: string[] = []
  let seq = 1
  const publish = (verb: string, metrics: Parameters<typeof sparkplugPayload>[0]['metrics']) =>
    client.publishAsync(
      `spBv1.0/Yard/${verb}/GW-1`,
      sparkplugPayload({ ts: Date.now(), seq, metrics: metrics ?? [] }),
    )
  client.on('message', (topic, bytes) => {
    commands.push(topic)
    if (!bytes.includes('Node Control/Rebirth')) return
    seq = 0
    const at = { ts: Date.now(), type: types.double }
    void publish('NBIRTH', [
      { name: 'GPS/Latitude', alias: 1, double: 51.3, ...at },
      { name: 'GPS/Longitude', alias: 2, double: 9.4, ...at },
    ])
  })
  await client.subscribeAsync('spBv1.0/Yard/NCMD/GW-1', { qos: 1 })
  const move = () => {
    seq += 1
    return publish('NDATA', [
      { alias: 1, double: 51.4 },
      { alias: 2, double: 9.5 },
    ])
  }
  return { commands, move, client }
}

describe('a node of Sparkplug whose birth the gateway missed', () => {
  test('is asked over its connection to the gateway, answers, and its data is delivered', async () => {
    const { gateway, sandbox } = await startPipeline({
      config: config(
        '{ broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }',
      ),
    })
    const url = gateway.addresses.mqtt[0] ?? ''
    const other = await connectAsync(url, { protocolVersion: 4, clientId: 'other' })
    onTestFinished(() => other.endAsync(true))
    const heard: string[] = []
    other.on('message', (topic) => heard.push(topic))
    await other.subscribeAsync('#')
    const node = await startNode(url)
    await node.move()
    await eventually(() => sandbox.stats().payloadsAccepted === 1)
    await node.move()
    await eventually(() => sandbox.stats().payloadsAccepted === 2)
    expect(node.commands).toEqual(['spBv1.0/Yard/NCMD/GW-1'])
    // Nobody else gets it.
    expect(heard).toEqual([])
  })

  test('is asked over the broker of a bridge, answers, and its data is delivered', async () => {
    await using broker = await openMqttBroker()
    const bridge = `{ name: plant, url: "${broker.url}", topics: ["spBv1.0/#"], client_id: gw, protocol: "3.1.1" }`
    const { sandbox, events } = await startPipeline({
      config: config(`{ broker: { listeners: [] }, bridges: [${bridge}] }`),
    })
    await broker.subscribed()
    const node = await startNode(broker.url)
    await eventually(() => events.some(({ kind }) => kind === 'message_source_connected'))
    await node.move()
    await eventually(() => sandbox.stats().payloadsAccepted === 1)
    expect(node.commands).toEqual(['spBv1.0/Yard/NCMD/GW-1'])
    expect(events.find(({ kind }) => kind === 'rebirth_requested')).toMatchObject({ messageSource: 'plant' })
  })
})
