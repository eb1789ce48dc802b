// The daemon takes its settings of V8 and malloc however it is started, and leaves those of the user alone.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
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

  test('gives its threads the sizes of their own limits', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--max-semi-space-size=16',
      '--initial-heap-size=48',
      '--input-type=module',
      '-e',
      largestYoungGeneration,
      '--',
      'x',
      'run',
    ])
    expect(Number(stdout)).toBeLessThan(5 * 1024 ** 2)
  })
})

/** Has a thread make garbage, and prints the bytes of its young generation at their most. */
const largestYoungGeneration = `
  import { Worker } from 'node:worker_threads'
  import { relaunchWithSettings } from ${JSON.stringify(import.meta.resolve('../../src/cli/relaunch.ts'))}
  relaunchWithSettings(['run'])
  const garbage = () => {
    const { parentPort } = process.getBuiltinModule('node:worker_threads')
    const { getHeapSpaceStatistics } = process.getBuiltinModule('node:v8')
    const young = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')
    const kept = []
    let most = 0
    for (let k = 0; k < 400_000; k += 1) {
      kept[k % 20_000] = { k, text: 'x' + k }
      if (k % 1000 === 0) most = Math.max(most, young().physical_space_size)
    }
    parentPort.postMessage(most)
  }
  const options = { eval: true, resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 48 } }
  new Worker('(' + garbage + ')()', options).on('message', (most) => console.log(most))
`
