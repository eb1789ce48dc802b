import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { ConfigError, loadConfig, loadDaemonPlaces } from '../../src/config/config.ts'
import { deliveryOptions } from '../../src/delivery/config.ts'
import { findSigningKeys } from '../../src/delivery/delivery.ts'
import { systemClock } from '../../src/std/clock.ts'

const example = new URL('../../config/examples/gateway.yaml', import.meta.url).pathname

const minimal = `
ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
delivery: { base_url: "http://127.0.0.1:8081" }
`

async function folderWith(files: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), 'config-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return {
    path: (name: string) => join(folder, name),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

describe('the config', () => {
  test('of the example is valid and has the documented values', async () => {
    const { config } = await loadConfig(example, { env: {} })
    expect(config).toMatchObject({
      sources: [{ name: 'trucks', topic: 'telemetry/v1/{device}' }],
      devices: { unknown: 'accept' },
      defaults: { carrier: 'ACME', operator: 'OP1', asset_type: 'TRACTOR' },
      spool: { max_bytes: 20 * 1024 ** 3, min_free_bytes: 1024 ** 3 },
      delivery: {
        base_url: 'http://127.0.0.1:8081',
        credentials: { source: 'environment' },
        batch: { max_payloads: 500, max_bytes: 1024 ** 2, linger: 1000 },
        max_in_flight: 4,
        timeout: 30_000,
      },
      ops: { listen: { host: '127.0.0.1', port: 8080 } },
      log: { level: 'info' },
    })
  })

  test('has defaults for everything but sources and the address of the service', async () => {
    await using folder = await folderWith({ 'c.yaml': minimal })
    const { config } = await loadConfig(folder.path('c.yaml'), { env: {} })
    expect(config.ops.listen).toEqual({ host: '127.0.0.1', port: 8080 })
    expect(config.delivery.max_in_flight).toBe(4)
    expect(config.spool.path).toBe(folder.path('spool'))
  })

  test('has paths relative to its own folder, not to the working directory', async () => {
    const text = `${minimal}
spool: { path: data/spool }
devices: { file: fleet.csv }
`.replace('delivery: {', 'delivery: { credentials: { source: file, path: keys.json },')
    await using folder = await folderWith({ 'c.yaml': text })
    const { config } = await loadConfig(folder.path('c.yaml'), { env: {} })
    expect(config.spool.path).toBe(folder.path('data/spool'))
    expect(config.devices.file).toBe(folder.path('fleet.csv'))
    expect(config.delivery.credentials).toEqual({ source: 'file', path: folder.path('keys.json') })
  })

  test('keeps absolute paths and reads secrets from files in its folder', async () => {
    const text = `${minimal}
spool: { path: /var/lib/x }
`.replace(
      'delivery: {',
      'delivery: { credentials: { source: keys, access_key_id: "${env:ID}", secret_access_key: "${file:key.txt}" },',
    )
    await using folder = await folderWith({ 'c.yaml': text, 'key.txt': 'hunter2\n' })
    const { config } = await loadConfig(folder.path('c.yaml'), { env: { ID: 'AKIA1' } })
    expect(config.spool.path).toBe('/var/lib/x')
    const { credentials } = config.delivery
    expect(credentials).toMatchObject({ source: 'keys', access_key_id: 'AKIA1' })
    const key = credentials.source === 'keys' ? credentials.secret_access_key : null
    expect(key).toBeInstanceOf(Secret)
    expect(key?.reveal()).toBe('hunter2')
    expect(JSON.stringify(config)).not.toContain('hunter2')
  })
})

describe('providers', () => {
  test('have credentials beside the config, or where systemd passes them', async () => {
    const text = minimal.replace(
      'delivery: {',
      'delivery: { credentials: { source: file, path: "${env:CREDENTIALS_DIRECTORY}/ingestion.json" }, ' +
        'providers: [{ name: north, credentials: { source: file, path: north.json } }, { name: default }],',
    )
    const keys = { accessKeyId: 'AKIASYSTEMD', secretAccessKey: 's' }
    await using folder = await folderWith({ 'c.yaml': text, 'ingestion.json': JSON.stringify(keys) })
    const env = { CREDENTIALS_DIRECTORY: folder.path('') }
    const { config } = await loadConfig(folder.path('c.yaml'), { env })
    expect(config.delivery.providers?.[0]?.credentials).toEqual({
      source: 'file',
      path: folder.path('north.json'),
    })
    const [, own] = deliveryOptions(config.delivery).providers
    expect(own && (await findSigningKeys({ clock: systemClock, env }, own))).toMatchObject({
      accessKeyId: 'AKIASYSTEMD',
      expiresAt: null,
    })
  })

  test('of which there is one are that of a source that names none', async () => {
    const text = minimal.replace('delivery: {', 'delivery: { providers: [{ name: north }],')
    await using folder = await folderWith({ 'c.yaml': text, 'none.yaml': minimal })
    const providerIn = async (name: string) =>
      (await loadConfig(folder.path(name), { env: {} })).config.sources[0]?.provider
    expect(await providerIn('c.yaml')).toBe('north')
    expect(await providerIn('none.yaml')).toBeUndefined()
  })
})

describe('a text that is not read as it is', () => {
  async function problemsOf(text: string): Promise<readonly string[]> {
    await using folder = await folderWith({ 'c.yaml': text })
    const error: unknown = await loadConfig(folder.path('c.yaml'), { env: {} }).catch(
      (thrown: unknown) => thrown,
    )
    return error instanceof ConfigError ? error.lines : []
  }

  test('gives at most 20 problems for a hundred broken lines', async () => {
    const text = Array.from({ length: 100 }, (_, index) => `k${index}: ]`).join('\n')
    const { length } = await problemsOf(text)
    expect([length > 0, length <= 20]).toEqual([true, true])
  })

  test('is refused where its aliases would expand to gigabytes, and they are not expanded', async () => {
    const levels = Array.from({ length: 20 }, (_, level) =>
      level === 0
        ? 'l0: &l0 [x, x, x, x, x, x, x, x, x, x]'
        : `l${level}: &l${level} [${Array(10)
            .fill(`*l${level - 1}`)
            .join(', ')}]`,
    )
    expect(await problemsOf(levels.join('\n'))).toEqual([expect.stringContaining('expand to more than')])
  })
})

describe('the places of the daemon', () => {
  test('is read although the rest of the config cannot be', async () => {
    const text =
      'delivery: { base_url: "${env:MISSING}", nonsense: 1 }\nops: { listen: "127.0.0.1:${env:PORT}", tls: { cert: "${file:no}" } }\n'
    await using folder = await folderWith({ 'c.yaml': text })
    expect(await loadDaemonPlaces(folder.path('c.yaml'), { env: { PORT: '9000' } })).toEqual({
      listen: { host: '127.0.0.1', port: 9000 },
      controlSocket: null,
      spoolPath: folder.path('spool'),
    })
  })
})
