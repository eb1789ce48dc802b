// Commands with hundreds of ids, which the head of a request cannot hold.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { get } from '../support/ops-world.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

const many = 300

/** 300 dead letters, and 300 messages in quarantine because of their clock. */
async function world() {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device\ntruck-1\n')
  const pipeline = await startPipeline({
    folder,
    config: configText({ more: 'devices: { file: devices.csv, unknown: quarantine }' }),
  })
  const device = await pipeline.device('truck-1')
  for (let n = 1; n <= many; n += 1) {
    device.publish({ topic: topicOf('truck-1'), payload: `not JSON ${n}`, messageId: n })
    const unset = messageOf(n, { ts: n * 1000 })
    device.publish({ topic: topicOf('truck-1'), payload: unset, messageId: many + n })
  }
  await device.acked(2 * many)
  const socket = pipeline.gateway.addresses.control
  const idsAt = async (path: string): Promise<string[]> => {
    const { text } = await get(pipeline.gateway.addresses.ops, path)
    const { deadLetters, messages } = JSON.parse(text) as Record<string, { id: string }[] | undefined>
    return (deadLetters ?? messages ?? []).map(({ id }) => id)
  }
  return {
    ...pipeline,
    socket,
    run: (...words: string[]) => runCli([...words, '--url', socket]),
    dead: await idsAt('/dead-letters?limit=1000'),
    kept: await idsAt('/quarantine?device=truck-1&limit=1000'),
  }
}

test('300 ids are exported, requeued, purged and released with one command each', async () => {
  const { run, dead, kept, status, folder } = await world()
  expect([dead.length, kept.length]).toEqual([many, many])

  const exported = await run('dead-letters', 'export', ...dead, '--to', join(folder, 'out.ndjson'))
  expect([exported.stderr, exported.status]).toEqual(['', 0])
  expect(exported.stdout).toContain(`${many} dead letters written`)
  const requeued = await run('dead-letters', 'requeue', ...dead, '--dry-run', '--json')
  expect(requeued.stdout.trim().split('\n').length).toBe(1)
  expect(JSON.parse(requeued.stdout)).toMatchObject({ missing: [] })
  const [first = '', ...rest] = dead
  const purged = await run('dead-letters', 'purge', ...rest, '--yes')
  expect(purged.stdout).toContain(`${many - 1} dead letters deleted`)
  expect(status().spool.deadLetters).toBe(1)
  const again = await run('dead-letters', 'purge', first, ...rest, '--yes')
  expect([again.status, again.stdout]).toEqual([1, expect.stringContaining(`${many - 1} ids not found`)])

  const options = (ids: readonly string[]) => ids.flatMap((id) => ['--id', id])
  const [left = '', ...others] = kept
  const released = await run('quarantine', 'release', ...options([...others, 'gone']), '--restamp')
  expect([released.status, released.stdout]).toEqual([
    1,
    expect.stringMatching(/^299 messages released[\s\S]*1 id not found/),
  ])
  expect(status().spool.quarantined).toBe(1)
  const dropped = await run('quarantine', 'drop', '--id', left, '--yes')
  expect([dropped.status, status().spool.quarantined]).toEqual([0, 0])

  const { stdout } = await run('audit', '--json')
  const { changes } = JSON.parse(stdout) as { changes: { change: string; request: string }[] }
  const release = changes.find(({ change }) => change === 'quarantine/release')
  expect(release?.request).toContain(`id=${others[0]}`)
})

test('a body that is no list of ids, or has too many, changes nothing', async () => {
  const { gateway, dead, status } = await world()
  const post = (body: string, type = 'application/json') =>
    get(gateway.addresses.control, '/control/dead-letters/purge?yes=1', {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    })
  for (const [body, type] of [
    ['{"id":"x"}'],
    ['{"id":["x"],"all":1}'],
    ['no JSON'],
    [JSON.stringify({ id: Array.from({ length: 10_001 }, String) })],
    [JSON.stringify({ id: dead }), 'text/plain'],
  ] as const)
    expect([body.slice(0, 20), (await post(body, type)).status]).toEqual([body.slice(0, 20), 400])
  expect((await post(JSON.stringify({ id: ['x'.repeat(3 * 1024 * 1024)] }))).status).toBe(413)
  expect(status().spool.deadLetters).toBe(many)
})
