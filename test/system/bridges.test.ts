// What daemons with bridges lose: nothing that the broker acknowledged to the publisher. One of them at a real Mosquitto
// is killed and stopped, the broker restarts, the network is cut, and a spool is full. Counted at the publisher and at
// the sandbox. Three on one shared subscription: test/bridges/shared-members.proof.ts.

import { describe, expect, test } from 'vitest'
import type { IntakeMapper } from '../../src/ingest/types.ts'
import {
  bridgeOf,
  isConnected,
  startMs,
  startPublisher,
  statusOf,
  writeBridgeConfig,
} from '../support/bridge-daemons.ts'
import { startFleet } from '../support/bridge-fleet.ts'
import { eventually } from '../support/eventually.ts'
import { openIngest, wordMapper } from '../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../support/memory-intake-spool.ts'
import { hasMosquitto, publishAll, startMosquitto } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon } from '../support/spawned-daemon.ts'

describe.skipIf(!hasMosquitto)('daemons with bridges', () => {
  test('one loses nothing, killed, stopped, cut off and with a broker that restarts', async () => {
    const fleet = await startFleet(['gw'], '')
    const { daemons, mosquitto, proxy, more, restart } = fleet
    await more(500)
    await daemons[0]!.kill()
    await more(500)
    await restart(0)
    await mosquitto.stop()
    await mosquitto.start()
    await more(500)
    proxy.cut()
    await more(500)
    proxy.mend()
    await fleet.allConnected()
    await daemons[0]!.stop()
    await mosquitto.stop()
    await mosquitto.start()
    await more(500)
    await restart(0)
    await fleet.freeze()
    expect(await fleet.outcome('one daemon')).toMatchObject({ lost: 0, notTaken: 0 })
  }, 120_000)

  test('a full spool hands messages back to the broker, and takes them when there is room', async () => {
    const { sandbox, url: serviceUrl } = await startSandbox({})
    sandbox.setFaults([{ always: 503 }])
    const mosquitto = await startMosquitto()
    const options = { clientId: 'gw', brokerPort: mosquitto.port, serviceUrl, spoolBytes: '8MiB' }
    const daemon = await startSpawnedDaemon(await writeBridgeConfig(options))
    await eventually(() => isConnected(daemon))
    const publisher = await startPublisher(mosquitto.port, 60)
    await eventually(async () => (await bridgeOf(daemon)).connections[0]?.state === 'paused')
    const { conditions } = await statusOf(daemon)
    expect(conditions.map(({ code }) => code)).toContain('MESSAGE_SOURCE_PAUSED')
    await publisher.stop()
    sandbox.setFaults([])
    await eventually(() => sandbox.stats().distinctPayloadIds === publisher.acked)
    expect((await statusOf(daemon)).totals.dropped).toBe(0)
  }, 180_000)

  test('a backlog of 10,000 messages at the broker arrives, with the daemon killed twice meanwhile', async () => {
    const { sandbox, url: serviceUrl } = await startSandbox({})
    const mosquitto = await startMosquitto({ lines: ['max_inflight_messages 1000'] })
    const config = await writeBridgeConfig({ clientId: 'gw', brokerPort: mosquitto.port, serviceUrl })
    const first = await startSpawnedDaemon(config)
    await eventually(() => isConnected(first))
    await first.stop()
    const count = 10_000
    await publishAll(
      `mqtt://127.0.0.1:${mosquitto.port}`,
      Array.from({ length: count }, (_, index) => ({
        topic: `t/truck-${index % 20}`,
        payload: JSON.stringify({ t: startMs + index, x: 52 + index / 1e7, y: 13 }),
      })),
    )
    for (const least of [1000, 4000]) {
      const daemon = await startSpawnedDaemon(config)
      await eventually(() => sandbox.stats().distinctPayloadIds >= least)
      await daemon.kill()
    }
    const last = await startSpawnedDaemon(config)
    await eventually(() => sandbox.stats().distinctPayloadIds >= count)
    const { distinctPayloadIds, duplicatesAcrossBatches } = sandbox.stats()
    expect({ distinctPayloadIds, duplicatesAcrossBatches }).toEqual({
      distinctPayloadIds: count,
      duplicatesAcrossBatches: 0,
    })
    expect((await statusOf(last)).totals.unmappable).toBe(0)
  }, 120_000)

  test('a Mosquitto that bridges into the gateway sends what it kept while the gateway was away', async () => {
    const taken = new Set<string>()
    const mapper: IntakeMapper = {
      ...wordMapper,
      map(message) {
        taken.add(message.bytes.toString())
        return wordMapper.map(message)
      },
    }
    const openOn = (port: number) =>
      openIngest(createMemoryIntakeSpool({ commits: 'auto' }), {
        mapper,
        listeners: [{ host: '127.0.0.1', port, tls: null }],
      })
    const first = await openOn(0)
    const mosquitto = await startMosquitto({
      lines: [
        'connection gateway',
        `address localhost:${first.port}`,
        'topic t/# out 1',
        'cleansession false',
        'remote_clientid depot',
        'restart_timeout 1',
        'bridge_protocol_version mqttv311',
      ],
    })
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    const messages = (from: number) =>
      Array.from({ length: 300 }, (_, index) => ({ topic: 't/1', payload: `m${from + index}` }))
    await publishAll(url, messages(0))
    await eventually(() => taken.size >= 300)
    await first[Symbol.asyncDispose]()
    await publishAll(url, messages(300))
    await using second = await openOn(first.port)
    await eventually(() => [...taken].filter((text) => text.startsWith('m')).length === 600)
    expect(second.events.filter(({ kind }) => kind === 'client_dropped')).toEqual([])
  })
})
