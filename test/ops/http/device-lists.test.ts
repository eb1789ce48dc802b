// GET /devices of a real gateway: which devices, in which order, and what a large list costs the devices.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { configText, positionMap } from '../../support/config-text.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { withViews } from '../../support/page-world.ts'
import { startPipeline, startMs } from '../../support/pipeline-world.ts'

const config = configText({
  sources: [
    `[{ name: trucks, topic: "trucks/{device}", map: ${positionMap} }`,
    `{ name: vans, topic: "vans/{device}", map: ${positionMap} }]`,
  ].join(', '),
  delivery:
    'batch: { linger: 20ms }, providers: [{ name: north, provider_key: N }, { name: south, provider_key: S }]',
  more: 'devices: { file: devices.csv }',
})

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

/** A gateway with these rows of the device table, and one message on each topic. */
async function world(rows: readonly string[], topics: readonly string[]) {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), ['device,asset_id,provider', ...rows, ''].join('\n'))
  const pipeline = await startPipeline({ folder, config })
  const depot = await pipeline.device('depot')
  for (const [n, topic] of topics.entries())
    depot.publish({
      topic,
      payload: JSON.stringify({ ts: startMs + n, lat: 52.5, lon: 13.4 }),
      messageId: n + 1,
    })
  await depot.acked(topics.length)
  return { ...pipeline, depot, url: pipeline.gateway.addresses.ops }
}

test('a list has the devices of a source, a provider or an address, in each order, everywhere', async () => {
  const { url, depot, folder, ...pipeline } = await world(
    ['b,B,north', 'a,A,south', 'c,C,south', 'd,D,north'],
    ['trucks/b', 'vans/a', 'vans/c'],
  )
  // The latest message in another millisecond, so that the order has one answer.
  await pipeline.until(() => Date.now() > Date.parse(pipeline.status().lastMessageAt ?? ''))
  depot.publish({
    topic: 'trucks/b',
    payload: JSON.stringify({ ts: startMs + 9, lat: 52.5, lon: 13.4 }),
    messageId: 9,
  })
  await depot.acked(4)
  const namesAt = async (query: string) => {
    const answer = (await (await fetch(`${url}/devices?${query}`)).json()) as {
      devices: { device: string }[]
    }
    return answer.devices.map(({ device }) => device).join('')
  }
  expect(await namesAt('sort=name')).toBe('abcd')
  expect(await namesAt('sort=name&source=vans')).toBe('ac')
  expect(await namesAt('sort=name&provider=north')).toBe('bd')
  expect(await namesAt('sort=name&provider=south&source=trucks')).toBe('')
  expect(await namesAt('sort=name&address=127.0.')).toBe('abc')
  expect(await namesAt('sort=name&address=10.')).toBe('')
  expect(await namesAt('sort=name&state=never_sent&provider=north')).toBe('d')
  expect((await namesAt('sort=last')).at(0)).toBe('b')
  expect((await namesAt('sort=last')).at(-1)).toBe('d')
  expect((await namesAt('sort=silent')).slice(-2)).toBe('bd')
  expect((await fetch(`${url}/devices?sort=age`)).status).toBe(400)

  const socket = join(folder, 'spool/control.sock')
  const cli = async (...args: string[]) => runCli(['devices', 'list', ...args, '--socket', socket])
  const listed = await cli('--source', 'vans', '--sort', 'name')
  expect(listed.stdout.match(/^[abcd] /gm)).toEqual(['a ', 'c '])
  expect((await cli('--address', '10.')).stdout).toContain('No device has the address "10.".')

  const view = withViews({ ...pipeline, folder }).view
  const { text } = await view('/page/devices?source=vans&sort=name')
  const rows = [...text.matchAll(/page\/device\?key=(\w)"/g)].map(([, name]) => name)
  expect(rows).toEqual(['a', 'c'])
  for (const link of [
    '/page/devices?source=vans&amp;sort=silent',
    '/page/devices?source=vans&amp;provider=south&amp;sort=name',
    '/page/devices?sort=name',
  ])
    expect(text).toContain(`href="${link}"`)
})

test('a list of 2,000 devices takes less than 100 ms, and ten of them at once hold nothing up', async () => {
  const names = Array.from({ length: fleet }, (_, n) => `truck-${n}`)
  const { url } = await world(
    names.map((one) => `${one},A-${one},north`),
    names.map((one) => `trucks/${one}`),
  )
  const path = `${url}/devices?limit=1000&sort=last&hours=1`
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
