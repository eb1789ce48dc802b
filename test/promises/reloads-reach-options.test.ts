// A reload puts changed options in force, and names those that wait for a restart: an operator who reads no option there
// relies on all of them.

import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkInThread } from '../../src/storage/storage.ts'
import { runCli } from '../support/cli-world.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import type { Clock } from '../../src/std/clock.ts'
import { configText } from '../support/config-text.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { acceptAll, failAll, startScriptedService, type Script } from '../support/scripted-service.ts'

type Sections = Parameters<typeof configText>[0]

const textOf = (sections: Sections) => configText({ stopDeadline: '1s', ...sections })

/** A gateway whose config the test edits, and a service that answers by a script. A stop waits for what hangs. */
async function start(sections: Sections, script?: Script, clock: Clock = createFastClock(4)) {
  const folder = await newFolder()
  const service = await startScriptedService(script)
  onTestFinished(() => service.close())
  const pipeline = await startPipeline({
    folder,
    baseUrl: service.url,
    config: textOf(sections),
    clock,
    deps: { checkStore: checkInThread },
  })
  let sent = 0
  return {
    pipeline,
    service,
    totals: () => pipeline.status().totals,
    /** Puts another config in force. Returns what waits for a restart. */
    async reload(next: Sections, baseUrl = service.url): Promise<readonly string[]> {
      await writeFile(join(folder, 'gateway.yaml'), textOf(next)(baseUrl))
      const report = await pipeline.gateway.reload('the test changed the config')
      if (report.kind === 'refused') throw report.fault
      return report.restartNeeded
    },
    async publish(messages = 1) {
      for (let n = 0; n < messages; n += 1) await pipeline.publish(`truck-${(sent += 1)}`, messageOf(sent))
    },
  }
}

const ofDelivery = (delivery: string) => ({ delivery })
const quick = 'batch: { linger: 20ms }'

test('the level of the log is in force at once', async () => {
  const { pipeline, reload } = await start({ more: 'log: { level: error }' })
  expect(await reload({ more: 'log: { level: debug }' })).toEqual([])
  const lines = () => pipeline.log().split('"event":"mapping_reloaded"').length - 1
  expect(lines()).toBeGreaterThan(0)
  const before = lines()
  expect(await reload({ more: 'log: { level: error }' })).toEqual([])
  expect(lines()).toBe(before)
})

test('ops.silence opens and ends conditions by its new limits', async () => {
  const silence = (text: string) => ({ ops: `silence: { ${text} }` })
  const { pipeline, reload, publish } = await start(silence('after: off'), acceptAll, createFastClock(60))
  await publish()
  expect(await reload(silence('after: 30s'))).toEqual([])
  await pipeline.until(() => pipeline.condition('DEVICES_SILENT') !== undefined)
  expect(await reload(silence('after: 30d'))).toEqual([])
  await pipeline.until(() => pipeline.condition('DEVICES_SILENT') === undefined)
})

test('a reload ends no condition about the clock of a device', async () => {
  // The messages must arrive within a minute of this clock.
  const clock = createFastClock(8)
  // The time of the service differs from a fast clock, and would correct it meanwhile.
  const trusting = { more: 'clocks: { trust_local: true }' }
  const { pipeline, reload } = await start(trusting, acceptAll, clock)
  const device = await pipeline.device('truck-1')
  for (let n = 1; n <= 20; n += 1) {
    const payload = messageOf(n, { ts: clock.now() - 7_200_000 })
    device.publish({ topic: topicOf('truck-1'), payload, messageId: n })
  }
  await device.acked(20)
  await pipeline.until(() => pipeline.condition('DEVICES_HOURS_OFF') !== undefined)
  const since = pipeline.condition('DEVICES_HOURS_OFF')?.since
  await reload({ more: `${trusting.more}\nlog: { level: debug }` })
  const checkedAt = pipeline.status().devices?.checkedAt ?? ''
  await pipeline.until(() => (pipeline.status().devices?.checkedAt ?? '') > checkedAt)
  expect(pipeline.condition('DEVICES_HOURS_OFF')?.since).toBe(since)
  expect(pipeline.events.filter(({ kind }) => kind === 'condition_cleared')).toEqual([])
})

