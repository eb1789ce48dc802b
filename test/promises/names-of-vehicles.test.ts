// A person names a vehicle by its asset: everything that is known of it is found by that name, too.

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline } from '../support/pipeline-world.ts'

test('everything of a vehicle is found by its asset, and who came over TCP writes no snapshot where it likes', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\n862000000000017,TRK-09\n')
  await writeFile(join(folder, 'ops-users'), `alice:${await hashPassword('right', 12)}\n`, { mode: 0o600 })
  const pipeline = await startPipeline({
    folder,
    // The ledger copies every five seconds.
    clock: createFastClock(10),
    config: (baseUrl) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
devices: { file: devices.csv, unknown: quarantine }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }]
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }
ops: { listen: "127.0.0.1:0", users: [{ name: alice, password_hash: "\${file:ops-users}", rights: [read, change] }] }
`,
  })
  const truck = await pipeline.device('862000000000017')
  const topic = 'telemetry/v1/862000000000017'
  truck.publish({ topic, payload: JSON.stringify({ lat: 48, lon: 11 }), messageId: 1 })
  truck.publish({ topic, payload: 'no JSON', messageId: 2 })
  await pipeline.until(
    () => pipeline.status().totals.delivered === 1 && pipeline.status().spool.deadLetters === 1,
  )

  const authorization = `Basic ${Buffer.from('alice:right').toString('base64')}`
  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(`${pipeline.gateway.addresses.ops}${path}`, {
      method,
      headers: { authorization },
    })
    return { status: answer.status, value: (await answer.json()) as Record<string, unknown> }
  }
  expect((await ask('/devices/TRK-09')).value).toMatchObject({ device: '862000000000017', messages: 2 })
  await pipeline.until(() => (pipeline.status().ledger?.records ?? 0) > 0)
  expect((await ask('/ledger?device=TRK-09')).value).toMatchObject({
    entries: [{ device: '862000000000017', outcome: 'delivered' }],
  })
  expect((await ask('/dead-letters?device=TRK-09')).value).toMatchObject({
    deadLetters: [{ device: '862000000000017', reason: 'NOT_JSON' }],
  })

  const snapshot = (to: string) => ask(`/control/spool/snapshot?to=${encodeURIComponent(to)}`, 'POST')
  const snapshots = join(dirname(join(folder, 'spool')), 'snapshots')
  for (const to of [join(folder, 'elsewhere'), join(snapshots, '../elsewhere'), snapshots])
    expect((await snapshot(to)).status).toBe(400)
  await mkdir(snapshots)
  expect((await snapshot(join(snapshots, 'one'))).status).toBe(200)
})
