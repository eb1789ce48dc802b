import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configSchema, loadConfig } from '../../src/config/config.ts'
import { loadCases, loadPresetCases } from '../../src/config/case-files.ts'
import { referenceText, schemaText } from '../../src/config/config-reference.ts'
import { newFolder } from '../support/folders.ts'
import { loadPresetMapping } from '../support/preset-mapping.ts'

const head =
  'ingest: { broker: { access: { anonymous: true } } }\ndelivery: { base_url: "http://127.0.0.1:1" }\n'

const acme = `# Acme boxes.
topic: acme/{device}
when: lat != null
map:
  latitude: { path: lat }
  longitude: { path: lon }
  speed: { path: v, unit: km/h }
`

async function folderWith(files: Record<string, string>) {
  const folder = await newFolder()
  await mkdir(join(folder, 'own'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return folder
}

async function load(sources: string, files: Record<string, string> = {}) {
  const folder = await folderWith({ ...files, 'c.yaml': `${head}sources:\n${sources}` })
  const loaded = await loadConfig(join(folder, 'c.yaml'), { env: { MODEL: 'FMC650' } })
  return { ...loaded, folder }
}

describe('a source with a preset', () => {
  test('of the package needs no other option', async () => {
    const { config, presetFiles } = await load('  - { name: phones, preset: owntracks }\n')
    expect(config.sources).toMatchObject([
      { name: 'phones', preset: 'owntracks', device: '{user}/{device}', map: { latitude: { path: 'lat' } } },
    ])
    expect(presetFiles).toEqual([expect.stringMatching(/\/config\/presets\/owntracks\.yaml$/)])
  })

  test('of a file gets the options of the preset, and its own options override them', async () => {
    const source =
      '  - { name: a, preset: own/acme.yaml, model: "${env:MODEL}", map: { speed: { path: w } } }\n'
    const { config, presetFiles, folder } = await load(source, { 'own/acme.yaml': acme })
    expect(config.sources[0]).toMatchObject({
      topic: 'acme/{device}',
      model: 'FMC650',
      map: { latitude: { path: 'lat', unit: 'deg' }, speed: { path: 'w' } },
    })
    // Replaced as a whole: the unit of the preset's speed is not that of another value.
    expect(config.sources[0]?.map.speed?.unit).toBeUndefined()
    expect(presetFiles).toEqual([join(folder, 'own/acme.yaml')])
  })

  test('that names another preset gets what is missing in both, the nearer one first', async () => {
    const files = {
      'own/acme.yaml': acme,
      'own/acme-2.yaml': 'preset: own/acme.yaml\ntopic: acme2/{device}\nmap: { longitude: { path: lng } }\n',
    }
    const { config, presetFiles } = await load(
      '  - { name: a, preset: own/acme-2.yaml, map: { heading: { path: h } } }\n',
      files,
    )
    expect(config.sources[0]).toMatchObject({
      preset: 'own/acme-2.yaml',
      topic: 'acme2/{device}',
      when: 'lat != null',
      map: { latitude: { path: 'lat' }, longitude: { path: 'lng' }, heading: { path: 'h' } },
    })
    expect(presetFiles).toHaveLength(2)
  })
})

describe('a source without a preset', () => {
  test('needs the same options by the JSON Schema and the reference', () => {
    const text = referenceText(configSchema)
    const entry = (path: string) => text.split(/^#+ /m).find((part) => part.startsWith(`\`${path}\`\n`)) ?? ''
    expect(entry('sources[].topic')).toContain('**required without `preset`**')
    expect(entry('sources[].map')).toContain('**required without `preset`**')
    expect(entry('sources[].name')).toContain('**required**')
    expect(entry('sources[].preset')).not.toContain('required')
    const schema = JSON.parse(schemaText(configSchema)) as {
      properties: { sources: { items: { required: string[]; anyOf: unknown } } }
    }
    expect(schema.properties.sources.items).toMatchObject({
      required: ['name'],
      anyOf: [{ required: ['preset'] }, { required: ['topic', 'map'] }],
    })
  })
})

describe('cases', () => {
  const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
  const one = 'cases: [{ name: x, topic: acme/1, message: "{}", refused: NO_TIME }]\n'

  test('of a preset are loaded with the preset and the options that override it', async () => {
    const folder = await folderWith({ 'acme.yaml': acme, 'acme.cases.yaml': `source: { model: M }\n${one}` })
    const { cases, mapping } = await loadPresetCases(join(folder, 'acme.cases.yaml'), deps)
    expect(cases.cases).toMatchObject([{ name: 'x', refused: 'NO_TIME' }])
    expect(mapping.sources).toMatchObject([{ name: 'acme', topic: 'acme/{device}', model: 'M' }])
  })

  test('have their problems reported, and those of the merged preset', async () => {
    const files = { 'acme.yaml': acme, 'acme.cases.yaml': `source: { when: "lat = 1" }\n${one}` }
    const folder = await folderWith({ ...files, 'b.cases.yaml': 'cases: [{ name: x, mesage: y }]\n' })
    await expect(loadPresetCases(join(folder, 'acme.cases.yaml'), deps)).rejects.toThrow(
      /acme\.cases\.yaml:1:1 {2}when is no expression: .* compared with ==/,
    )
    await expect(loadCases(join(folder, 'b.cases.yaml'), deps)).rejects.toThrow(
      /b\.cases\.yaml:1:.* Did you mean "message"\?/,
    )
  })

  test('of a config may not override options of a source', async () => {
    const folder = await folderWith({ 'c.cases.yaml': `${one}source: { model: x }\n` })
    await expect(loadCases(join(folder, 'c.cases.yaml'), deps)).rejects.toThrow(/2:1 {2}source is only for/)
  })

  test('are not needed to load a packaged preset by name', async () => {
    const mapping = await loadPresetMapping('owntracks', deps, { no_fix: 'keep' })
    expect(mapping.sources).toMatchObject([{ name: 'owntracks', no_fix: 'keep' }])
    await expect(loadPresetMapping('owntrack', deps)).rejects.toThrow(/Did you mean "owntracks"/)
  })
})
