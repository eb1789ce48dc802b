// A message that its client sends again (DUP) has one effect, whatever the mapping is by then: the reload that changes
// what becomes of it may come between the two.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const message = { ts: Date.now() - 60_000, lat: 52, lon: 13, alt: 7, sub: { lat: 53 } }

async function startDepot(): Promise<{ pipeline: Pipeline; edit(from: string, to: string): Promise<void> }> {
  const folder = await newFolder()
  const pipeline = await startPipeline({
    folder,
    config: configText({
      sources: `
  - name: trucks
    topic: trucks/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }`,
      more: 'clocks: { trust_local: true }',
    }),
  })
  return {
    pipeline,
    async edit(from, to) {
      const path = join(folder, 'gateway.yaml')
      const text = await readFile(path, 'utf8')
      expect(text).toContain(from)
      await writeFile(path, text.replace(from, to))
      expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    },
  }
}

async function publish({ pipeline }: { pipeline: Pipeline }, body: object, dup: boolean): Promise<void> {
  const device = await pipeline.device('truck')
  device.publish({ topic: 'trucks/a', payload: JSON.stringify(body), messageId: 7, dup })
  await device.acked(1)
  device.destroy()
  await device.gone()
}

const stored = ({ pipeline }: { pipeline: Pipeline }) => {
  const { payloads, duplicates, resent } = pipeline.status().totals
  return { payloads, duplicates, resent }
}

test('a resend over reloads is a duplicate, and another message is not', async () => {
  const depot = await startDepot()
  await publish(depot, message, false)
  await depot.edit('latitude: { path: lat }', 'latitude: { path: sub.lat }')
  await depot.edit('trucks/{device}', '+/{device}')
  await publish(depot, message, true)
  expect(stored(depot)).toMatchObject({ payloads: 1, resent: 1 })
  await publish(depot, { ...message, ts: message.ts + 1 }, true)
  expect(stored(depot)).toMatchObject({ payloads: 2, resent: 1 })
  // Without DUP it is the reading of the mapping in force.
  await publish(depot, message, false)
  expect(stored(depot)).toMatchObject({ payloads: 3, resent: 1 })
})

test('a resend of a message that the mapping before had ignored is mapped', async () => {
  const depot = await startDepot()
  await depot.edit('map: {', 'when: alt == 8\n    map: {')
  await publish(depot, message, false)
  expect(stored(depot)).toMatchObject({ payloads: 0 })
  await depot.edit('when: alt == 8', 'when: alt == 7')
  await publish(depot, message, true)
  expect(stored(depot)).toMatchObject({ payloads: 1, resent: 0 })
})
