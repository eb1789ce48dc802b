// A daemon whose bridge is changed in the config while messages flow, reloaded and then restarted: another client id,
// broker, topics, number of connections and name; removed, and added again. Nothing that the broker acknowledged to the
// publisher is lost, RESTART_NEEDED or MAPPING_STALE says that a restart applies the change, and MESSAGE_SOURCE_AT_RISK
// (sessions_left) names the session that keeps messages until the config has its client id again.

import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  startPublisher,
  statusOf,
  writeBridgeConfig,
  type BridgeDaemonOptions,
} from '../support/bridge-daemons.ts'
import { eventually } from '../support/eventually.ts'
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon } from '../support/spawned-daemon.ts'

type Change = {
  about: string
  more: Partial<BridgeDaemonOptions>
  /** What the daemon says after the reload. */
  says: 'RESTART_NEEDED' | 'MAPPING_STALE'
  /** A session that it names after the restart. */
  left?: string
}

const times = 'keepalive: 2s, reconnect_max: 1s'

describe.skipIf(!hasMosquitto)('a bridge that is changed while messages flow', () => {
  test('loses nothing, by reload and restart', async () => {
    const { sandbox, url: serviceUrl } = await startSandbox({})
    const mosquitto = await startMosquitto()
    const other = await startMosquitto()
    const base = { clientId: 'gw', brokerPort: mosquitto.port, serviceUrl }
    const config = await writeBridgeConfig(base)
    let daemon = await startSpawnedDaemon(config)
    const isConnected = async () =>
      (await statusOf(daemon)).messageSources.every(({ connections }) =>
        connections.every(({ state }) => state === 'connected'),
      )
    const conditions = async () => (await statusOf(daemon)).conditions
    await eventually(isConnected)
    const publisher = await startPublisher(mosquitto.port, 10)
    const more = async (count: number) => {
      const from = publisher.acked
      await eventually(() => publisher.acked >= from + count)
    }
    await more(300)

    const bridge = (name: string, host: string, port: number) =>
      `{ name: ${name}, url: "mqtt://${host}:${port}", topics: ["t/+"], client_id: gw, ${times} }`
    const here = bridge('depot', '127.0.0.1', mosquitto.port)
    const there = bridge('depot', 'localhost', other.port)
    const changes: Change[] = [
      { about: 'another client id', more: { clientId: 'gw-new' }, says: 'RESTART_NEEDED', left: '"gw"' },
      { about: 'the client id of before', more: {}, says: 'RESTART_NEEDED', left: '"gw-new"' },
      { about: 'another broker', more: { bridges: there }, says: 'RESTART_NEEDED', left: '"gw"' },
      { about: 'the broker of before', more: {}, says: 'RESTART_NEEDED', left: '"gw"' },
      {
        about: 'another topic',
        more: { bridges: here.replace('"t/+"', '"t/+", "u/+"') },
        says: 'RESTART_NEEDED',
      },
      { about: 'the topic of before', more: {}, says: 'RESTART_NEEDED' },
      {
        about: 'three connections',
        more: { bridge: 'share_group: g, connections: 3' },
        says: 'RESTART_NEEDED',
        left: '"gw"',
      },
      { about: 'one connection', more: {}, says: 'RESTART_NEEDED', left: '"gw-1"' },
      {
        about: 'a second bridge',
        more: { bridges: `${here}, ${bridge('yard', 'localhost', other.port)}` },
        says: 'RESTART_NEEDED',
      },
      {
        about: 'another name',
        more: { bridges: bridge('shed', '127.0.0.1', mosquitto.port), source: 'from: [shed],' },
        says: 'MAPPING_STALE',
      },
      {
        about: 'no bridge',
        more: { bridges: '', source: 'from: [broker],', listeners: '{ url: "mqtt://127.0.0.1:0" }' },
        says: 'MAPPING_STALE',
        left: '"gw"',
      },
      { about: 'the bridge of before', more: {}, says: 'RESTART_NEEDED' },
    ]
    let notTaken = 0
    let duplicates = 0
    for (const { about, more: options, says, left } of changes) {
      await writeBridgeConfig({ ...base, ...options, folder: dirname(config) })
      process.kill(daemon.pid, 'SIGHUP')
      await eventually(async () => (await conditions()).some(({ code }) => code === says))
      await more(200)
      const { totals } = await statusOf(daemon)
      notTaken += totals.unmappable + totals.dropped
      duplicates += totals.duplicates
      await daemon.stop()
      await more(100)
      daemon = await startSpawnedDaemon(config)
      await eventually(isConnected)
      await more(200)
      const shown = (await conditions()).filter(({ code }) => code === 'MESSAGE_SOURCE_AT_RISK')
      const isNamed = left === undefined || shown.some(({ what }) => what.includes(left))
      expect([about, isNamed]).toEqual([about, true])
    }
    await publisher.stop()
    await eventually(() => sandbox.stats().distinctPayloadIds >= publisher.acked)
    const { totals } = await statusOf(daemon)
    notTaken += totals.unmappable + totals.dropped
    duplicates += totals.duplicates
    const { distinctPayloadIds, duplicatesAcrossBatches: twice } = sandbox.stats()
    process.stderr.write(
      `bridges: changed configs: ${publisher.acked} published, ${distinctPayloadIds} payloadIds, ` +
        `${duplicates} delivered again and stored once, ${twice} second effects\n`,
    )
    expect({ lost: publisher.acked - distinctPayloadIds, notTaken, twice }).toEqual({
      lost: 0,
      notTaken: 0,
      twice: 0,
    })
  })
})
