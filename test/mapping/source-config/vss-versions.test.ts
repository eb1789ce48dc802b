import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { replayMessages } from '../../../src/mapping/cases/cases.ts'
import { openMapper } from '../../../src/mapping/mapping.ts'
import { messageOf, type Sent } from '../../support/mapping-world.ts'
import { loadPresetMapping } from '../../support/preset-mapping.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }

/** The odometer that is sent of a `TraveledDistance`; undefined where there is none. */
async function odometerOf(distance: string, own: object, version?: string): Promise<string | undefined> {
  const mapper = await openMapper(await loadPresetMapping('vss', deps, { ...own }))
  const on = (name: string) => ({ topic: `cars/van-7/vss/Vehicle/${name}` })
  const messages = [
    messageOf(distance, on('TraveledDistance')),
    messageOf('12', on('Speed')),
    ...(version === undefined ? [] : [messageOf(version, on('VersionVSS/Major'))]),
    messageOf('51.3', on('CurrentLocation/Latitude')),
    messageOf('9.4', on('CurrentLocation/Longitude')),
  ]
  const { payloads } = replayMessages(mapper, messages)
  expect(payloads).toHaveLength(1)
  const { signals } = JSON.parse(payloads[0]?.json ?? '{}') as Sent
  return signals?.[0]?.value
}

test.each([
  ['2500000', [], undefined, undefined],
  ['2500000', ['vss6'], undefined, '2500'],
  ['2500000', ['vss5'], undefined, '2500000'],
  ['2500', ['vss6'], undefined, '2.5'],
  ['2500', ['vss5'], undefined, '2500'],
  ['2500000', ['vss5'], '6', '2500'],
  ['2500', ['vss6'], '4', '2500'],
  ['2500.5', [], undefined, '2500.5'],
  ['48211500', [], '7', '48211.5'],
  ['0', [], '6', undefined],
])('a distance of %s with origins %j and version %s is an odometer of %s km', async (...row) => {
  const [distance, origins, version, odometer] = row
  expect(await odometerOf(distance, { origins }, version)).toBe(odometer)
})
