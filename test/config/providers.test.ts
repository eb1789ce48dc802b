import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../src/config/config.ts'
import type { Config } from '../../src/config/config.ts'
import { deliveryOptions } from '../../src/delivery/config.ts'
import { findCredentials } from '../../src/delivery/delivery.ts'
import { systemClock } from '../../src/std/clock.ts'
import { newFolder } from '../support/folders.ts'

const map = 'map: { latitude: { path: lat }, longitude: { path: lon } }'

const configText = (sources: string, delivery: string, devices = '') => `
ingest: { broker: { access: { anonymous: true } } }
sources:
${sources}
${devices}
delivery:
  base_url: https://ingest.example.com
${delivery}
`

const two = `  providers:
    - { name: north, provider_key: North Haul }
    - { name: south, provider_key: South Haul }`

async function load(text: string, env: Record<string, string> = {}): Promise<Config> {
  const path = join(await newFolder(), 'gateway.yaml')
  await writeFile(path, text)
  return (await loadConfig(path, { env })).config
}

async function problemsOf(text: string): Promise<readonly string[]> {
  const error: unknown = await load(text).catch((thrown: unknown) => thrown)
  if (!(error instanceof ConfigError)) throw new Error(`not refused: ${String(error)}`)
  return error.lines.map((line) => line.replace(/^.*gateway\.yaml:/, ''))
}

test('`from` of a source names bridges, or the broker of the gateway', async () => {
  const bridges = "bridges: [{ name: depot, url: 'mqtt://127.0.0.1', topics: ['a/+'], client_id: g }]"
  const text = (from: string) =>
    configText(`  - { name: a, topic: 'a/{device}', from: [${from}], ${map} }`, '').replace(
      'access: { anonymous: true } }',
      `access: { anonymous: true } }, ${bridges}`,
    )
  expect((await load(text('depot, broker'))).sources[0]?.from).toEqual(['depot', 'broker'])
  expect(await problemsOf(text('broker, dept'))).toEqual([
    expect.stringMatching(/sources\[0\]\.from\[1\] must be one of broker, depot, found "dept"/),
  ])
})

describe('the provider of a source', () => {
  test.each([
    ['a name of the list', '  - { name: a, topic: "a/{device}", provider: north, MAP }'],
    ['a capture', '  - { name: a, topic: "{fleet}/{device}", provider: "{fleet}", MAP }'],
  ])('may be %s', async (_name, source) => {
    const config = await load(configText(source.replace('MAP', map), two))
    expect(config.sources).toHaveLength(1)
  })

  test('is refused when it is not in the list, with the names in the list', async () => {
    const source = `  - { name: a, topic: "a/{device}", provider: nroth, ${map} }`
    expect(await problemsOf(configText(source, two))).toEqual([
      '4:37  sources[0].provider must be one of delivery.providers (north, south), found "nroth". Did you mean "north"?',
    ])
    expect(await problemsOf(configText(source, ''))).toEqual([
      expect.stringContaining('(default), found "nroth"'),
    ])
  })

  test('is required when there are several, unless the device table may name it', async () => {
    const source = `  - { name: a, topic: "a/{device}", ${map} }`
    expect(await problemsOf(configText(source, two))).toEqual([
      expect.stringMatching(/^4:5 {2}sources\[0\] needs `provider`: one of north, south\./),
    ])
    const config = await load(configText(source, two, 'devices: { file: devices.csv }'))
    expect(config.sources[0]?.provider).toBeUndefined()
  })

  test('is the only provider when the source names none', async () => {
    const source = `  - { name: a, topic: "a/{device}", ${map} }`
    const config = await load(configText(source, '  providers: [{ name: north }]'))
    expect(config.sources[0]?.provider).toBe('north')
    expect((await load(configText(source, ''))).sources[0]?.provider).toBeUndefined()
  })

  test('may be omitted when one provider is called default', async () => {
    const source = `  - { name: a, topic: "a/{device}", ${map} }`
    const list = '  providers: [{ name: default, provider_key: A }, { name: north, provider_key: B }]'
    expect((await load(configText(source, list))).sources[0]?.provider).toBeUndefined()
  })
})

describe('credentials', () => {
  const source = `  - { name: a, topic: "a/{device}", ${map} }`

  test('loaded by systemd are found in CREDENTIALS_DIRECTORY', async () => {
    const folder = await newFolder()
    const keys = { accessKeyId: 'AKIASYSTEMD', secretAccessKey: 's' }
    await writeFile(join(folder, 'ingestion.json'), JSON.stringify(keys))
    const env = { CREDENTIALS_DIRECTORY: folder }
    const text = '  credentials: { source: file, path: "${env:CREDENTIALS_DIRECTORY}/ingestion.json" }'
    const [provider] = deliveryOptions((await load(configText(source, text), env)).delivery).providers
    if (provider === undefined) throw new Error('there is no provider')
    expect(await findCredentials({ clock: systemClock, env }, provider)).toEqual({
      accessKeyId: 'AKIASYSTEMD',
      expiresAt: null,
    })
  })

  test('of a provider have a path relative to the folder of the config', async () => {
    const folder = await newFolder()
    const path = join(folder, 'gateway.yaml')
    const list = '  providers: [{ name: north, credentials: { source: file, path: north.json } }]'
    await writeFile(path, configText(source, list))
    const { config } = await loadConfig(path, { env: {} })
    expect(config.delivery.providers?.[0]?.credentials).toEqual({
      source: 'file',
      path: join(folder, 'north.json'),
    })
  })

  test('of a provider must not be in the config, and the message does not repeat them', async () => {
    const keys = '{ source: keys, access_key_id: A, secret_access_key: hush-hush }'
    const problems = await problemsOf(
      configText(source, `  providers: [{ name: north, credentials: ${keys} }]`),
    )
    expect(problems).toEqual([
      expect.stringMatching(/providers\[0\]\.credentials\.secret_access_key must come from/),
    ])
    expect(problems.join()).not.toContain('hush-hush')
  })
})
