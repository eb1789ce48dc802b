import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../src/std/passwords/passwords.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { opsConfig, opsWorld } from '../../support/ops-world.ts'
import { startPipeline } from '../../support/pipeline-world.ts'

describe('a command finds the daemon', () => {
  test('by --config at the control socket in its spool, although the port is not known', async () => {
    const { folder } = await startPipeline()
    const { status, stdout } = await runCli(['reload', '--config', join(folder, 'gateway.yaml')])
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^The mapping is in force/)])
  })

  test('by --socket; --url alone changes nothing', async () => {
    const { gateway, folder } = await startPipeline()
    expect((await runCli(['reload', '--socket', join(folder, 'spool.sock')])).status).toBe(0)
    const overTcp = await runCli(['reload', '--url', gateway.addresses.ops])
    expect([overTcp.status, overTcp.stderr]).toEqual([
      1,
      expect.stringMatching(/^DAEMON_REFUSED\n.*ops\.users/s),
    ])
    expect((await runCli(['status', '--url', gateway.addresses.ops])).status).toBe(0)
  })

  test('by the config, and does not take the gateway of another spool for it', async () => {
    const folder = await newFolder()
    await using other = opsWorld()
    await other.ops.start()
    const config = join(folder, 'gateway.yaml')
    const socket = other.ops.control()?.slice('unix:'.length)
    await writeFile(
      config,
      `ops: { listen: "127.0.0.1:1", control_socket: ${socket} }\nspool: { path: ./spool }\n`,
    )
    const { status, stderr } = await runCli(['reload', '--config', config])
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^DAEMON_UNREACHABLE\n.*127\.0\.0\.1:1/s)])
  })

  test('over TCP with a user and a password in a file', async () => {
    const password_hash = new Secret(await hashPassword('right', costMin))
    const users = [{ name: 'alice', password_hash, rights: ['read' as const] }]
    await using world = opsWorld({ ops: opsConfig(undefined, { users }) })
    await world.ops.start()
    await world.ops.ready()
    const file = join(await newFolder(), 'password')
    await writeFile(file, 'right\n')
    const at = ['--url', world.ops.url() ?? '']
    expect((await runCli(['status', ...at])).stderr).toMatch(/^DAEMON_REFUSED\n.*user and a password/s)
    expect((await runCli(['status', ...at, '--user', 'alice'])).status).toBe(2)
    expect((await runCli(['status', ...at, '--user', 'alice', '--password-file', file])).status).toBe(0)
  })
})
