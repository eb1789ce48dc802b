import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadPresetCases, testedBy } from '../../../src/config/case-files.ts'
import { runCases } from '../../../src/mapping/cases/cases.ts'
import { expandPresets, presetSchema } from '../../../src/mapping/source-config/preset-merge.ts'

const folder = resolve(import.meta.dirname, '../../../config/presets')
const files = readdirSync(folder)
const presets = files.filter((file) => file.endsWith('.yaml') && !file.endsWith('.cases.yaml'))

const preset = {
  topic: 'fleet/{device}',
  when: 'lat != null',
  exclude: ['fleet/x'],
  families: { truck: ['FMB6*'], car: ['FMB1*'] },
  defaults: { manufacturer: 'Acme', model: 'A1' },
  map: {
    latitude: { path: 'lat', unit: 'rad' },
    longitude: { path: 'lon' },
    signals: [{ type: 'A', path: 'a' }],
    fields: { 'gps.altitude': { path: 'alt', type: 'number' }, note: { path: 'n', type: 'text' } },
  },
}

function expanded(source: object): unknown {
  return expandPresets([{ preset: 'acme', ...source }], (name) => (name === 'acme' ? preset : undefined))[0]
}

describe('a source with a preset', () => {
  test('without other options equals the preset', () => {
    expect(expanded({ name: 'mine' })).toEqual({ name: 'mine', preset: 'acme', ...preset })
  })

  test('overrides the preset key by key', () => {
    expect(expanded({ topic: ['a/{device}', 'b/{device}'], exclude: [], when: 'sat > 3' })).toEqual({
      preset: 'acme',
      ...preset,
      topic: ['a/{device}', 'b/{device}'],
      exclude: [],
      when: 'sat > 3',
    })
  })

  test('overrides whole fields of `map`', () => {
    const map = { latitude: { path: 'y' }, speed: { path: 'v' } }
    expect(expanded({ map })).toMatchObject({ map: { ...preset.map, ...map } })
    expect(expanded({ map })).toHaveProperty('map.latitude', { path: 'y' })
  })

  test('replaces the whole list of signals, and extra fields by name', () => {
    const map = { signals: [], fields: { note: { path: 'm', type: 'text' } } }
    expect(expanded({ map })).toHaveProperty('map.signals', [])
    expect(expanded({ map })).toHaveProperty('map.fields', {
      'gps.altitude': preset.map.fields['gps.altitude'],
      note: { path: 'm', type: 'text' },
    })
  })

  test('adds to the families and defaults of the preset', () => {
    expect(expanded({ families: { car: ['X*'] }, defaults: { model: 'B2' } })).toMatchObject({
      families: { truck: ['FMB6*'], car: ['X*'] },
      defaults: { manufacturer: 'Acme', model: 'B2' },
    })
  })

  test('with an option of another type keeps it as written, and the schema reports it', () => {
    expect(expanded({ map: 'none' })).toMatchObject({ map: 'none' })
    expect(expandPresets(['a', { preset: 'other' }, { name: 'plain' }], () => undefined)).toEqual([
      'a',
      { preset: 'other' },
      { name: 'plain' },
    ])
  })

  test('does not change the preset', () => {
    const before = structuredClone(preset)
    expanded({ map: { fields: { note: { path: 'x', type: 'text' } } }, families: { car: ['X*'] } })
    expect(preset).toEqual(before)
  })
})

test('a preset file requires no option, and accepts every option of a source except the name', () => {
  expect(presetSchema.safeParse({}).success).toBe(true)
  expect(presetSchema.safeParse({ name: 'x' }).success).toBe(false)
  expect(presetSchema.safeParse({ preset: 'x' }).success).toBe(true)
})

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }

describe.each(presets)('the preset %s', (file) => {
  const cases = join(folder, file.replace(/\.yaml$/, '.cases.yaml'))

  test('has cases, and a header that describes its purpose', () => {
    expect(existsSync(cases)).toBe(true)
    const lines = readFileSync(join(folder, file), 'utf8').split('\n')
    expect(lines.findIndex((line) => !line.startsWith('#'))).toBeGreaterThanOrEqual(3)
  })
})

test('every file of cases has its preset', () => {
  const names = files.filter((file) => file.endsWith('.cases.yaml'))
  const tested = names.map((name) => testedBy(join(folder, name)))
  expect(new Set(tested)).toEqual(new Set(presets.map((preset) => join(folder, preset))))
})

/** Read before the tests are made, since each case is one. */
const judged = await Promise.all(
  files
    .filter((file) => file.endsWith('.cases.yaml'))
    .map(async (file) => {
      try {
        const { cases, mapping } = await loadPresetCases(join(folder, file), deps)
        const options = { mapping, nowMs: Date.now() }
        return { file, results: runCases(cases, options), error: null }
      } catch (error) {
        return { file, results: [], error }
      }
    }),
)

describe.each(judged)('$file', ({ results, error }) => {
  test('can be read, and each case has a unique name', () => {
    if (error !== null) throw error
    const names = results.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  test.each(results)('$name', ({ diff }) => {
    expect(diff).toEqual([])
  })
})
