// Lost data is not found again when it was set aside: the condition stays until a person has seen it.

import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLevelStore } from '../../src/storage/storage.ts'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'

const chunkTable = 0x10

test('damage is a condition over restarts, until somebody acknowledges it without a time', async () => {
  const folder = await newFolder()
  const socket = join(folder, 'spool.sock')
  const start = () =>
    startPipeline({ folder, baseUrl: 'http://127.0.0.1:9', config: configText({ delivery: '' }) })
  const damaged = ['CHUNK_DAMAGED', '--key', 'lane 1']
  const acknowledge = (...words: string[]) =>
    runCli(['conditions', 'acknowledge', ...words, '--socket', socket])
  const first = await start()
  await first.publish('truck-1', messageOf(1), messageOf(2))
  await first.gateway.stop('a restart')
  const store = await openLevelStore(join(folder, 'spool', 'store'))
  for await (const page of store.pages({ gte: Buffer.from([chunkTable]), lt: Buffer.from([chunkTable + 1]) }))
    for (const [key, value] of page) {
      const damaged = Buffer.from(value)
      damaged[damaged.length - 1]! ^= 1
      await store.write([{ type: 'put', key, value: damaged }], { sync: true })
    }
  await store.close()

  const second = await start()
  await second.until(() => second.codes().includes('CHUNK_DAMAGED'))
  const { since, what, count } = second.condition('CHUNK_DAMAGED')!
  await second.gateway.stop('a restart')

  const third = await start()
  await third.until(() => third.codes().includes('CHUNK_DAMAGED'))
  expect(third.condition('CHUNK_DAMAGED')).toMatchObject({ since, what, count, severity: 'critical' })
  await third.publish('truck-2', messageOf(3))
  await third.until(() => third.codes().includes('ENDPOINT_UNAVAILABLE'))
  // For a time it is not sent again; it is not over.
  expect(await acknowledge(...damaged, '--for', '3d')).toMatchObject({ status: 0 })
  expect(third.codes()).toContain('CHUNK_DAMAGED')
  expect(await acknowledge(...damaged)).toMatchObject({ status: 0, stdout: 'CHUNK_DAMAGED is over.\n' })
  expect(third.codes()).not.toContain('CHUNK_DAMAGED')
  expect((await runCli(['conditions', 'list', '--socket', socket])).stdout).toContain(
    'critical CHUNK_DAMAGED',
  )
  const state = await acknowledge('ENDPOINT_UNAVAILABLE', '--key', 'default')
  expect(state.stderr).toContain('The end of the time is missing')
  await third.gateway.stop('a restart')

  const fourth = await start()
  let past = ''
  while (!past.includes('CHUNK_DAMAGED'))
    past = (await runCli(['conditions', 'list', '--socket', socket])).stdout
  expect(fourth.codes()).not.toContain('CHUNK_DAMAGED')
}, 60_000)