test('`reload` retries a service that refused the credentials, as SIGHUP does', async () => {
  const { pipeline, service, publish, totals } = await start({}, () => ({ status: 403 }))
  await publish()
  await pipeline.until(() => pipeline.condition('ENDPOINT_UNAUTHORIZED') !== undefined)
  service.answer(acceptAll)
  await runCli(['reload', '--url', pipeline.gateway.addresses.control])
  await pipeline.until(() => totals().delivered === 1)
  expect(pipeline.condition('ENDPOINT_UNAUTHORIZED')).toBeUndefined()
})

describe('an option of delivery is in force at once', () => {
  test('batch.linger, for what waits already', async () => {
    const { pipeline, service, totals, reload, publish } = await start(ofDelivery('batch: { linger: 10m }'))
    await publish(3)
    expect(service.received).toEqual([])
    expect(await reload(ofDelivery(quick))).toEqual([])
    await pipeline.until(() => totals().delivered === 3)
  })

  test('batch.max_payloads, for the next batch', async () => {
    const { pipeline, service, totals, reload, publish } = await start(
      ofDelivery('batch: { linger: 10m, max_payloads: 500 }'),
    )
    await publish(3)
    expect(await reload(ofDelivery('batch: { linger: 10m, max_payloads: 2 }'))).toEqual([])
    await pipeline.until(() => totals().delivered === 2)
    // The answer makes the time known. From then on messages as old as these are late: the next two get a lane of their
    // own, and one waits in the live lane.
    await pipeline.until(() => pipeline.status().clock.known)
    await publish(2)
    await pipeline.until(() => totals().delivered === 4)
    const waiting = pipeline.status().lanes.filter(({ pending }) => pending > 0)
    expect(waiting).toMatchObject([{ urgency: 'live', pending: 1 }])
    expect(service.received.map(({ payloadIds }) => payloadIds.length)).toEqual([2, 2])
  })

  test('backfill.after, also for what arrives late', async () => {
    const withAfter = (after: string) => ({
      delivery: `batch: { linger: 10m }, backfill: { after: ${after} }`,
      more: 'clocks: { trust_local: true }',
    })
    const { pipeline, reload, publish } = await start(withAfter('30d'))
    const lanes = () => pipeline.status().lanes.map(({ urgency, pending }) => [urgency, pending])
    await publish()
    expect(lanes()).toEqual([['live', 1]])
    expect(await reload(withAfter('5m'))).toEqual([])
    await publish()
    expect(lanes()).toEqual(
      expect.arrayContaining([
        ['live', 1],
        ['backfill', 1],
      ]),
    )
  })

  test('max_in_flight, for what waits already', async () => {
    const one = 'batch: { linger: 20ms, max_payloads: 1 }, max_in_flight: 1'
    const { pipeline, service, totals, reload, publish } = await start(ofDelivery(one), () => 'hang')
    await publish(4)
    await pipeline.until(() => service.open() === 1)
    expect(await reload(ofDelivery(one.replace('flight: 1', 'flight: 3')))).toEqual([])
    await pipeline.until(() => service.open() === 3)
    expect(service.mostOpen()).toBe(3)
    expect(totals().delivered).toBe(0)
  })

  test('timeout, for the next request', async () => {
    const { pipeline, service, totals, reload, publish } = await start(
      ofDelivery(`${quick}, max_in_flight: 4, timeout: 4m, backoff: { min: 10ms, max: 10ms }`),
      () => 'hang',
    )
    await publish()
    await pipeline.until(() => service.open() === 1)
    const short = `${quick}, max_in_flight: 4, timeout: 1s, backoff: { min: 10ms, max: 10ms }`
    expect(await reload(ofDelivery(short))).toEqual([])
    await publish()
    await pipeline.until(() => service.received.length >= 3)
    const [first, second, third] = service.received
    expect(third?.batchId).toBe(second?.batchId)
    expect(third?.batchId).not.toBe(first?.batchId)
    expect(totals().delivered).toBe(0)
  })

  test('limits, added and removed', async () => {
    const slow = `${quick}, limits: { requests_per_second: 0.01 }`
    const { pipeline, service, totals, reload, publish } = await start(ofDelivery(quick))
    await publish()
    await pipeline.until(() => totals().delivered === 1)
    expect(await reload(ofDelivery(slow))).toEqual([])
    await publish()
    await pipeline.until(() => totals().delivered === 2)
    await publish()
    await pipeline.until(() => pipeline.status().providers[0]?.nextAttemptAt !== null)
    expect(service.received).toHaveLength(2)
    expect(await reload(ofDelivery(quick))).toEqual([])
    await pipeline.until(() => totals().delivered === 3)
  })

  test('errors, also for payloads that wait for their next try', async () => {
    const { pipeline, totals, reload, publish, service } = await start(
      ofDelivery(`${quick}, errors: { Internal: [1h] }`),
      failAll('Internal'),
    )
    await publish()
    await pipeline.until(() => totals().retried === 1)
    service.answer(acceptAll)
    expect(await reload(ofDelivery(`${quick}, errors: { Internal: [1s] }`))).toEqual([])
    await pipeline.until(() => totals().delivered === 1)
    service.answer(failAll('Internal'))
    expect(await reload(ofDelivery(`${quick}, errors: { Internal: delivered }`))).toEqual([])
    await publish()
    await pipeline.until(() => totals().delivered === 2)
  })

  test('backoff, for the next wait', async () => {
    const { pipeline, service, totals, reload, publish } = await start(
      ofDelivery(`${quick}, backoff: { min: 10m, max: 10m }`),
      () => ({ status: 500 }),
    )
    await publish()
    await pipeline.until(() => service.received.length === 1 && service.open() === 0)
    expect(await reload(ofDelivery(`${quick}, backoff: { min: 10ms, max: 10ms }`))).toEqual([])
    pipeline.gateway.probe()
    await pipeline.until(() => service.received.length > 4)
    service.answer(acceptAll)
    await pipeline.until(() => totals().delivered === 1)
    expect(new Set(service.received.map(({ body }) => body.toString())).size).toBe(1)
  })
})

