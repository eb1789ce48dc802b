import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../src/config/config.ts'

const config = `ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    about: The trucks of the north.
    topic: a/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: trailers
    preset: trailers.yaml
spool:
  dead_letters: { keep: 30d }
ledger:
  keep: 3d
delivery: { base_url: "http://127.0.0.1:8081" }
`
const preset = `topic: b/{device}
about: Trailers.
map: { latitude: { path: lat }, longitude: { path: lon } }
`

async function problemsOf(files: { config: string; preset: string }): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'renamed-'))
  await writeFile(join(folder, 'c.yaml'), files.config)
  await writeFile(join(folder, 'trailers.yaml'), files.preset)
  const error: unknown = await loadConfig(join(folder, 'c.yaml'), { env: {} }).catch(
    (thrown: unknown) => thrown,
  )
  await rm(folder, { recursive: true })
  if (!(error instanceof ConfigError)) return []
  return error.lines.map((line) => line.replaceAll(`${folder}/`, '').replace(/ {2,}/, ' '))
}

test('an option that was renamed is refused with its place and its new name', async () => {
  expect(await problemsOf({ config, preset })).toEqual([
    'c.yaml:4:5 option "about" was renamed: use "description".',
    'c.yaml:8:5 sources[1].preset has a problem at trailers.yaml:2:1: option "about" was renamed: use "description".',
    'c.yaml:10:19 option "keep" was renamed: use "retention".',
    'c.yaml:12:3 option "keep" was renamed: use "retention".',
  ])
})

test('the config is accepted with the new names', async () => {
  const renamed = (text: string) => text.replace('about:', 'description:').replaceAll('keep:', 'retention:')
  expect(await problemsOf({ config: renamed(config), preset: renamed(preset) })).toEqual([])
})
