// config/examples/nats and config/examples/rabbitmq: their files are valid and fit together. test/engines runs them.

import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { jetstreamOptions } from '../../src/ingest/jetstream/jetstream-config.ts'
import { mappingLines } from '../../src/ingest/jetstream/nats-subjects.ts'
import { createAuthority } from '../support/certificates.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

const examples = new URL('../../config/examples/', import.meta.url)
const textOf = (path: string) => readFileSync(new URL(path, examples), 'utf8')
const env = { GATEWAY_MEMBER: 'gateway-1' }

const filesOf = (engine: string) => readdirSync(new URL(engine, examples)).toSorted()

/** gateway.yaml with the files that it names, in a folder of the test. */
async function gatewayConfig(engine: string): Promise<string> {
  const place = await newFolder()
  const authority = createAuthority()
  const own = authority.issue({ names: ['gateway'] })
  const files = {
    [`${engine}-password`]: 'open sesame',
    [`${engine}-ca.pem`]: authority.ca,
    'gateway.pem': own.cert,
    'gateway.key': own.key,
    'ingestion.json': JSON.stringify({ accessKeyId: 'AKID', secretAccessKey: 'secret' }),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(place, name), text, { mode: 0o600 })
  const config = join(place, 'gateway.yaml')
  const text = textOf(`${engine}/gateway.yaml`)
    .replaceAll('/etc/telemetry-gateway/', `${place}/`)
    .replace('/var/lib/telemetry-gateway/', `${place}/`)
    .replace('${env:CREDENTIALS_DIRECTORY}', place)
  await writeFile(config, text, { mode: 0o600 })
  return config
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
