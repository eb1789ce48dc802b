// config/examples and the headers of the presets: each is valid as it stands, and its files fit together.
// test/config/bridge-examples.slow.test.ts and test/engines run them.

import { copyFile, writeFile } from 'node:fs/promises'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig, packagedNames } from '../../src/config/config.ts'
import { jetstreamOptions } from '../../src/ingest/jetstream/jetstream-config.ts'
import { mappingLines } from '../../src/ingest/jetstream/nats-subjects.ts'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { createAuthority } from '../support/certificates.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { bridgeOfPreset, bridgePresets } from '../support/preset-bridges.ts'

const examples = new URL('../../config/examples/', import.meta.url)
const textOf = (path: string) => readFileSync(new URL(path, examples), 'utf8')
const env = { GATEWAY_MEMBER: 'gateway-1' }
const filesOf = (folder: string) => readdirSync(new URL(folder, examples)).toSorted()
const bridges = filesOf('.').filter((file) => file.startsWith('bridge-'))
const authority = createAuthority()
const own = authority.issue({
  names: ['gateway.example.org', 'gateway'],
  until: new Date(Date.now() + 366 * 86_400_000),
})

async function write(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
}

const ownFiles = { 'ca.pem': authority.ca, 'gateway.pem': own.cert, 'gateway.key': own.key }

const bridgeSecrets = {
  BROKER_PASSWORD: 'open sesame',
  FLESPI_TOKEN: 'token',
  TTS_API_KEY: 'key',
  GATEWAY_NAME: 'gateway-1',
}

describe('the example of a bridge', () => {
  test('is there for each way, and says in its first line whether it was run', () => {
    expect(bridges).toEqual([
      'bridge-flespi.yaml',
      'bridge-mosquitto-local.yaml',
      'bridge-remote-tls.yaml',
      'bridge-shared.yaml',
      'bridge-the-things-stack.yaml',
    ])
    for (const file of bridges)
      expect(textOf(file)).toMatch(
        /^# (Run against Mosquitto [\d.]+|Run against Mosquitto [\d.]+ in place of \S)/,
      )
  })

  test.each(bridges)('is valid: %s', async (file) => {
    const folder = await newFolder()
    const path = join(folder, 'gateway.yaml')
    await write(folder, { ...ownFiles, 'gateway.yaml': textOf(file) })
    const { status, stdout, stderr } = await runCli(['check', '--config', path], { env: bridgeSecrets })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).not.toMatch(/gets no messages|no source takes/)
  })

  test.each(bridges)(
    'without its secrets and files has these reported, and nothing else: %s',
    async (file) => {
      const path = join(await newFolder(), 'gateway.yaml')
      await writeFile(path, textOf(file))
      const { status, stderr } = await runCli(['check', '--config', path], { env: {} })
      const problems = stderr.split('\n').filter((line) => line.includes(`${path}:`))
      expect([status, problems.length > 0]).toEqual([2, true])
      expect(problems.filter((line) => !/ is not set\.$| cannot be read /.test(line))).toEqual([])
    },
  )
})

describe('the bridge in the header of a preset', () => {
  test('is there for each server', async () => {
    const found = await Promise.all(
      packagedNames().map(async (name) => ((await bridgeOfPreset(name)) ? [name] : [])),
    )
    expect(found.flat()).toEqual(bridgePresets)
  })

  test.each(bridgePresets)(
    'of %s is valid as it stands, and delivers what the preset reads',
    async (preset) => {
      const block = (await bridgeOfPreset(preset)) ?? ''
      const path = join(await newFolder(), 'gateway.yaml')
      await writeFile(path, `${block}\ndelivery: { base_url: http://127.0.0.1:8081 }\n`)
      const names = [...block.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => name)
      const env = Object.fromEntries(names.map((name) => [name, 'secret']))
      const { status, stdout, stderr } = await runCli(['check', '--json', '--config', path], { env })
      expect([status, stderr]).toEqual([0, ''])
      const { config, warnings } = JSON.parse(stdout) as {
        config: Record<'bridges' | 'sources', string[]>
        warnings: { what: string }[]
      }
      expect([config.bridges.length, config.sources.length]).toEqual([1, 1])
      const misfits = warnings
        .map(({ what }) => what)
        .filter((what) => /gets no messages|no source takes/.test(what))
      expect(misfits).toEqual([])
      const losesMessages = warnings.some(({ what }) => /qos: 0/.test(what))
      expect(losesMessages).toBe(['hsl-hfp', 'roataway', 'the-things-stack'].includes(preset))
    },
  )
})

async function depot(): Promise<string> {
  const folder = await newFolder()
  for (const name of ['depot.yaml', 'depot-devices.csv'])
    await copyFile(new URL(name, examples), join(folder, name))
  const hash = await hashPassword('words', 12)
  const keys = '{"accessKeyId": "AKID", "secretAccessKey": "secret words"}'
  await write(folder, {
    ...ownFiles,
    users: `truck-7:${hash}\n`,
    'ops-users': `admin:${hash}\n`,
    'own.json': keys,
    'partner.json': keys,
    'chat-url': 'https://chat.example.com/hook/1\n',
  })
  return join(folder, 'depot.yaml')
}

test('the example of a depot is valid and has no warning', async () => {
  const { status, stdout, stderr } = await runCli(['check', '--config', await depot()])
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).not.toMatch(/^ {2}warning/m)
  expect(stdout).toContain('mqtts://gateway.example.org:8883')
})

