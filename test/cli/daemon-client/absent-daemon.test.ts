// What a command says where no daemon answers. systemctl and journalctl are here programs that print what those of
// systemd print in that state; test/system/package.test.ts has the real ones.

import { spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configText, untouched } from '../../../src/cli/init-command/new-config.ts'
import { requestDaemon } from '../../../src/cli/daemon-client/daemon-client.ts'
import { findDaemon, type PlaceOptions } from '../../../src/cli/daemon-client/find-daemon.ts'
import { whyAbsent } from '../../../src/cli/daemon-client/absent-daemon.ts'
import { newFolder } from '../../support/folders.ts'
import { startPipeline } from '../../support/pipeline-world.ts'

type World = {
  /** Properties of the unit; null where no systemd runs. */
  unit?: Record<string, string> | null
  /** What the journal has of the run. */
  errors?: string
  config?: string | null
  options?: (folder: string) => PlaceOptions
  /** A file of a socket on which nobody listens any more. */
  leftSocket?: boolean
}

const written = (folder: string) => `ops: { listen: "127.0.0.1:1" }\nspool: { path: "${folder}/spool" }\n`

/** The error of a request where no daemon runs, in one text. */
async function errorIn(world: World): Promise<string> {
  const { unit = null, errors = '', options = () => ({}) } = world
  const folder = await newFolder()
  const config = world.config === undefined ? written(folder) : world.config
  if (config !== null) await writeFile(join(folder, 'gateway.yaml'), config)
  await mkdir(join(folder, 'spool'))
  if (world.leftSocket) leaveSocket(join(folder, 'spool/control.sock'))
  const properties = Object.entries(unit ?? {}).map(([name, value]) =>
    `${name}=${value}`.replaceAll('FOLDER', folder),
  )
  await program(
    join(folder, 'systemctl'),
    unit === null ? 'exit 1' : `cat <<'END'\n${properties.join('\n')}\nEND`,
  )
  await program(join(folder, 'journalctl'), `cat <<'END'\n${errors}\nEND`)
  const io = { env: { PATH: `${folder}:${process.env['PATH'] ?? ''}` }, stop: new AbortController().signal }
  const places = { socket: join(folder, 'run/control.sock'), config: join(folder, 'gateway.yaml') }
  try {
    const daemon = await findDaemon(options(folder), io, places)
    await requestDaemon({ daemon, path: '/status', method: 'GET', stop: io.stop })
  } catch (error) {
    const { code, what, why, act } = error as { code: string; what: string; why: string; act: string }
    return [code, what, why, act].join('\n')
  }
  throw new Error('a daemon answers')
}

async function program(path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
}

/** As a daemon that was killed leaves it. */
function leaveSocket(path: string): void {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
}

const loaded = {
  LoadState: 'loaded',
  UnitFileState: 'enabled',
  ExecStart:
    '{ path=/usr/bin/telemetry-gateway ; argv[]=/usr/bin/telemetry-gateway run --config FOLDER/gateway.yaml ; }',
}
const stopped = { ...loaded, ActiveState: 'inactive', SubState: 'dead', Result: 'success' }
const failed = {
  ...loaded,
  ActiveState: 'failed',
  SubState: 'failed',
  Result: 'exit-code',
  InvocationID: 'abc',
}

