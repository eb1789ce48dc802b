// The directory of the state that `init` makes by the npm way, as root in a mount namespace of its own.

import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { newFolder } from '../../support/folders.ts'

const service = ['--service', 'https://ingest.example.com']
const owner = { uid: 4711, gid: 4712 }

describe.skipIf(!mayMount())('the state directory of the service', () => {
  const asRoot = async (spool: string, ...made: string[]) => {
    const folder = await newFolder()
    const passwd = join(folder, 'passwd')
    writeFileSync(passwd, 'root:x:0:0::/:/bin/sh\ntelemetry-gateway:x:4711:4712::/:/bin/false\n')
    const state = join(folder, 'lib')
    mkdirSync(state)
    for (const one of made) mkdirSync(join(state, one))
    const argv = [
      'init',
      '--to',
      join(folder, 'etc'),
      '--no-input',
      '--no-doctor',
      ...service,
      '--spool',
      spool,
    ]
    const script = `mount --bind ${passwd} /etc/passwd && mount --bind ${state} /var/lib && exec "$@"`
    const started = ['sh', process.execPath, join(import.meta.dirname, '../../../src/main.ts'), ...argv]
    const { stdout } = await promisify(execFile)('unshare', ['-m', 'sh', '-c', script, ...started])
    return { stdout, state }
  }
  test('is made where its unit has not been started yet, private and of the service, with the spool', async () => {
    const { state } = await asRoot('/var/lib/telemetry-gateway/spool')
    const made = statSync(join(state, 'telemetry-gateway'))
    expect(made).toMatchObject(owner)
    expect(made.mode & 0o777).toBe(0o700)
    expect(statSync(join(state, 'telemetry-gateway/spool'))).toMatchObject(owner)
    expect(readdirSync(join(state, 'telemetry-gateway/spool'))).toContain('spool.json')
  })

  test('stays as it is where it is there', async () => {
    const { state } = await asRoot('/var/lib/telemetry-gateway/spool', 'telemetry-gateway')
    expect(statSync(join(state, 'telemetry-gateway'))).toMatchObject({ uid: 0, gid: 0 })
    expect(statSync(join(state, 'telemetry-gateway/spool'))).toMatchObject(owner)
  })

  test('is not made for a spool elsewhere, whose path may be misspelt', async () => {
    const { state, stdout } = await asRoot('/var/lib/telemetri-gateway/spool')
    expect(readdirSync(state)).toEqual([])
    expect(stdout).toContain('The spool /var/lib/telemetri-gateway/spool is not made')
  })
})

function mayMount(): boolean {
  try {
    execFileSync('unshare', ['-m', 'mount', '--bind', '/tmp', '/mnt'], { stdio: 'ignore' })
    return process.geteuid?.() === 0
  } catch {
    return false
  }
}
