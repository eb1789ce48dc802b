// The provider of a payload, from the message of the device to the provider key of its batch.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const configText = (baseUrl: string) => `
ingest: { broker: { listeners: [{ url: mqtt://127.0.0.1:0 }], access: { anonymous: true } } }
sources:
  - name: by-capture
    topic: fleet/{fleet}/{device}
    provider: "{fleet}"
    map: &map { latitude: { path: lat }, longitude: { path: lon } }
  - { name: by-table, topic: "any/{device}", map: *map }
  - { name: by-source, topic: "south/{device}", provider: south, map: *map }
devices: { file: devices.csv }
spool: { path: ./spool, min_free_bytes: 1B }
delivery:
  base_url: ${baseUrl}
  batch: { linger: 10ms }
  providers:
    - { name: north, provider_key: North Haul }
    - { name: south, provider_key: South Haul }
ops: { listen: 127.0.0.1:0 }
`

test('a device table, a source or a capture names the provider of a payload; without a provider it is kept', async () => {
  const folder = await newFolder()
  await writeFile(
    join(folder, 'devices.csv'),
    'device,provider\nlisted-1,north\nlisted-2,south\nlisted-3,south\n',
  )
  const pipeline = await startPipeline({
    folder,
    config: configText,
    sandbox: { accounts: [{ ...sandboxAccount, aggregator: true, providers: ['North Haul', 'South Haul'] }] },
  })
  const device = await pipeline.device('truck')
  const topics = [
    'fleet/north/captured-1',
    'fleet/south/captured-2',
    'any/listed-1',
    'any/listed-2',
    'south/sourced-1',
    // The table takes precedence.
    'fleet/north/listed-3',
    'any/unlisted',
    'fleet/west/captured-3',
  ]
  for (const topic of topics) device.publish({ topic, payload: '{"lat":60.1,"lon":24.9}' })
  await pipeline.until(() => pipeline.status().totals.delivered === 6)

  const keys = pipeline.sandbox.received({ limit: 100 }).map(({ payload, provider }) => {
    const { id } = Object(payload['deviceIdentifier']) as { id: string }
    return [id, provider]
  })
  expect(Object.fromEntries(keys)).toEqual({
    'captured-1': 'North Haul',
    'captured-2': 'South Haul',
    'listed-1': 'North Haul',
    'listed-2': 'South Haul',
    'listed-3': 'South Haul',
    'sourced-1': 'South Haul',
  })
  const unmappable = pipeline.events.filter((event) => event.kind === 'message_unmappable')
  expect(unmappable.map(({ reason, topic }) => [reason, topic])).toEqual([
    ['UNKNOWN_PROVIDER', 'any/unlisted'],
    ['UNKNOWN_PROVIDER', 'fleet/west/captured-3'],
  ])
  expect(pipeline.status().lanes.map(({ provider }) => provider)).not.toContain('west')
})
