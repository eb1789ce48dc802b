// Every sample of TELEMETRY_TEST_DATA/samples becomes what its expectation says, by the preset of its format.

import { describe, expect, test } from 'vitest'
import {
  expectedPart,
  haveSamples,
  openPreset,
  openSource,
  originsOf,
  outcomeOf,
  sampleFolders,
  samplesIn,
  type Sample,
} from '../support/samples.ts'

/** Presets of the folders that are not called like theirs. */
const presetOf: Record<string, string> = { thingsboard: 'thingsboard-device' }

/** What the operator says about one sample: the model, where its note says that it matters. */
const settings: Record<string, { preset?: string; own?: Record<string, unknown> }> = {
  'flespi/5': { preset: 'flespi-state' },
  'teltonika-json/4': { own: { model: 'FMC650' } },
  'teltonika-codec8/1': { own: { model: 'FMC650' } },
  'teltonika-codec8/5': { own: { model: 'TAT140' } },
  'teltonika-codec8/6': { own: { model: 'FMB920' } },
  '_edge/1': { preset: 'teltonika-json' },
}

/** Faults that no format is about are read as a depot would by hand. */
const byHand = {
  name: 'fleet',
  topic: 'fleet/{device}/gps',
  map: {
    time: { path: 'ts', format: 'auto' },
    latitude: { path: 'lat' },
    longitude: { path: 'lon' },
    speed: { path: 'speed', unit: 'km/h' },
    heading: { path: 'heading' },
  },
}

/** Messages that explain each other: one mapper takes all samples of the folder, in order. */
const inOneGo = new Set(['sparkplug-b'])

function presetFor({ folder, name }: Sample): string {
  return settings[name]?.preset ?? presetOf[folder] ?? folder
}

function open(sample: Sample, own: Record<string, unknown> = {}) {
  const isByHand = sample.folder === '_edge' && settings[sample.name]?.preset === undefined
  if (isByHand) return Promise.resolve(openSource({ ...byHand, ...own }))
  return openPreset(presetFor(sample), { ...settings[sample.name]?.own, ...own })
}

type Options = Parameters<typeof expectedPart>[1]

/** What must leave; where nothing must, that there is a reason. */
function wantedOf({ expect: entries }: Sample, options?: Options) {
  const payloads = entries.map((entry) => expectedPart(entry, options)).filter((part) => part !== null)
  return { payloads, silent: false }
}

function foundOf(mapper: Awaited<ReturnType<typeof open>>, sample: Sample) {
  const { payloads, reasons } = outcomeOf(mapper, sample)
  const silent = payloads.length === 0 && reasons.length === 0
  return { found: { payloads, silent }, why: `${sample.name}: ${reasons.join('; ')}` }
}

const folders = haveSamples ? sampleFolders() : []

describe.skipIf(!haveSamples)(
  'the samples (skipped where TELEMETRY_TEST_DATA does not name their folder)',
  () => {
    test('exist', () => {
      expect(folders.length).toBeGreaterThan(20)
    })

    for (const folder of folders.filter((name) => inOneGo.has(name))) {
      test(`${folder} in order give the expected results`, async () => {
        const samples = samplesIn(folder)
        const mapper = await openPreset(folder)
        for (const sample of samples) {
          const { found, why } = foundOf(mapper, sample)
          expect(found, why).toEqual(wantedOf(sample))
        }
      })
    }

    const single = folders.filter((name) => !inOneGo.has(name)).flatMap(samplesIn)

    test.each(single)('$name gives the expected result', async (sample) => {
      const { found, why } = foundOf(await open(sample), sample)
      expect(found, why).toEqual(wantedOf(sample))
    })

    const stale = single.filter((sample) => sample.expect.some(({ gpsStale }) => gpsStale))
    test.each(stale)('$name keeps its last position if the option is set', async (sample) => {
      const { found, why } = foundOf(await open(sample, { no_fix: 'keep' }), sample)
      expect(found, why).toEqual(wantedOf(sample, { keep: true }))
    })

    const optional = single.filter((sample) => sample.expect.some(({ signalsOptIn }) => signalsOptIn))
    test.each(optional)('$name gives the signals whose origins must be allowed', async (sample) => {
      const origins = await originsOf(presetFor(sample))
      const { found, why } = foundOf(await open(sample, { origins }), sample)
      expect(found, why).toEqual(wantedOf(sample, { optIn: true }))
    })
  },
)