describe('a limit of the broker is in force at once, and open connections stay', () => {
  const limited = (limits: string) => ({
    broker: `{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: { ${limits} } }`,
  })

  test('of the connections of one address, smaller and larger', async () => {
    const { pipeline, reload, totals } = await start(limited('max_connections_per_address: 1'))
    const first = await pipeline.device('truck-1')
    await expect(pipeline.device('truck-2')).rejects.toThrow()
    expect(await reload(limited('max_connections_per_address: 2'))).toEqual([])
    await pipeline.device('truck-3')
    expect(await reload(limited('max_connections_per_address: 1'))).toEqual([])
    await expect(pipeline.device('truck-4')).rejects.toThrow()
    first.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    await first.acked(1)
    await pipeline.until(() => totals().delivered === 1)
  })

  test('of messages per second, with every message taken', async () => {
    const { pipeline, reload, totals } = await start(limited('max_messages_per_s: 1000'))
    expect(await reload(limited('max_messages_per_s: 1'))).toEqual([])
    const device = await pipeline.device('truck-1')
    const publish = (from: number, to: number) => {
      for (let n = from; n <= to; n += 1)
        device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
    }
    publish(1, 3)
    await device.acked(3)
    publish(4, 4)
    await pipeline.until(() => pipeline.events.some(({ kind }) => kind === 'client_paused'))
    expect(await reload(limited('max_messages_per_s: 1000'))).toEqual([])
    publish(5, 60)
    await device.acked(60)
    await pipeline.until(() => totals().delivered === 60)
  })

  test('of silence, for a device that is connected', async () => {
    const { pipeline, reload } = await start(limited('idle_timeout: 24h'))
    await pipeline.device('truck-1')
    expect(await reload(limited('idle_timeout: 1s'))).toEqual([])
    await pipeline.until(() => pipeline.events.some(({ kind }) => kind === 'client_dropped'))
    expect(pipeline.events.find(({ kind }) => kind === 'client_dropped')).toMatchObject({
      reason: 'idle_timeout',
    })
  })

  test('of control packets per second, for a device that is connected', async () => {
    const { pipeline, reload } = await start(limited('max_control_packets_per_s: 100'))
    const device = await pipeline.device('truck-1')
    expect(await reload(limited('max_control_packets_per_s: 1'))).toEqual([])
    for (let n = 0; n < 10; n += 1) device.send({ cmd: 'pingreq' })
    await pipeline.until(() => pipeline.events.some(({ kind }) => kind === 'client_dropped'))
  })

  test('but for those that a broker has from its start, which are named', async () => {
    const { reload } = await start(limited('max_packet_bytes: 1MiB'))
    const named = ['ingest.broker.limits.max_packet_bytes', 'ingest.broker.limits.max_sessions']
    expect((await reload(limited('max_packet_bytes: 2MiB, max_sessions: 20000'))).toSorted()).toEqual(named)
  })
})

