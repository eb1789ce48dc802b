// A device whose first message is acknowledged is known after a kill, although its record waits for nobody's fsync.

import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
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
