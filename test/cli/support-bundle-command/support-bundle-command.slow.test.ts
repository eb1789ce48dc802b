// `support-bundle` with a real daemon: what is in it, and what is not.

import { execFileSync } from 'node:child_process'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { redacted, shownConfig } from '../../../src/cli/support-bundle-command/redaction.ts'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { startSandbox } from '../../support/pipeline-world.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../../support/spawned-daemon.ts'

const secret = sandboxAccount.secret.reveal()
const env = { AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId, AWS_SECRET_ACCESS_KEY: secret, PATH: '/nowhere' }

async function unpacked(archive: string): Promise<Record<string, string>> {
  const folder = await newFolder()
  execFileSync('tar', ['-xzf', archive, '-C', folder])
  const names = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n')
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return Object.fromEntries(
    names.map((name, index) => [name.replace('support-bundle/', ''), texts[index] ?? '']),
  )
}

describe('support-bundle', () => {
  test('has every part of a running daemon, and no secret and no position', async () => {
    const { url } = await startSandbox()
    const folder = await newFolder()
    const config = await writeDaemonConfig(folder, url)
    await writeFile(config, `# the password is ${secret}\n${await readFile(config, 'utf8')}`)
    const daemon = await startSpawnedDaemon(config)
    const log = join(folder, 'gateway.log')
    await writeFile(log, `{"level":"info","msg":"key ${secret}, at 48.137154, 11.576124","lat":48.1}\n`)
    const to = join(folder, 'bundle.tar.gz')
    const { status, stderr, stdout } = await runCli(
      ['support-bundle', '--config', config, '--to', to, '--log', log],
      { env },
    )
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain(to)
    const parts = await unpacked(to)
    expect(Object.keys(parts)).toEqual([
      'versions.json',
      'config.yaml',
      'check.json',
      'status.json',
      'metrics.txt',
      'log.ndjson',
      'verify.json',
    ])
    expect(JSON.parse(parts['status.json'] ?? '')).toMatchObject({ verdict: expect.any(String) })
    expect(JSON.parse(parts['check.json'] ?? '')).toMatchObject({ ok: true })
    expect(JSON.parse(parts['verify.json'] ?? '')).toMatchObject({ ok: true })
    expect(parts['metrics.txt']).toContain('gateway_ready')
    expect(parts['config.yaml']).toContain('base_url')
    const all = Object.values(parts).join('\n')
    expect(all).not.toContain(secret)
    expect(parts['log.ndjson']).toBe('{"level":"info","msg":"key ***, at ***, ***","lat":"***"}\n')
    expect((await stat(to)).mode & 0o077).toBe(0)
    const again = await runCli(['support-bundle', '--config', config, '--to', to, '--json'], { env })
    expect([again.status, JSON.parse(again.stderr)]).toMatchObject([
      1,
      { error: { code: 'OUTPUT_UNWRITABLE' } },
    ])
    await daemon.kill()
  })

  test('is made without a daemon and without a valid config, and says what is missing', async () => {
    const folder = await newFolder()
    const config = join(folder, 'gateway.yaml')
    // A daemon of another test may run at the default address.
    const ops = 'ops: { listen: "127.0.0.1:1" }'
    const delivery = 'delivery: { base_url: "https://me:hush-hush@x", proxy_auth: plain-secret }'
    await writeFile(config, `${ops}\n${delivery}\n`)
    const to = join(folder, 'bundle.tar.gz')
    expect(
      await runCli(['support-bundle', '--config', config, '--to', to, '--positions'], { env }),
    ).toMatchObject({ status: 0 })
    const parts = await unpacked(to)
    expect(JSON.parse(parts['check.json'] ?? '')).toMatchObject({ error: { code: 'CONFIG_INVALID' } })
    expect(JSON.parse(parts['status.json'] ?? '')).toHaveProperty('error')
    const all = Object.values(parts).join('\n')
    for (const text of ['hush-hush', 'plain-secret']) expect(all).not.toContain(text)
  })

  test('a config is shown without comments, literal secrets and users of URLs', () => {
    const { shown: text, secrets } = shownConfig(
      '# s3cret-comment\na: { password: abc123, password_file: users, key: "${file:k.pem}" } # s3cret\nurl: mqtt://u:p@h:1\n',
    )
    expect(text).not.toMatch(/s3cret|abc123|u:p/)
    expect(secrets).toEqual(['abc123', 'mqtt://u:p@h:1'])
    expect(text).toContain('password_file: users')
    expect(text).toContain('${file:k.pem}')
    expect(text).toContain('mqtt://***@h:1')
    expect(shownConfig('a: [secret-value\nb: "').shown).not.toContain('secret-value')
  })

  test('positions stay only where they are asked for', () => {
    const line = '{"latitude":48.1,"what":"at 48.13715","rate":12.5}'
    expect(redacted(line, { secrets: [], positions: true })).toBe(line)
    expect(redacted(line, { secrets: [], positions: false })).toBe(
      '{"latitude":"***","what":"at ***","rate":12.5}',
    )
  })
})
