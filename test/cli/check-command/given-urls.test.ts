// A URL whose password has a "%" that no two hexadecimal digits follow, wherever a person may write one.

import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'

const broken = 'user:pa%ss-of-mine@'

async function configFile(more = ''): Promise<string> {
  const path = join(await newFolder(), 'gateway.yaml')
  await writeFile(
    path,
    `ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
spool: { path: ./spool, min_free_bytes: 1B }
delivery: { base_url: 'https://ingest.depot.test' }
${more}`,
  )
  return path
}

describe('is a problem with a cure, and its password is not shown', () => {
  test.each([
    ['check', ['check'], { https_proxy: `http://${broken}proxy.test:3128` }, ''],
    [
      'check, for a webhook through the proxy of the environment',
      ['check'],
      { NO_PROXY: 'ingest.depot.test', HTTP_PROXY: `http://${broken}proxy.test:3128` },
      'alerts: { receivers: [{ type: webhook, name: duty, url: http://hook.test }] }',
    ],
    [
      'check, in the URL of a webhook',
      ['check'],
      {},
      `alerts: { receivers: [{ type: webhook, name: duty, url: 'https://${broken}hook.test' }] }`,
    ],
  ])('%s', async (_name, [command = ''], env, more) => {
    const { status, stderr, stdout } = await runCli([command, '--config', await configFile(more)], { env })
    expect(stderr).toMatch(/CONFIG_INVALID[^]*%25/)
    expect(stderr + stdout).not.toMatch(/ss-of-mine|URI malformed/)
    expect(status).toBe(2)
  })

  test('run, before the spool is opened', async () => {
    const config = await configFile()
    const env = { HTTPS_PROXY: `${broken}proxy.test:3128` }
    const { status, stderr, stdout } = await runCli(['run', '--config', config], { env })
    expect(stderr).toMatch(/CONFIG_INVALID[^]*%25/)
    expect(stderr + stdout).not.toMatch(/ss-of-mine|URI malformed/)
    expect(status).toBe(2)
    expect(existsSync(join(config, '../spool'))).toBe(false)
  })

  test('check, together with a problem of the config', async () => {
    const env = { HTTPS_PROXY: `http://${broken}proxy.test:3128` }
    const config = await configFile('log: { level: loud }')
    const { status, stderr } = await runCli(['check', '--config', config], { env })
    expect(stderr).toMatch(/CONFIG_INVALID[^]*log\.level must be one of[^]*%25/)
    expect(status).toBe(2)
  })

  test.each([
    ['simulate', ['simulate', '--broker', `mqtt://${broken}127.0.0.1:1`]],
    ['learn', ['learn', '--broker', `mqtt://${broken}127.0.0.1:1`, '--topic', 't/#']],
    ['publish', ['publish', '--broker', `mqtt://${broken}127.0.0.1:1`, 't', '{}']],
    ['status', ['status', '--url', `http://${broken}127.0.0.1:1`]],
  ])('%s', async (_name, argv) => {
    const { status, stderr, stdout } = await runCli(argv)
    expect(stderr).toMatch(/USAGE[^]*%25/)
    expect(stderr + stdout).not.toMatch(/ss-of-mine|URI malformed/)
    expect(status).toBe(2)
  })
})