test.each([
  ['telemetry/v1/truck-7', 'truck-7', '{"ts":1763690000000,"gps":{"lat":52.5,"lon":13.4}}', 'TRK-0007'],
  [
    'teltonika/350424063817363/data',
    '350424063817363',
    '{"state":{"reported":{"ts":1763690000000,"latlng":"52.5,13.4","sp":48}}}',
    'TRK-0101',
  ],
  [
    'owntracks/jane/phone',
    'jane',
    '{"_type":"location","lat":52.5,"lon":13.4,"tst":1763690000,"vel":61}',
    'VAN-0301',
  ],
])('a message on %s of the depot becomes a payload of its asset', async (topic, user, message, asset) => {
  const { stdout, status } = await runCli(
    ['map', '--config', await depot(), '--topic', topic, '--user', user],
    { stdin: message },
  )
  expect(status).toBe(0)
  expect(stdout).toContain(asset)
})

/** gateway.yaml with the files that it names, in a folder of the test. */
async function gatewayConfig(engine: string): Promise<string> {
  const place = await newFolder()
  const text = textOf(`${engine}/gateway.yaml`)
    .replaceAll('/etc/telemetry-gateway/', `${place}/`)
    .replace('/var/lib/telemetry-gateway/', `${place}/`)
    .replace('${env:CREDENTIALS_DIRECTORY}', place)
  await write(place, {
    ...ownFiles,
    [`${engine}-password`]: 'open sesame',
    [`${engine}-ca.pem`]: authority.ca,
    'ingestion.json': JSON.stringify({ accessKeyId: 'AKID', secretAccessKey: 'secret' }),
    'gateway.yaml': text,
  })
  return join(place, 'gateway.yaml')
}

describe.each(['nats', 'rabbitmq'] as const)('the example of %s', (engine) => {
  test('has files that say what was run', () => {
    const said =
      /Run with (nats-server 2\.10\.27|RabbitMQ 4\.0\.5) \(Debian 13\)|systemd-analyze verify was run/
    for (const file of filesOf(engine).filter((name) => !/json|plugins/.test(name)))
      expect(textOf(`${engine}/${file}`).slice(0, 400), file).toMatch(said)
  })

  test('is complete: README.md names each file', () => {
    const firstCells = [...textOf(`${engine}/README.md`).matchAll(/^\| (`[^|]+) \|/gm)]
    const named = firstCells.flatMap(([, cell = '']) => cell.replaceAll('`', '').split(', '))
    expect([...named, 'README.md'].toSorted()).toEqual(filesOf(engine))
  })

  test('has a valid config of the gateway, without a warning of its bridge', async () => {
    const { status, stdout, stderr } = await runCli(['check', '--config', await gatewayConfig(engine)], {
      env,
    })
    expect([status, stderr], stdout).toEqual([0, ''])
    expect(stdout).not.toMatch(/Bridge "fleet"|gets no messages|no source takes/)
  })

  test('has no password that would work anywhere', () => {
    for (const file of filesOf(engine))
      for (const [, password] of textOf(`${engine}/${file}`).matchAll(/\bpassword"?: ?"([^"]*)"/g))
        expect(password, file).toMatch(/^REPLACE-/)
  })
})

test('the mapping of NATS is the one that the gateway asks for, and users are ruled by it', async () => {
  const { config } = await loadConfig(await gatewayConfig('nats'), { env })
  const bridge = config.ingest.bridges[0]!
  if (bridge.kind !== 'jetstream') throw new Error('the example is for NATS')
  const [line = ''] = mappingLines(jetstreamOptions(bridge))
  expect(textOf('nats/nats-server.conf')).toContain(line)
  const subject = line.match(/: "(.*)"/)![1]!
  const ruled = subject.replace(/\{\{partition.*?\}\}/, '*').replace(/\{\{wildcard.*?\}\}/, 'truck-7')
  expect(textOf('nats/users.conf')).toContain(`allow: ["${ruled}"]`)
})

test('a device of RabbitMQ may publish under its own name only, and a gateway use what it creates', async () => {
  const { topic_permissions, permissions } = JSON.parse(textOf('rabbitmq/devices.json')) as Record<
    string,
    { write: string; configure: string; read: string }[]
  >
  const mayPublish = new RegExp(topic_permissions![0]!.write)
  expect(mayPublish.test('telemetry.v1.truck-7')).toBe(true)
  for (const key of [
    'telemetry.v1.truck-77',
    'telemetry.v1.truck-8',
    'telemetry.v1.truck-7.x',
    'telemetryxv1.truck-7',
  ])
    expect(mayPublish.test(key), key).toBe(false)
  expect(new RegExp(permissions![0]!.write).test('fleet.0')).toBe(false)
  const { config } = await loadConfig(await gatewayConfig('rabbitmq'), { env })
  const bridge = config.ingest.bridges[0]!
  if (bridge.kind !== 'amqp') throw new Error('the example is for RabbitMQ')
  const [, configure, write, read] = textOf('rabbitmq/README.md').match(
    /permissions gateway '(.*)' '(.*)' '(.*)'/,
  )!
  const queue = `${bridge.queue.prefix}.0`
  for (const right of [configure, write, read]) expect(new RegExp(right!).test(queue), right).toBe(true)
  expect(new RegExp(read!).test(bridge.bind.exchange)).toBe(true)
  expect(new RegExp(configure!).test(bridge.bind.exchange)).toBe(false)
})
