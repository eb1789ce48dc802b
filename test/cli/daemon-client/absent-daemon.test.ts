// What a command says where no daemon answers. systemctl and journalctl are here programs that print what those of
// systemd print in that state (absent-daemon.states.yaml); test/system/package.test.ts has the real ones.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
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
  if (world.leftSocket) leaveSocket(join(folder, 'spool.sock'))
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

type Row = Omit<World, 'config' | 'options'> & {
  name: string
  /** Also `untouched`: as the package installs it. */
  config?: string | null
  /** Values that begin with ./ are beside the config. */
  options?: Record<string, string>
  text: string
}

const rows = parse(readFileSync(join(import.meta.dirname, 'absent-daemon.states.yaml'), 'utf8'), {
  merge: true,
}) as { states: Row[] }

describe('a command that finds no daemon says why', () => {
  test.each(rows.states)('$name', async ({ name: _name, text, config, options = {}, ...world }) => {
    const placed = (folder: string) =>
      Object.fromEntries(
        Object.entries(options).map(([name, value]) => [name, value.replace('./', `${folder}/`)]),
      )
    const given =
      config === undefined ? {} : { config: config === 'untouched' ? configText(untouched) : config }
    const said = await errorIn({ ...world, ...given, options: placed })
    expect(said).toMatch(/^DAEMON_UNREACHABLE\nThe daemon does not answer at /)
    expect(said).toMatch(new RegExp(text))
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
    expect(daemon.url).toBe(`unix:${folder}/spool.sock`)
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
