// A device whose first message is acknowledged is known after a kill, although its record waits for nobody's fsync.

import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLevelStore, type StoreOp } from '../../src/storage/storage.ts'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { killedCopy } from '../support/killed-copy.ts'
import { messageOf, startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const config = configText({ spool: '{ path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }' })

async function shown(pipeline: Pipeline, name: string): Promise<string> {
  for (;;) {
    const { stdout } = await runCli(['devices', '--url', pipeline.gateway.addresses.control])
    if (!stdout.includes('are not read yet')) break
    await pipeline.until(() => true)
  }
  return (await runCli(['devices', 'show', name, '--url', pipeline.gateway.addresses.control])).stdout
}

test('a device is known after a kill right behind the acknowledgement of its first message', async () => {
  const first = await startPipeline({ config })
  await shown(first, 'none')
  for (const name of ['truck-1', 'truck-2', 'truck-3']) await first.publish(name, messageOf(1))
  const folder = await newFolder()
  await cp(await killedCopy(join(first.folder, 'spool')), join(folder, 'spool'), { recursive: true })
  const second = await startPipeline({ config, folder })
  for (const name of ['truck-1', 'truck-2', 'truck-3'])
    expect(await shown(second, name)).toMatch(/^messages +1, /m)
})

test('a gateway whose records of devices have flipped bits starts without them', async () => {
  const first = await startPipeline({ config })
  await first.publish('truck-1', messageOf(1))
  await first.until(() => first.status().totals.delivered === 1)
  await first.gateway.stop('the disk ages')
  const path = join(first.folder, 'spool/records')
  const store = await openLevelStore(path)
  const flipped: StoreOp[] = []
  for await (const page of store.pages({ gte: Buffer.from([0x20]), lt: Buffer.from([0x23]) }))
    for (const [key, value] of page) {
      // Still JSON.
      const text = value.toString('latin1').replaceAll(/"([b-y])/g, (_, letter: string) => {
        return `"${String.fromCharCode(letter.charCodeAt(0) ^ 1)}`
      })
      flipped.push({ type: 'put', key, value: Buffer.from(text, 'latin1') })
    }
  expect(flipped.length).toBeGreaterThan(2)
  await store.write(flipped, { sync: true })
  await store.close()

  const second = await startPipeline({ config, folder: first.folder })
  expect(await shown(second, 'truck-1')).not.toMatch(/^messages +1, /m)
  await second.publish('truck-1', messageOf(2))
  expect(await shown(second, 'truck-1')).toMatch(/^messages +1, /m)
})