describe('a command that finds no daemon says why', () => {
  test.each([
    [
      'nobody has written a config',
      { unit: stopped, config: configText(untouched) },
      /not configured yet.*\nRun `sudo telemetry-gateway init`/,
    ],
    [
      'nothing is installed, as in a checkout',
      { unit: null, config: null },
      /no unit telemetry-gateway[^]*--config[^]*`npm start` in a checkout/,
    ],
    [
      'the start without a config was refused',
      { unit: { ...failed, ExecMainStatus: '2' }, config: configText(untouched) },
      /not configured yet/,
    ],
    [
      'a person stopped the service',
      { unit: { ...stopped, InactiveEnterTimestamp: 'Sat 2026-11-28 21:00:00 UTC' } },
      /The service was stopped at Sat 2026-11-28 21:00:00 UTC\.\nStart it: `sudo systemctl start/,
    ],
    [
      'the service is disabled',
      { unit: { ...stopped, UnitFileState: 'disabled', InactiveEnterTimestamp: '' } },
      /not started since the boot, and it is disabled[^]*systemctl enable/,
    ],
    ['the unit is masked', { unit: { ...stopped, LoadState: 'masked' } }, /masked[^]*unmask/],
    [
      'the config was refused, in the words of the daemon',
      {
        unit: { ...failed, ExecMainStatus: '2' },
        errors: 'CONFIG_INVALID\n  gateway.yaml:3:1  unknown option "delivry".',
      },
      /exit status 2\)\.\nCONFIG_INVALID\n {2}gateway.yaml:3:1 {2}unknown option "delivry"\.\n.*check --config/,
    ],
    [
      'the daemon crashed and starts again',
      {
        unit: {
          ...failed,
          ActiveState: 'activating',
          SubState: 'auto-restart',
          Result: 'signal',
          NRestarts: '3',
        },
        errors: '{"level":"error","msg":"The disk is full."}',
      },
      /ended with signal, and systemd starts it again \(restart 3\)\.\nThe disk is full\.\n.*journalctl/,
    ],
    [
      'the daemon is starting',
      {
        unit: {
          ...loaded,
          ActiveState: 'activating',
          SubState: 'start',
          StatusText: 'Checking tables, 3 of 9',
        },
      },
      /The service is starting: Checking tables, 3 of 9\.\n/,
    ],
    [
      'the service stops',
      { unit: { ...loaded, ActiveState: 'deactivating', SubState: 'stop-sigterm' } },
      /is stopping/,
    ],
    [
      'the service runs with another config',
      {
        unit: {
          ...loaded,
          ActiveState: 'active',
          MainPID: '77',
          ExecStart: '{ argv[]=/usr/bin/telemetry-gateway run --config /srv/other.yaml ; }',
        },
      },
      /runs \(pid 77\) with the config \/srv\/other\.yaml, and does not listen[^]*--config \/srv\/other\.yaml/,
    ],
    [
      'the service is stopped and the config is not its own: then only what concerns that config',
      {
        unit: { ...stopped, ExecStart: 'argv[]=run --config /srv/other.yaml ;' },
        options: (folder: string) => ({ config: `${folder}/gateway.yaml` }),
      },
      /No daemon runs with this config[^]*telemetry-gateway run --config .*gateway\.yaml/,
    ],
    [
      'a daemon ended without removing its socket',
      { leftSocket: true },
      /No process listens on the socket .*spool\/control\.sock: the daemon ended without stopping in order/,
    ],
    [
      'the config has no daemon, by --socket',
      { options: (folder: string) => ({ socket: `${folder}/none.sock` }) },
      /There is no such socket\. No daemon runs/,
    ],
  ] as [string, World, RegExp][])('%s', async (_name, world, text) => {
    const said = await errorIn(world)
    expect(said).toMatch(/^DAEMON_UNREACHABLE\nThe daemon does not answer at /)
    expect(said).toMatch(text)
  })

  test('of a socket that the user may not open', async () => {
    const folder = await newFolder()
    const tried = [{ place: 'the socket /run/telemetry-gateway/control.sock', code: 'EACCES' }]
    const { why, act } = await whyAbsent(
      { tried, config: join(folder, 'a.yaml'), isService: true },
      { PATH: folder },
    )
    expect(why).toBe('You may not open the socket /run/telemetry-gateway/control.sock.')
    expect(act).toMatch(/sudo.*usermod -aG telemetry-gateway/)
  })

  test('and asks nobody about the service where another machine is meant', async () => {
    const daemon = await findDaemon(
      { url: 'http://127.0.0.1:1' },
      { env: {}, stop: new AbortController().signal },
    )
    expect(daemon.whyAbsent).toBeUndefined()
  })
})

describe('a command without options', () => {
  test('finds the daemon by the config of the service, as in a container, which has no RuntimeDirectory', async () => {
    const folder = await newFolder()
    await startPipeline({ folder })
    const places = { socket: join(folder, 'run/control.sock'), config: join(folder, 'gateway.yaml') }
    const io = { env: {}, stop: new AbortController().signal }
    const daemon = await findDaemon({}, io, places)
    expect(daemon.url).toBe(`unix:${folder}/spool/control.sock`)
    expect(
      await requestDaemon({ daemon, path: '/control/reload', method: 'POST', stop: io.stop }),
    ).toBeTruthy()
  })

  test('finds the daemon in its RUNTIME_DIRECTORY, and that of the service beside the one of another unit', async () => {
    const folder = await newFolder()
    const listening = async (path: string) => {
      await mkdir(join(path, '..'), { recursive: true })
      const server = createServer((_request, response) => response.end())
      await new Promise<void>((resolve) => server.listen(path, resolve))
      return server
    }
    await using _service = await listening(join(folder, 'run/control.sock'))
    const places = { socket: join(folder, 'run/control.sock'), config: join(folder, 'none.yaml') }
    const io = { env: { RUNTIME_DIRECTORY: join(folder, 'own') }, stop: new AbortController().signal }
    expect((await findDaemon({}, io, places)).url).toBe(`unix:${places.socket}`)
    await using _own = await listening(join(folder, 'own/control.sock'))
    expect((await findDaemon({}, io, places)).url).toBe(`unix:${folder}/own/control.sock`)
  })
})
