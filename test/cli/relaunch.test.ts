// The daemon takes its settings of V8 and malloc however it is started, and leaves those of the user alone.

import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { newFolder } from '../support/folders.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'

async function processOf(env: NodeJS.ProcessEnv) {
  const config = await writeDaemonConfig(await newFolder(), 'http://127.0.0.1:9')
  const daemon = await startSpawnedDaemon(config, { env })
  const listOf = async (file: string) => (await readFile(`/proc/${daemon.pid}/${file}`, 'utf8')).split('\0')
  const seen = { arguments: await listOf('cmdline'), environment: await listOf('environ') }
  await daemon.kill()
  return seen
}

describe.skipIf(process.platform !== 'linux')('the process of the daemon', () => {
  test('has the settings', async () => {
    const daemon = await processOf({})
    for (const flag of [
      '--max-semi-space-size=8',
      '--initial-heap-size=48',
      '--heap-growing-percent=50',
      '--expose-gc',
      '--max-inlined-bytecode-size-cumulative=2000',
    ])
      expect(daemon.arguments).toContain(flag)
    expect(daemon.environment).toContain('MALLOC_ARENA_MAX=1')
  })

  test('has none where the user gives some', async () => {
    const daemon = await processOf({ NODE_OPTIONS: '--max-semi-space-size=16' })
    expect(daemon.arguments.filter((word) => /^--(max|initial|heap|expose)/.test(word))).toEqual([])
    expect(daemon.environment).not.toContain('MALLOC_ARENA_MAX=1')
  })
})
