// npm-hosts.test.ts: the commands of README with the npm and the Node that people have.
//
// CI tries the npm that comes with Node 20. `npm run test:hosts` tries the whole table, with npm run package.
// Each row is a copy of this checkout, a Node and an npm from the registry, first in PATH.

import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { root, machineEnvironment, npm, runProgram, whyNotInstallable } from './installation.ts'
import { startProgram } from './installed-gateway.ts'

type Host = { node: string; npm: string }

const table: Host[] = [
  { node: '18.20.8', npm: '9.2.0' },
  { node: '20.8.0', npm: '9.2.0' },
  { node: '20.8.0', npm: '10.1.0' },
  { node: '20.20.2', npm: '10.8.2' },
  { node: '20.20.2', npm: '10.9.9' },
  { node: '22.23.5', npm: '10.9.9' },
  { node: '24.22.3', npm: '11.21.0' },
]
const isWhole = process.env['HOSTS'] === 'all'
const hosts = isWhole ? table : table.slice(4, 5)

const pinned = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  optionalDependencies: Record<string, string>
}
const pinnedVersion = pinned.optionalDependencies[`node-linux-${process.arch}`] ?? ''
const missing = await whyNotInstallable(
  hosts.flatMap(({ node, npm: version }) => [`node-linux-${process.arch}@${node}`, `npm@${version}`]),
)
if (missing !== null) process.stderr.write(`The tests of other npm and Node are skipped: ${missing}\n`)

describe.skipIf(missing !== null).each(hosts)('Node $node with npm $npm', (host) => {
  let folder = ''
  let checkout = ''
  let env: Record<string, string> = {}
  let installed = { status: -1, stdout: '', stderr: '' }

  const run = (program: string, ...args: string[]) =>
    runProgram(program, args, { cwd: checkout, env: { ...machineEnvironment, ...env }, timeoutMs: 400_000 })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gateway-host-'))
    env = { PATH: await machineWith(host, folder), npm_config_prefer_offline: 'true' }
    checkout = join(folder, 'checkout')
    await copySources(checkout)
    installed = await run('npm', 'ci')
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('the machine has the Node and the npm of the row', async () => {
    expect((await run('node', '--version')).stdout.trim()).toBe(`v${host.node}`)
    expect((await run('npm', '--version')).stdout.trim()).toBe(host.npm)
  })

  test('npm ci ends without a warning', () => {
    expect(installed.status, installed.stderr).toBe(0)
    // What npm says about the settings of this machine is not about the checkout.
    expect(installed.stderr.replaceAll(/^npm warn Unknown (env|user) config .*\n/gm, '')).toBe('')
  })

  test('npm start delivers a payload and stops in order', async () => {
    const ports = ['--mqtt-port', '--service-port', '--status-port'].flatMap((name) => [name, '0'])
    const trial = startProgram(['npm', 'start', '--', ...ports], { cwd: checkout, env })
    try {
      await trial.printed(/accepted [1-9]/)
    } finally {
      // npm 10.1 passes no signal on: at a terminal, its script gets the signal itself.
      await trial.stop('Ctrl-C')
    }
    // Some versions of npm end before their script does.
    await eventually(() => trial.output().includes('The trial ends'))
    expect(trial.output()).toMatch(/The trial ends: [1-9]/)
  })

  test('npm test runs a folder of tests', async () => {
    const { status, stdout } = await run('npm', 'test', '--', 'test/std')
    expect([status, stdout]).toEqual([0, expect.stringMatching(/Tests .*passed/)])
  })

  test('npm run gateway runs on the pinned Node', async () => {
    const { stdout } = await run('npm', 'run', 'gateway', '--', 'version')
    expect(stdout).toContain(`Node v${pinnedVersion}`)
  })

  test.runIf(isWhole)(
    'npm run package builds both packages, each with its own Node',
    async () => {
      const { status, stderr } = await run('npm', 'run', 'package', '--', '--fast')
      expect(status, stderr).toBe(0)
      const packages = await readdir(join(checkout, 'packages'))
      expect(packages).toEqual([expect.stringMatching(/_amd64\.deb$/), expect.stringMatching(/_arm64\.deb$/)])
      for (const [index, machine] of ['x86-64', 'aarch64'].entries()) {
        const tree = join(folder, machine)
        execFileSync('dpkg-deb', ['-x', join(checkout, 'packages', packages[index] ?? ''), tree])
        const modules = join(tree, 'usr/lib/telemetry-gateway/node_modules')
        const names = (await readdir(modules)).filter((name) => name.startsWith('node-linux-'))
        expect(names).toHaveLength(1)
        // Bytes 18 and 19 of an ELF file: 62 is x86-64, 183 is AArch64.
        const node = await readFile(join(modules, names[0] ?? '', 'bin/node'))
        expect(node.readUInt16LE(18)).toBe(machine === 'x86-64' ? 62 : 183)
      }
    },
    420_000,
  )
})

/** PATH of a machine whose `node` and `npm` are those of the row; the programs of this machine follow. */
async function machineWith({ node, npm: npmVersion }: Host, folder: string): Promise<string> {
  const packages = join(folder, 'machine')
  await mkdir(packages)
  const nodePackage = `node-linux-${process.arch}`
  const names = [`${nodePackage}@${node}`, `npm@${npmVersion}`]
  await npm(packages, 'install', '--prefix', packages, '--no-save', '--force', '--loglevel=error', ...names)
  const bin = join(folder, 'bin')
  await mkdir(bin)
  await symlink(join(packages, 'node_modules', nodePackage, 'bin/node'), join(bin, 'node'))
  for (const name of ['npm', 'npx'])
    await symlink(join(packages, `node_modules/npm/bin/${name}-cli.js`), join(bin, name))
  return `${bin}${delimiter}${machineEnvironment['PATH'] ?? ''}`
}

/** The files of the checkout as they are now, without those that git ignores. */
async function copySources(to: string): Promise<void> {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const names = execFileSync('git', list, { cwd: root, encoding: 'utf8', maxBuffer: 16 * 1024 ** 2 })
  for (const name of names.split('\0').filter((each) => each !== '')) {
    await mkdir(dirname(join(to, name)), { recursive: true })
    await cp(join(root, name), join(to, name)).catch(() => undefined)
  }
}