describe('what waits for a restart is named, and only that', () => {
  test('each option that is not in force, by its path', async () => {
    const { pipeline, reload, publish, totals } = await start(ofDelivery('batch: { linger: 10m }'))
    const spool = '{ path: ./spool, max_bytes: 2GiB, min_free_bytes: 1MiB }'
    const changed = { ...ofDelivery(quick), spool, more: 'ledger: { retention: 8d }' }
    expect(await reload(changed)).toEqual(['spool.max_bytes', 'ledger.retention'])
    expect(pipeline.condition('RESTART_NEEDED')?.what).toContain('spool.max_bytes, ledger.retention')
    await publish()
    await pipeline.until(() => totals().delivered === 1)
    expect(await reload(ofDelivery(quick))).toEqual([])
    expect(pipeline.condition('RESTART_NEEDED')).toBeUndefined()
  })

  test('another base_url or account touches no sealed bytes: all of delivery waits with it', async () => {
    const { pipeline, service, totals, reload, publish } = await start(ofDelivery(quick), () => 'hang')
    await publish()
    await pipeline.until(() => service.open() === 1)
    const other = await startScriptedService()
    onTestFinished(() => other.close())
    const short = 'batch: { linger: 20ms }, timeout: 1s, backoff: { min: 10ms, max: 10ms }'
    const named = ['delivery.base_url', 'delivery.timeout', 'delivery.backoff.min', 'delivery.backoff.max']
    expect((await reload(ofDelivery(short), other.url)).toSorted()).toEqual(named.toSorted())
    const account = `${short}, credentials: { source: file, path: other.json }`
    expect(await reload(ofDelivery(account))).toContain('delivery.credentials.source')
    expect(await reload(ofDelivery(`${short}, provider_key: other`))).toContain('delivery.provider_key')
    service.answer(acceptAll)
    expect(await reload(ofDelivery(short))).toEqual([])
    await publish()
    await pipeline.until(() => totals().delivered === 1)
    expect(other.received).toEqual([])
  })
})

test('a reload that is refused changes no option', async () => {
  const { pipeline, service, reload, publish } = await start(ofDelivery('batch: { linger: 10m }'))
  await publish()
  const broken = { ...ofDelivery(quick), more: 'log: { level: error }\ndevices: { file: none.csv }' }
  await expect(reload(broken)).rejects.toThrow()
  await pipeline.publish('truck-last', messageOf(99))
  expect(service.received).toEqual([])
  expect(pipeline.condition('MAPPING_STALE')).toBeDefined()
  expect(pipeline.condition('RESTART_NEEDED')).toBeUndefined()
})

test('options in force stay so when the spool was away, also where the config is refused meanwhile', async () => {
  const { pipeline, totals, reload, publish } = await start(ofDelivery('batch: { linger: 10m }'))
  expect(await reload(ofDelivery(quick))).toEqual([])
  await writeFile(join(pipeline.folder, 'gateway.yaml'), 'no config')
  await pipeline.until(() => pipeline.condition('MAPPING_STALE') !== undefined)
  const spool = join(pipeline.folder, 'spool')
  await rename(spool, `${spool}.away`)
  await pipeline.until(() => pipeline.condition('SPOOL_UNUSABLE') !== undefined)
  await rename(`${spool}.away`, spool)
  await pipeline.until(() => pipeline.status().ready && pipeline.gateway.addresses.mqtt.length > 0)
  await publish()
  await pipeline.until(() => totals().delivered === 1)
})
