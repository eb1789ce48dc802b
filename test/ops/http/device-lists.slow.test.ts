// What a large list of devices costs a real gateway.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { configText } from '../../support/config-text.ts'
import { newFolder } from '../../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../../support/pipeline-world.ts'

/** Ten programs ask at once; gives the longest answer in ms. Their work is not in this process. */
async function askedInParallel(url: string, count: number): Promise<{ bytes: number; tookMs: number }> {
  const code = `
    const started = performance.now()
    const asked = Array.from({ length: ${count} }, async () => {
      const answer = await fetch(${JSON.stringify(url)})
      const list = await answer.text()
      return list.length
    })
    Promise.all(asked).then((all) => console.log(JSON.stringify({ bytes: all[0], tookMs: performance.now() - started })))
  `
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (part: Buffer) => (text += part.toString()))
  await once(child, 'close')
  return JSON.parse(text) as { bytes: number; tookMs: number }
}

/** The longest time that this thread computed between two turns of the loop. Other programs do not count. */
async function longestHoldMs(work: Promise<unknown>): Promise<number> {
  const run = { ended: false }
  void work.finally(() => (run.ended = true))
  let longest = 0
  let before = process.threadCpuUsage()
  while (!run.ended) {
    await turn()
    const { user, system } = process.threadCpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
    before = process.threadCpuUsage()
  }
  return longest
}

const fleet = 2000

test('a list of 2,000 devices takes less than 100 ms, and ten of them at once hold nothing up', async () => {
  const folder = await newFolder()
  const names = Array.from({ length: fleet }, (_, n) => `truck-${n}`)
  await writeFile(
    join(folder, 'devices.csv'),
    ['device,asset_id', ...names.map((one) => `${one},A-${one}`), ''].join('\n'),
  )
  const pipeline = await startPipeline({
    folder,
    config: configText({ more: 'devices: { file: devices.csv }' }),
  })
  const depot = await pipeline.device('depot')
  for (const [n, name] of names.entries())
    depot.publish({ topic: topicOf(name), payload: messageOf(n), messageId: n + 1 })
  await depot.acked(fleet)
  const path = `${pipeline.gateway.addresses.ops}/devices?limit=1000&sort=last&hours=1`
  // The first list compiles the code.
  for (let round = 0; round < 5; round += 1) await askedInParallel(path, 1)
  // The best of five: a collection of garbage may be in one of them.
  const lists: number[] = []
  const holds: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const before = process.threadCpuUsage()
    const { bytes } = await askedInParallel(path, 1)
    const { user, system } = process.threadCpuUsage(before)
    expect(bytes).toBeGreaterThan(1_000_000)
    lists.push((user + system) / 1000)
    holds.push(await longestHoldMs(askedInParallel(path, 10)))
  }
  expect(Math.min(...lists)).toBeLessThan(100)
  expect(Math.min(...holds)).toBeLessThan(30)
})
