// What was wrong in the night is still known in the morning, and what somebody knows of wakes nobody again.

import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'

test('conditions that are over are listed, over a restart, and one that is known says until when and by whom', async () => {
  const folder = await newFolder()
  const start = () =>
    startPipeline({
      folder,
      config: configText({
        sources:
          '[{ name: trucks, topic: "telemetry/v1/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }]',
      }),
    })
  const cli = (...words: string[]) => runCli(['conditions', ...words, '--socket', join(folder, 'spool.sock')])
  const first = await start()
  const truck = await first.device('truck-1')
  truck.publish({ topic: 'telemetry/v1/truck-1', payload: 'no JSON', messageId: 1 })
  const letters = () => first.status().conditions.find(({ code }) => code === 'DEAD_LETTERS')
  await first.until(() => letters() !== undefined)
  expect(letters()).toMatchObject({ count: 1, why: expect.stringMatching(/^Latest: NOT_JSON on topic/) })

  // Nothing would be acknowledged, and alerts would go on.
  const misspelt = await cli('acknowledge', 'DEAD_LETTER', '--for', '3d')
  expect(misspelt.status).not.toBe(0)
  expect(misspelt.stderr).toContain('No condition with this code is open.')
  const otherKey = await cli('acknowledge', 'DEAD_LETTERS', '--key', 'default', '--for', '3d')
  expect(otherKey.stderr).toContain('With this code are open: DEAD_LETTERS.')
  expect((await cli('unacknowledge', 'DEAD_LETTERS')).stderr).toContain('DEAD_LETTERS is not acknowledged.')
  expect(await cli('acknowledge', 'DEAD_LETTERS', '--for', '3d')).toMatchObject({ status: 0 })
  expect(letters()?.known).toMatchObject({ by: expect.stringContaining('as claimed on the socket') })
  expect(Date.parse(letters()!.known!.untilAt)).toBeGreaterThan(Date.now() + 2 * 86_400_000)
  expect((await cli('acknowledge', 'DEAD_LETTERS', '--until', '2001-01-01')).status).not.toBe(0)
  expect(await cli('unacknowledge', 'DEAD_LETTERS')).toMatchObject({ status: 0 })
  expect(letters()?.known).toBeNull()

  const purged = ['dead-letters', 'purge', '--all', '--yes', '--socket', join(folder, 'spool.sock')]
  expect(await runCli(purged)).toMatchObject({ status: 0 })
  await first.until(() => letters() === undefined)
  expect((await cli('list')).stdout).toMatch(/error DEAD_LETTERS, for /)
  await first.gateway.stop('a restart')

  const second = await start()
  await second.until(() => second.events.some(({ kind }) => kind === 'gateway_ready'))
  let listed = ''
  // It is read when the records are open, which nothing waits for.
  while (!listed.includes('DEAD_LETTERS')) listed = (await cli('list')).stdout
  expect(listed).toContain('1 new dead letter.')
})

test('a condition with a key is acknowledged with it, and the answer without it says so', async () => {
  const folder = await newFolder()
  const { publish, until, codes } = await startPipeline({ folder, baseUrl: 'http://127.0.0.1:1' })
  await publish('truck-1', messageOf(1))
  await until(() => codes().includes('ENDPOINT_UNAVAILABLE'))
  const words = ['conditions', 'acknowledge', 'ENDPOINT_UNAVAILABLE', '--for', '3d']
  const acknowledge = (...key: string[]) => runCli([...words, '--socket', join(folder, 'spool.sock'), ...key])
  const { stderr } = await acknowledge()
  expect(stderr).toContain('ENDPOINT_UNAVAILABLE needs its key.')
  const [, key] = /`--key ("[^"]*")`/.exec(stderr)!
  expect(await acknowledge('--key', JSON.parse(key!) as string)).toMatchObject({ status: 0 })
}, 60_000)
