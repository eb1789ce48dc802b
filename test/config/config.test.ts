import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { ConfigError, loadConfig, loadDaemonPlaces } from '../../src/config/config.ts'

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

async function linesOf(text: string): Promise<readonly string[]> {
  await using folder = await folderWith({ 'gateway.yaml': text })
  const path = folder.path('gateway.yaml')
  const error: unknown = await loadConfig(path, { env: {} }).catch((thrown: unknown) => thrown)
  if (!(error instanceof ConfigError)) throw new Error(`not refused: ${String(error)}`)
  return error.lines.map((line) => line.replace(path, 'gateway.yaml'))
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

  test('that cannot be read is reported with its path', async () => {
    await expect(loadConfig('/nowhere/gateway.yaml', { env: {} })).rejects.toMatchObject({
      code: 'CONFIG_UNREADABLE',
      what: 'Cannot read the config /nowhere/gateway.yaml.',
      why: 'There is no such file.',
    })
  })

  test('with problems in several sections has all of them reported at once, in file order', async () => {
    const lines = await linesOf(`ingest:
  broker:
    listeners: [{ url: "http://x" }]
    access: { anonymous: maybe }
sources:
  - name: trucks
    topics: telemetry/v1/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
spool: { max_bytes: 20 }
delivery:
  base_url: ingest.example.com
  max_in_flight: 0
  timeout: 30
ops: { listen: 8080 }
log: { level: verbose }
metrics: true
`)
    expect(lines.map((line) => line.replace(/ {2,}/, '  '))).toEqual(
      [
        ['3:19', 'ingest.broker.listeners[0].url must be mqtt://HOST:PORT'],
        ['4:15', 'ingest.broker.access.anonymous must be true or false, found "maybe".'],
        ['6:5', 'sources[0].topic is required.'],
        ['7:5', 'unknown option "topics" in sources[0]. Did you mean "topic"?'],
        ['9:10', 'spool.max_bytes must be a size such as 64MiB or 20GiB, found 20.'],
        ['11:3', 'delivery.base_url must be a URL'],
        ['12:3', 'delivery.max_in_flight must be 1 to 64, found 0.'],
        ['13:3', 'delivery.timeout must be a duration such as 30s or 5m, found 30.'],
        ['14:8', 'ops.listen must be HOST:PORT'],
        ['15:8', 'log.level must be one of trace, debug, info, warn, error, found "verbose".'],
        ['16:1', 'unknown option "metrics".'],
      ].map(([place, message]) => expect.stringContaining(`gateway.yaml:${place}  ${message}`)) as string[],
    )
  })

  test('is refused when no device could ever connect', async () => {
    const lines = await linesOf(minimal.replace('{ anonymous: true }', '{ anonymous: false }'))
    expect(lines).toEqual([
      expect.stringMatching(/^gateway\.yaml:2:21 {2}ingest\.broker\.access must have anonymous: true/),
    ])
  })

  test('is refused for a bad topic or path, which only the mapping can check', async () => {
    const lines = await linesOf(minimal.replace('telemetry/v1/{device}', 'telemetry/#/{device}'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^gateway\.yaml:5:5 {2}sources\[0\]\.topic /)
  })

  test('has no secret in any problem', async () => {
    const lines = await linesOf(
      minimal
        .replace(
          'delivery: {',
          'delivery: { credentials: { source: keys, secret_access_key: hunter2-plain },',
        )
        .replace('http://127.0.0.1:8081', 'https://user:hunter2-url@host/'),
    )
    expect(lines.join('\n')).not.toContain('hunter2')
    expect(lines.join('\n')).toContain('secret_access_key must come from')
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
