// GET /devices of a real gateway: which devices, in which order. What a large list costs: device-lists.slow.test.ts.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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

  const socket = join(folder, 'spool.sock')
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
