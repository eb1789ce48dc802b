// Nobody looks at a page all day: the silence of one truck reaches somebody.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { AlertBody } from '../../src/alerts/alert-body.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { roundTrip, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

/** A minute of the gateway passes in three seconds. */
const factor = 20
const beatMs = 75

/** Trucks that send every second or two of the gateway, as long as they are in the returned set. */
async function sendingTrucks(pipeline: Pipeline, names: readonly string[]): Promise<Set<string>> {
  const trucks = await Promise.all(names.map((name) => pipeline.device(name)))
  const sending = new Set(names)
  const over = new AbortController()
  const beating = (async () => {
    for (let beat = 1; !over.signal.aborted; beat += 1) {
      const payload = JSON.stringify({ lat: 48 + beat / 1e4, lon: 11 })
      for (const truck of trucks)
        if (sending.has(truck.clientId))
          truck.publish({ topic: `telemetry/v1/${truck.clientId}`, payload, messageId: (beat % 65_000) + 1 })
      await wait(beatMs)
    }
  })()
  onTestFinished(async () => {
    over.abort()
    await beating
  })
  return sending
}

test(
  'a truck that falls silent is an alert that names it, each further one is news, and a muted one is none',
  { timeout: 90_000 },
  async () => {
    const receiver = await startHttpReceiver()
    const pipeline = await startPipeline({
      clock: createFastClock(factor),
      config: (baseUrl) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }]
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 5s } }
ops: { listen: "127.0.0.1:0", silence: { device_after: 1m } }
alerts:
  wait: 1s
  page: https://gateway.example/page
  receivers: [{ name: chat, type: webhook, conditions: [DEVICE_SILENT], url: "${receiver.url}" }]
`,
    })
    // A receiver that is slow to answer gets the same alert again.
    const alerts = () => {
      const bodies = receiver.requests.map(({ body }) => JSON.parse(body) as AlertBody)
      return [...new Map(bodies.map((alert) => [alert.id, alert])).values()]
    }
    const silences = () =>
      alerts().flatMap(({ changes }) => changes.filter(({ code }) => code === 'DEVICE_SILENT'))
    const cli = (...words: string[]) =>
      runCli(['devices', ...words, '--socket', join(pipeline.folder, 'spool.sock')])
    const sending = await sendingTrucks(pipeline, ['TRK-1', 'TRK-2', 'TRK-3', 'TRK-4'])
    await pipeline.until(() => (pipeline.status().devices?.sending ?? 0) === 4)
    // Each has a rhythm.
    await pipeline.until(() => pipeline.status().totals.delivered >= 40)

    expect(await cli('mute', 'TRK-3', '--for', '7d')).toMatchObject({ status: 0 })
    sending.delete('TRK-3')
    sending.delete('TRK-1')
    await pipeline.until(() => silences().length > 0)
    expect(alerts().at(-1)).toMatchObject({ page: 'https://gateway.example/page', severity: 'warning' })
    expect(silences()).toMatchObject([{ kind: 'raised', causes: ['TRK-1'] }])
    expect(silences()[0]?.what).toMatch(/^1 device is silent: "TRK-1" since 2/)
    expect(pipeline.status().devices).toMatchObject({ silent: 1, muted: 1, sending: 2 })
    const list = (await cli()).stdout
    expect(list).toMatch(/TRK-1 [^]*TRK-3 +.*muted/)
    expect(list).toContain('Its silence is muted until 2')

    expect(await cli('unmute', 'TRK-3')).toMatchObject({ status: 0 })
    await pipeline.until(() => silences().length > 1)
    expect(silences()[1]).toMatchObject({
      kind: 'changed',
      causes: expect.arrayContaining(['TRK-1', 'TRK-3']),
    })

    sending.add('TRK-1').add('TRK-3')
    await pipeline.until(() => silences().length > 2)
    expect(silences()[2]).toMatchObject({ kind: 'cleared' })
  },
)

test(
  'the device table mutes a truck until a date, and no longer when the row says so no more',
  { timeout: 90_000 },
  async () => {
    const folder = await newFolder()
    const table = (until: string) =>
      writeFile(
        join(folder, 'devices.csv'),
        `device,muted_until\nTRK-1,\nTRK-2,2001-01-01\nTRK-3,${until}\nTRK-4,\n`,
      )
    await table('2100-12-24T18:00Z')
    const pipeline = await startPipeline({
      folder,
      clock: createFastClock(factor),
      config: (baseUrl) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }]
devices: { file: devices.csv }
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 5s } }
ops: { listen: "127.0.0.1:0", silence: { device_after: 1m } }
`,
    })
    const cli = (...words: string[]) =>
      runCli(['devices', ...words, '--socket', join(pipeline.folder, 'spool.sock')])
    const sending = await sendingTrucks(pipeline, ['TRK-1', 'TRK-2', 'TRK-3', 'TRK-4'])
    await pipeline.until(() => pipeline.status().totals.delivered >= 40)
    for (const name of ['TRK-1', 'TRK-2', 'TRK-3']) sending.delete(name)
    const silent = () => pipeline.condition('DEVICE_SILENT')?.what ?? ''
    await pipeline.until(() => silent().startsWith('2 devices'))
    expect(silent()).toMatch(/"TRK-1".*"TRK-2"/)
    expect(silent()).not.toContain('TRK-3')
    expect((await cli('show', 'TRK-3')).stdout).toMatch(
      /muted until +2100-12-24 18:00:00 UTC, by the device table/,
    )
    expect((await cli('unmute', 'TRK-3')).stdout).toContain('column muted_until of the device table')
    // A wrong date is refused, and the table before it stays in force.
    await table('31.12.2026')
    await pipeline.until(() => pipeline.codes().includes('MAPPING_STALE'))
    expect(pipeline.condition('MAPPING_STALE')?.why).toContain('a date such as 2026-12-24')
    await table('')
    await pipeline.until(() => silent().startsWith('3 devices'))
  },
)

