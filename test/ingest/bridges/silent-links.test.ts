// Links to a real Mosquitto that are connected and bring nothing, and retained messages over restarts.

import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import type { BridgeOptions } from '../../../src/ingest/bridges/bridges.ts'
import { startCutProxy } from '../../support/cut-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { openIngest, textOf } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { hasMosquitto, publishAll, startMosquitto } from '../../support/mosquitto.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

const shortTimes = { reconnectFirstMs: 20, silentAfterMs: 250, unheardAfterMs: 250 }

async function openBridge(
  options: object,
  times: Partial<BridgeOptions> = {},
  commits: 'auto' | 'by hand' = 'auto',
) {
  const spool = createMemoryIntakeSpool({ commits })
  const parsed = parseMqttBridges([
    { name: 'depot', topics: ['t/#'], client_id: 'gw', keepalive: '1s', ...options },
  ])
  const bridges = parsed.map((one) => ({ ...bridgeOptions(one), reconnectFirstMs: 20, ...times }))
  const world = await openIngest(spool, { bridges })
  const link = () => world.ingest.messageSources()[1]!.links[0]!
  return {
    texts: () => spool.payloads.map(textOf).toSorted(),
    source: () => world.ingest.messageSources()[1]!,
    link,
    silent: () => [...world.ingest.states()].filter(({ code }) => code === 'MESSAGE_SOURCE_SILENT'),
    connected: () => eventually(() => link().state === 'connected'),
    eventsOf: (kind: string): readonly Record<string, unknown>[] =>
      world.events.filter((event) => event.kind === kind),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

const messages = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({ topic: `t/${index % 7}`, payload: `m${from + index}` }))

describe.skipIf(!hasMosquitto)('a silent link to Mosquitto', () => {
  test('that answers pings and delivers nothing is opened again, and nothing is lost', async () => {
    const mosquitto = await startMosquitto()
    const proxy = await startCutProxy(mosquitto.port)
    await using bridge = await openBridge({ url: `mqtt://127.0.0.1:${proxy.port}` }, shortTimes)
    await bridge.connected()
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    await publishAll(url, messages(50))
    await eventually(() => bridge.texts().length === 50)
    proxy.answerPingsOnly()
    await publishAll(url, messages(50, 50))
    await eventually(() => new Set(bridge.texts()).size === 100)
    await eventually(() => bridge.silent().length === 0)
    // No other link error: only the watch ended it.
    expect(new Set(bridge.eventsOf('message_source_lost').map(({ reason }) => reason))).toEqual(
      new Set(['silent']),
    )
    expect(bridge.link().sessionPresent).toBe(true)
  })

  test('whose user may read nothing says so again and again, until the rules of the broker let it', async () => {
    const folder = await newFolder()
    // Mosquitto runs as another user.
    await chmod(folder, 0o755)
    const rules = join(folder, 'acl')
    await writeFile(rules, 'topic write t/#\n', { mode: 0o644 })
    const mosquitto = await startMosquitto({ lines: [`acl_file ${rules}`] })
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    await using bridge = await openBridge({ url }, shortTimes)
    await bridge.connected()
    await publishAll(url, messages(20))
    await eventually(() => bridge.link().losses >= 2)
    expect(bridge.silent()).toMatchObject([{ neverHeard: true }])
    expect(bridge.source()).toMatchObject({ received: 0, isSilent: true })
    await writeFile(rules, 'topic readwrite t/#\n')
    await mosquitto.stop()
    await mosquitto.start()
    await bridge.connected()
    await publishAll(url, messages(20, 20))
    await eventually(() => bridge.texts().length === 20)
    await eventually(() => bridge.silent().length === 0)
  })
})

describe.skipIf(!hasMosquitto)('with retained: once', () => {
  test.each([
    [5, 60],
    // What Mosquitto may send before the first acknowledgement. Behind it, 3.1.1 does not tell which are new.
    ['3.1.1', 20],
  ])('by MQTT %s those that were not stored come after a restart', async (protocol, count) => {
    const mosquitto = await startMosquitto()
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    const publisher = await connectAsync(url)
    const texts = Array.from({ length: count }, (_, index) => `r${100 + index}`)
    for (const text of texts) await publisher.publishAsync(`t/${text}`, text, { qos: 1, retain: true })
    const options = { url, protocol, retained: 'once', window: 20 }
    {
      await using first = await openBridge(options, {}, 'by hand')
      await eventually(() => first.source().received === 20)
      expect(first.texts()).toEqual([])
    }
    await using second = await openBridge(options)
    await eventually(() => new Set(second.texts()).size === count)
    expect(second.texts()).toEqual(texts)
    expect(second.source()).toMatchObject({ redelivered: 20 })
    await publisher.endAsync()
  })
})
