// Several sources about one vehicle become one payload that has what each of them sent.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const start = Date.now() - 60_000

/** Extra fields of the phone and of the box, by the name of the vehicle; then the fields of the payload. */
const vehicles: [name: string, phone: object, box: object, sent: object][] = [
  [
    'one-object',
    { trip: { driver: 'Ada' } },
    { trip: { shift: 'night' } },
    { trip: { driver: 'Ada', shift: 'night' } },
  ],
  [
    'three-levels',
    { trip: { load: { kind: 'sand', state: 'wet' } } },
    { trip: { load: { mass: 12.5, open: false } } },
    { trip: { load: { kind: 'sand', state: 'wet', mass: 12.5, open: false } } },
  ],
  [
    'two-levels',
    { trip: { driver: 'Ada', load: { kind: 'sand' } } },
    { trip: { load: { mass: 0 }, shift: 'night' } },
    { trip: { driver: 'Ada', load: { kind: 'sand', mass: 0 }, shift: 'night' } },
  ],
  // Of the same field that of the first source in the config counts, also where it is empty of meaning.
  [
    'same-field',
    { trip: { load: { state: 'wet' } } },
    { trip: { load: { state: 'dry', mass: 1 } } },
    { trip: { load: { state: 'wet', mass: 1 } } },
  ],
  [
    'false-and-zero',
    { trip: { load: { open: false } } },
    { trip: { load: { open: true } } },
    { trip: { load: { open: false } } },
  ],
  [
    'digits',
    { card: 'CARD' },
    { trip: { load: { mass: 0.1 } } },
    { card: '1234567890123456789', trip: { load: { mass: 0.1 } } },
  ],
  ['phone-only', { trip: { driver: 'Ada' } }, {}, { trip: { driver: 'Ada' } }],
  [
    'box-only',
    {},
    { trip: { load: { kind: 'oil' } }, card: '5' },
    { trip: { load: { kind: 'oil' } }, card: '5' },
  ],
  [
    'prototype',
    { trip: { driver: '__proto__' } },
    { trip: { shift: 'constructor' } },
    { trip: { driver: '__proto__', shift: 'constructor' } },
  ],
]

const kinds = { mass: 'number', open: 'boolean' } as Record<string, string>
const fields = Object.fromEntries(
  [
    'card',
    'trip.driver',
    'trip.shift',
    ...['kind', 'state', 'mass', 'open'].map((name) => `trip.load.${name}`),
  ].map((path) => [path, { path, type: kinds[path.slice('trip.load.'.length)] ?? 'text' }]),
)

const config = configText({
  sources: `
  - name: phones
    topic: "phones/{device}"
    merge: { group: assets, window: 60s }
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      signals: [{ type: FUEL, path: fuel }, { type: DISTANCE, path: d, unit: km }]
      fields: ${JSON.stringify(fields)}
  - name: boxes
    topic: "boxes/{device}"
    merge: { group: assets, window: 60s }
    map:
      time: { path: ts, format: ms }
      signals: [{ type: FUEL, path: fuel }, { type: OBD_LIFETIME_ODOMETER, path: odo, unit: km }]
      fields: ${JSON.stringify(fields)}`,
  more: `devices: { file: devices.csv }
clocks: { trust_local: true }`,
})

test.each([
  ['the phone', ['phones', 'boxes']],
  ['the box', ['boxes', 'phones']],
])('one payload has the fields and signals of both, when %s sends first', async (_first, order) => {
  const folder = await newFolder()
  const rows = vehicles.flatMap(([name]) => [`p-${name},${name}`, `b-${name},${name}`])
  await writeFile(join(folder, 'devices.csv'), ['device,asset_id', ...rows, ''].join('\n'))
  const pipeline = await startPipeline({ folder, config })
  const client = await pipeline.device('bridge')
  let messages = 0
  for (const source of order)
    for (const [name, phone, box] of vehicles) {
      messages += 1
      const own =
        source === 'phones' ? { lat: 48, lon: 9, d: 3, fuel: 40, ...phone } : { odo: 5000, fuel: 50, ...box }
      const payload = JSON.stringify({ ts: start, ...own }).replace('"CARD"', '1234567890123456789')
      const topic = `${source}/${source.slice(0, 1)}-${name}`
      client.publish({ topic, payload, messageId: messages })
    }
  await client.acked(messages)
  await pipeline.until(() => pipeline.status().totals.delivered === vehicles.length)
  const sent = pipeline.sandbox.received({ limit: 100 }).map(({ payload }) => {
    const { assetIdentifier, gps, signals, card, trip } = payload
    const { id } = assetIdentifier as { id: string }
    const values = (signals as { type: string; value: string }[]).map(({ type, value }) => `${type} ${value}`)
    return [id, { ...(card !== undefined && { card }), ...(trip !== undefined && { trip }) }, values, gps]
  })
  // Of two signals of one type that of the first source in the config counts.
  const values = ['FUEL 40', 'DISTANCE 3', 'OBD_LIFETIME_ODOMETER 5000']
  expect(new Map(sent.map(([id, ...rest]) => [id, rest]))).toEqual(
    new Map(vehicles.map(([name, , , both]) => [name, [both, values, { latitude: 48, longitude: 9 }]])),
  )
})
