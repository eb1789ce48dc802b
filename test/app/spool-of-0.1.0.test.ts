// A spool that version 0.1.0 wrote and closed, in spool-of-0.1.0.json: its files in base64.
//
//   before its service went away  20 payloads: 16 delivered, those of truck-9 refused (Validation), those of
//                                 truck-8 in a retry lane (Busy)
//   without a service             24 payloads in sealed batches; NOT_JSON, NO_TIME and NO_SOURCE as dead letters;
//                                 three messages of an unlisted device and two of a clock that is 40 days ahead
//                                 in quarantine; latitude and longitude of truck-4, which wait for a speed

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/std/clock.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline } from '../support/pipeline-world.ts'
import { runCli } from '../support/cli-world.ts'

const config = (baseUrl: string) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      speed: { path: speed, unit: km/h }
  - name: parts
    topic: parts/{device}/{metric}
    encoding: scalar
    coalesce: { name: "{metric}", window: 1h, complete: [lat, lon, speed] }
    map: { time: { format: arrival }, latitude: { path: lat }, longitude: { path: lon }, speed: { path: speed, unit: km/h } }
devices: { file: devices.csv, unknown: quarantine }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery:
  base_url: "${baseUrl}"
  credentials: { source: environment }
  batch: { max_payloads: 50, max_bytes: 1MiB, linger: 20ms }
  errors: { Validation: [10ms], Busy: [10ms], default: [10ms] }
ledger: { retention: 3660d }
ops: { listen: "127.0.0.1:0" }
`

/** Minutes after version 0.1.0 closed the spool: the window of truck-4 is open, and the other clock is ahead. */
const beganMs = Date.parse('2026-11-28T23:05:00Z')
const offsetMs = beganMs - systemClock.now()
const clock = { ...systemClock, now: () => systemClock.now() + offsetMs }

const devices = ['stranger', ...Array.from({ length: 10 }, (_, n) => `truck-${n}`)]

async function unpackedSpool(): Promise<string> {
  const folder = await newFolder()
  const text = await readFile(join(import.meta.dirname, 'spool-of-0.1.0.json'), 'utf8')
  for (const [name, bytes] of Object.entries(JSON.parse(text) as Record<string, string>)) {
    const path = join(folder, 'spool', name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, Buffer.from(bytes, 'base64'))
  }
  const rows = devices.map((name) => `${name},T-${name},TRACTOR,OP1,ACME`)
  await writeFile(
    join(folder, 'devices.csv'),
    ['device,asset_id,asset_type,operator,carrier', ...rows].join('\n'),
  )
  return folder
}

test('everything in a spool of version 0.1.0 is delivered, or stays a dead letter that can be sent again', async () => {
  const folder = await unpackedSpool()
  const pipeline = await startPipeline({ folder, config, clock })
  const received = () => pipeline.sandbox.received({ limit: 100 }).map(({ payload }) => payload)
  // The backlog, the retry lane, and the quarantine of the device that is listed now.
  await pipeline.until(() => received().length === 24 + 2 + 3)

  const truck = await pipeline.device('depot')
  truck.publish({ topic: 'parts/truck-4/speed', payload: '50', messageId: 1 })
  const daemon = ['--socket', join(folder, 'spool.sock')]
  const release = await runCli(['quarantine', 'release', '--device', 'truck-3', ...daemon])
  expect([release.stderr, release.status]).toEqual(['', 0])
  const requeue = await runCli(['dead-letters', 'requeue', '--stage', 'delivery', ...daemon])
  expect([requeue.stderr, requeue.status]).toEqual(['', 0])
  await pipeline.until(() => received().length === 24 + 2 + 3 + 1 + 2 + 2)
  expect(new Set(received().map(({ payloadId }) => payloadId)).size).toBe(34)

  const { spool, waiting, conditions } = pipeline.status()
  expect({ ...spool, ...waiting }).toMatchObject({ deadLetters: 3, quarantined: 0, openMessages: 0 })
  expect(conditions.map(({ code }) => code)).toEqual(['DEAD_LETTERS_WAITING'])
  const list = await runCli(['dead-letters', 'list', '--json', ...daemon])
  const reasons = (JSON.parse(list.stdout) as { groups: { reason: string }[] }).groups.map(
    ({ reason }) => reason,
  )
  expect(reasons.toSorted()).toEqual(['NOT_JSON', 'NO_SOURCE', 'NO_TIME'])

  // Version 0.1.0 delivered two payloads of truck-1, and this one its three of the backlog.
  const ledger = await runCli(['ledger', '--json', '--device', 'truck-1', ...daemon])
  const { entries } = JSON.parse(ledger.stdout) as { entries: { requestId: string; outcome: string }[] }
  expect(entries.map(({ outcome }) => outcome)).toEqual(Array(5).fill('delivered'))
  expect(new Set(entries.map(({ requestId }) => requestId)).size).toBeGreaterThan(1)

  await pipeline.gateway.stop('to verify the spool')
  const verify = await runCli(['spool', 'verify', '--path', join(folder, 'spool')])
  expect([verify.status, verify.stdout]).toEqual([0, expect.stringContaining('the totals are right')])
})
