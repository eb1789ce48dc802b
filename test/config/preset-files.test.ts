import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, configSchema, loadConfig } from '../../src/config/config.ts'
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

/** Problems without the folder, and with one blank between place and text. */
async function problems(sources: string, files: Record<string, string> = {}): Promise<string[]> {
  const folder = await folderWith({ ...files, 'c.yaml': `${head}sources:\n${sources}` })
  const error: unknown = await loadConfig(join(folder, 'c.yaml'), { env: {} }).catch(
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof ConfigError)) throw new Error(`not refused: ${String(error)}`)
  return error.lines.map((line) => line.replaceAll(`${folder}/`, '').replace(/ {2,}/, ' '))
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

  test('of an unknown name is refused with the known names', async () => {
    expect(await problems('  - name: a\n    preset: teltonica-json\n')).toEqual([
      expect.stringMatching(
        /^c\.yaml:5:5 sources\[0\]\.preset must be chirpstack, .*victron-gps.* or a file ending in \.yaml, found "teltonica-json"\. Did you mean "teltonika-json"\?$/,
      ),
    ])
  })

  test.each([
    [
      'teltonika',
      /Did you mean "teltonika-codec8" \(Teltonika trackers in their binary form.*\) or "teltonika-json" \(.+\)\?$/,
    ],
    ['teltonika-fmb920', /Did you mean "teltonika-codec8" \(.*\) or "teltonika-json" \(.*\)\?$/],
    ['lorawan', /Did you mean "the-things-stack" \(.*\) or "chirpstack" \(.*\)\?$/],
    ['TTN', /Did you mean "the-things-stack"\?$/],
    ['codec8', /Did you mean "teltonika-codec8"\?$/],
    ['signalk', /Did you mean "signal-k"\?$/],
    ['mqtt', /found "mqtt"\.$/],
    ['x', /found "x"\.$/],
  ])('of the name %s is answered with those that may be meant', async (name, sentence) => {
    expect(await problems(`  - name: a\n    preset: ${name}\n`)).toEqual([expect.stringMatching(sentence)])
  })

  test('that cannot be read is reported once, without the problems that follow from it', async () => {
    expect(await problems('  - name: a\n    preset: own/none.yaml\n')).toEqual([
      'c.yaml:5:5 sources[0].preset names "own/none.yaml", which cannot be read: there is no such file.',
    ])
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

  test('has the problems of a preset below it reported with the lines of both files', async () => {
    const source = '  - name: a\n    preset: own/b.yaml\n'
    const above = { 'own/b.yaml': 'topic: b/{device}\npreset: own/acme.yaml\n' }
    expect(
      await problems(source, { ...above, 'own/acme.yaml': acme.replace('path: v', 'path: v..w') }),
    ).toEqual([
      'c.yaml:5:5 sources[0].preset has a problem at own/acme.yaml:7:3: map.speed has an empty key at position 3 of "v..w".',
    ])
    expect(await problems(source, { ...above, 'own/acme.yaml': acme.replace('when:', 'wen:') })).toEqual([
      'c.yaml:5:5 sources[0].preset has a problem at own/b.yaml:2:1: preset has a problem at own/acme.yaml:3:1: unknown option "wen". Did you mean "when"?',
    ])
    expect(
      await problems(source, { 'own/b.yaml': 'preset: own/c.yaml\n', 'own/c.yaml': 'preset: own/b.yaml\n' }),
    ).toEqual([
      expect.stringContaining('must end after at most 4 presets: own/b.yaml > own/c.yaml > own/b.yaml.'),
    ])
  })

  test('with problems in the preset file has all of them reported with the lines of that file', async () => {
    const wrong = acme.replace('km/h', 'kmh').replace('when:', 'wen:').replace('{device}', '#/{device}')
    const reported = await problems('  - name: a\n    preset: own/acme.yaml\n    modell: x\n', {
      'own/acme.yaml': wrong,
    })
    expect(reported).toEqual([
      'c.yaml:5:5 sources[0].preset has a problem at own/acme.yaml:3:1: unknown option "wen". Did you mean "when"?',
      expect.stringMatching(
        /^c\.yaml:5:5 sources\[0\]\.preset has a problem at own\/acme\.yaml:7:21: map\.speed\.unit must be one of .*found "kmh"\. /,
      ),
      'c.yaml:6:5 unknown option "modell" in sources[0]. Did you mean "model"?',
    ])
  })

  test('with a problem that only the mapping finds has the line of the preset file reported', async () => {
    const wrong = acme.replace('path: v', 'path: v..w')
    expect(await problems('  - name: a\n    preset: own/acme.yaml\n', { 'own/acme.yaml': wrong })).toEqual([
      'c.yaml:5:5 sources[0].preset has a problem at own/acme.yaml:7:3: map.speed has an empty key at position 3 of "v..w".',
    ])
  })

  test('has its own problems reported at their own position', async () => {
    const source =
      '  - name: a\n    preset: own/acme.yaml\n    map:\n      speed: { path: v..w }\n      heading: { pth: h }\n'
    expect(await problems(source, { 'own/acme.yaml': acme })).toEqual([
      'c.yaml:7:7 sources[0].map.speed has an empty key at position 3 of "v..w".',
      expect.stringMatching(/^c\.yaml:8:18 unknown option "pth" in sources\[0\]\.map\.heading\. /),
    ])
    expect(await problems(source.replace(/ {6}heading.*\n/, ''), { 'own/acme.yaml': acme })).toEqual([
      'c.yaml:7:7 sources[0].map.speed has an empty key at position 3 of "v..w".',
    ])
  })

  test('whose topic lacks a capture that the preset uses is refused', async () => {
    const wanted = acme
      .replace('when:', 'device: "{fleet}/{device}"\nwhen:')
      .replace('acme/', 'acme/{fleet}/')
    const source = '  - name: a\n    preset: own/acme.yaml\n    topic: other/{device}\n'
    expect(await problems(source, { 'own/acme.yaml': wanted })).toEqual([
      expect.stringMatching(
        /^c\.yaml:5:5 sources\[0\]\.preset has a problem at own\/acme\.yaml:3:1: device names \{fleet\}/,
      ),
    ])
  })

  test('may use anchors and merge keys; the values they bring count as its own', async () => {
    const sources = `  - &one { name: a, preset: own/acme.yaml, when: "lat = 1" }
  - { <<: *one, name: b, topic: "b/{device}" }
`
    const reported = await problems(sources, { 'own/acme.yaml': acme })
    expect(reported).toHaveLength(2)
    for (const line of reported) expect(line).not.toContain('preset')
  })

  test('with broken YAML in the preset file has the line of that file reported', async () => {
    expect(
      await problems('  - { name: a, preset: own/acme.yaml }\n', { 'own/acme.yaml': 'map: [\n' }),
    ).toEqual([
      expect.stringMatching(/^c\.yaml:4:16 sources\[0\]\.preset has a problem at own\/acme\.yaml:2:1: /),
    ])
    expect(await problems('  - { name: a, preset: own/acme.yaml }\n', { 'own/acme.yaml': '- a\n' })).toEqual([
      expect.stringContaining('must be a map, found a list'),
    ])
  })
})

describe('a source without a preset', () => {
  test('needs topic and map', async () => {
    expect(await problems('  - name: a\n')).toEqual([
      expect.stringContaining('sources[0].topic is required.'),
      expect.stringContaining('sources[0].map is required.'),
    ])
  })

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
