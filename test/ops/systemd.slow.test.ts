import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { realPlaces } from '../../src/app/app.ts'
import { newFolder } from '../support/folders.ts'
import { send } from '../support/ops-world.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'
import { endedByAbort } from '../../src/spool/opening/in-use-marker.ts'

const unit = new URL('../../systemd/telemetry-gateway.service', import.meta.url)
/** Of x86-64: @resources of systemd 252. */
const resourceCalls = [141, 142, 144, 160, 203, 237, 238, 251, 256, 279, 314, 450]
const available = spawnSync('systemd-analyze', ['--version']).status === 0

/** The unit with a program that exists here: systemd looks for it. */
async function unitHere() {
  const folder = await mkdtemp(join(tmpdir(), 'unit-'))
  const path = join(folder, 'telemetry-gateway.service')
  const text = await readFile(unit, 'utf8')
  await writeFile(path, text.replace('/opt/telemetry-gateway/bin/telemetry-gateway', process.execPath))
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

describe('the systemd unit', () => {
  test('gives the daemon time to stop, and does not restart it with a wrong config', async () => {
    const text = await readFile(unit, 'utf8')
    const setting = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1]
    expect(Number(setting('TimeoutStopSec'))).toBeGreaterThan(30)
    expect(setting('RestartPreventExitStatus')).toBe('2')
    expect(setting('Type')).toBe('notify')
    expect(setting('NotifyAccess')).toBe('all')
    expect(setting('StateDirectory')).toBe('telemetry-gateway')
    expect(setting('User')).toBe('telemetry-gateway')
    expect(await readFile(new URL('telemetry-gateway.conf', unit), 'utf8')).toMatch(
      /^u telemetry-gateway - /m,
    )
    // find-daemon.ts looks there.
    expect(setting('RuntimeDirectory')).toBe('telemetry-gateway')
    expect(setting('RuntimeDirectoryMode')).toBe('0750')
  })

  test('notes how the daemon ended, for the next start', async () => {
    const text = await readFile(unit, 'utf8')
    const line = /^ExecStopPost=-\/bin\/sh -c '(.*)'$/m.exec(text)?.[1] ?? ''
    const folder = await mkdtemp(join(tmpdir(), 'state '))
    // systemd makes one dollar sign of two.
    const run = (code: string, status: string) =>
      spawnSync('/bin/sh', ['-c', line.replaceAll('$$', '$')], {
        env: { EXIT_CODE: code, EXIT_STATUS: status, STATE_DIRECTORY: folder },
      })
    const lastExit = join(folder, 'last-exit')
    expect(run('exited', '0').status).toBe(0)
    expect(await endedByAbort(lastExit)).toBe(false)
    expect(run('dumped', 'ABRT').status).toBe(0)
    expect(await readFile(lastExit, 'utf8')).toBe('dumped ABRT\n')
    expect(await endedByAbort(lastExit)).toBe(true)
    await rm(folder, { recursive: true })
  })

  test.skipIf(!available)('is clean under systemd-analyze verify', async () => {
    await using here = await unitHere()
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', here.path], {
      encoding: 'utf8',
    })
    expect(`${stdout}${stderr}`).toBe('')
    expect(status).toBe(0)
  })

  test('hides nothing that the daemon needs: boot id, V8, threads, LevelDB under its filter of system calls', async () => {
    const text = await readFile(unit, 'utf8')
    expect(text).toMatch(/^ProcSubset=pid$/m)
    expect(text).toMatch(/^Environment=TELEMETRY_GATEWAY_BOOT_ID=%b$/m)
    expect(realPlaces({ TELEMETRY_GATEWAY_BOOT_ID: '0123456789abcdef0123456789abcdef' }).bootId).toBe(
      '01234567-89ab-cdef-0123-456789abcdef',
    )
    expect(text).toMatch(/^SystemCallFilter=~@privileged @resources$/m)
    if (process.arch !== 'x64' || spawnSync('python3', ['--version']).status !== 0) return
    const script = new URL('../support/without-syscalls.py', import.meta.url).pathname
    const { url } = await startSandbox()
    const config = await writeDaemonConfig(await newFolder(), url)
    const daemon = await startSpawnedDaemon(config, { by: ['python3', script, resourceCalls.join(',')] })
    expect((await send(daemon.control, '/readyz')).status).toBe(200)
    const verify = await send(daemon.control, '/control/spool/verify', { method: 'POST' })
    expect(verify.status).toBe(200)
    await daemon.kill()
  })

  test.skipIf(!available)('exposes little: below 1.5 in systemd-analyze security', async () => {
    await using here = await unitHere()
    const { stdout, status } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=14', here.path],
      {
        encoding: 'utf8',
      },
    )
    expect(stdout).toContain('Overall exposure level')
    expect(status).toBe(0)
  })
})