test(
  'a truck whose message waits for room among the dead letters is not silent: the gateway holds it',
  { timeout: 90_000 },
  async () => {
    const pipeline = await startPipeline({
      clock: createFastClock(factor),
      config: (baseUrl) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }]
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB, dead_letters: { max_bytes: 1MiB } }
delivery: { base_url: "${baseUrl}", batch: { linger: 5s } }
ops: { listen: "127.0.0.1:0", silence: { device_after: 1m } }
`,
    })
    const cli = (...words: string[]) =>
      runCli(['devices', ...words, '--socket', join(pipeline.folder, 'spool.sock')])
    const sending = await sendingTrucks(pipeline, ['TRK-1', 'TRK-2'])
    const held = await pipeline.device('TRK-9')
    for (let beat = 1; beat <= 10; beat += 1) {
      const payload = JSON.stringify({ lat: 48 + beat / 1e4, lon: 12 })
      held.publish({ topic: topicOf('TRK-9'), payload, messageId: beat })
      await held.acked(beat)
    }
    for (let sent = 1; !pipeline.status().spool.deadLettersFull; sent += 1) {
      held.publish({ topic: topicOf('TRK-9'), payload: 'x'.repeat(4000) + sent, messageId: sent })
      if (sent % 20 === 0) await roundTrip(held)
      expect(sent).toBeLessThan(2000)
    }
    held.publish({ topic: topicOf('TRK-9'), payload: 'waits', messageId: 2000 })
    await pipeline.until(() => (pipeline.status().devices?.waiting ?? 0) === 1)
    // It falls silent later, and is called so: the time of the other one would be over.
    sending.delete('TRK-2')
    const silences = () => pipeline.status().conditions.filter(({ code }) => code === 'DEVICE_SILENT')
    await pipeline.until(() => silences().length > 0)
    expect(silences()[0]?.what).toMatch(/^1 device is silent: "TRK-2"/)
    const shown = (await cli('show', 'TRK-9')).stdout
    expect(shown).toContain('waiting')
    expect(shown).toContain('Its messages wait without an acknowledgement: the store of dead letters')
  },
)
