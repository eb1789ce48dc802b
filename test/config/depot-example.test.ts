// config/examples/depot.yaml: the whole example of a depot is valid, maps its three makes, and warns of nothing.

import { chmod, copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { createAuthority } from '../support/certificates.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

const examples = new URL('../../config/examples/', import.meta.url).pathname

async function depot(): Promise<string> {
  const folder = await newFolder()
  for (const name of ['depot.yaml', 'depot-devices.csv']) await copyFile(examples + name, join(folder, name))
  const tomorrow = new Date(Date.now() + 366 * 86_400_000)
  const own = createAuthority().issue({ names: ['gateway.example.org'], until: tomorrow })
  const hash = await hashPassword('words', 12)
  const keys = '{"accessKeyId": "AKID", "secretAccessKey": "secret words"}'
  const secrets: Record<string, string> = {
    'gateway.pem': own.cert,
    'gateway.key': own.key,
    users: `truck-7:${hash}\n`,
    'ops-users': `admin:${hash}\n`,
    'own.json': keys,
    'partner.json': keys,
    'chat-url': 'https://chat.example.com/hook/1\n',
  }
  for (const [name, text] of Object.entries(secrets)) {
    await writeFile(join(folder, name), text)
    await chmod(join(folder, name), 0o600)
  }
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
