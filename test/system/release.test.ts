// What a user does with a release: pack, install, check, run, start it with the systemd unit. All with the npm and
// the Node of the machine, in folders of their own.

import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  deliverMessages,
  readJson,
  sandboxKeys,
  startProgram,
  startSandbox,
  writeConfig,
} from './installed-gateway.ts'
import {
  copyCheckout,
  filesOf,
  machineEnvironment,
  npm,
  pack,
  root,
  runProgram,
  versionsBelow,
  whyNotInstallable,
} from './installation.ts'

type Manifest = { version: string; dev?: boolean; optional?: boolean; devOptional?: boolean }
type Lockfile = { packages: Record<string, Manifest> }

const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  version: string
  optionalDependencies: Record<string, string>
}
/** The copy of the checkout has no repository. */
const name = manifest.version.replace(/-dev$/, '-dev+unknown')
const lockfileText = await readFile(join(root, 'package-lock.json'), 'utf8')
const lockfile = JSON.parse(lockfileText) as Lockfile
const pinnedName = `node-linux-${process.arch}`
const pinnedVersion = manifest.optionalDependencies[pinnedName]
const missing =
  pinnedVersion === undefined
    ? `there is no package ${pinnedName}`
    : await whyNotInstallable([`${pinnedName}@${pinnedVersion}`])
if (missing !== null) process.stderr.write(`The tests of the release are skipped: ${missing}\n`)

const machineNode = await runProgram('node', ['--version'], { cwd: root })
const machineNodeIsOld = Number(/^v(\d+)/.exec(machineNode.stdout)?.[1]) < 22

const expectedRoots = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'THIRD-PARTY-NOTICES',
  'UPGRADING.md',
  'config',
  'dist',
  'docs',
  'npm-shrinkwrap.json',
  'package.json',
  'systemd',
]

/** Compiled code, texts, presets and examples: no tests, no sources, nothing that lay about in the checkout. */
const expectedFiles = [
  /^(LICENSE|THIRD-PARTY-NOTICES|package\.json|npm-shrinkwrap\.json)$/,
  /^[A-Z]+\.md$/,
  /^dist\/([a-z0-9-]+\/)*[a-z0-9-]+\.js$/,
  /^dist\/(launcher\.sh|build-name)$/,
  /^dist\/ops\/page\/page\.css$/,
  /^docs\/([a-z0-9-]+\/)*[a-z0-9-]+\.md$/,
  /^config\/(presets|examples)\/[a-z0-9-]+((\.[a-z0-9-]+)?\.cases)?\.(yaml|csv)$/,
  /^config\/examples\/(nats|rabbitmq)\/(README\.md|enabled_plugins|[a-z.-]+\.(conf|yaml|json))$/,
  /^config\/container\/(Containerfile|[a-z-]+\.yaml)$/,
  /^config\/monitoring\/(alert-rules(\.test)?\.yaml|grafana-dashboard\.json)$/,
  /^config\/(reference\.md|(gateway|status|alert)\.schema\.json)$/,
  /^systemd\/telemetry-gateway\.(service|conf)$/,
]

/** Where README and unit install to. */
const documentedPrefix = '/opt/telemetry-gateway'

describe.skipIf(missing !== null)('the release', () => {
  let folder = ''
  let checkout = ''
  let filesBefore: string[] = []
  let tarball = ''
  let prefix = ''
  let command = ''
  let installed = ''

  beforeAll(async () => {
    // World-readable, so that another user can run what is installed.
    folder = await mkdtemp(join(tmpdir(), 'gateway-release-'))
    await chmod(folder, 0o755)
    checkout = await copyCheckout(join(folder, 'checkout'))
    filesBefore = await readdir(checkout)
    tarball = await pack(checkout)
    prefix = join(folder, 'opt')
    await npm(folder, 'install', '-g', '--prefix', prefix, tarball)
    command = join(prefix, 'bin/telemetry-gateway')
    installed = join(prefix, 'lib/node_modules/telemetry-gateway')
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  const newFolder = async (name: string) => {
    const path = join(folder, name)
    await mkdir(path)
    return path
  }

  test('packing leaves only dist and the tarball in the checkout', async () => {
    const tarballName = `telemetry-gateway-${name}.tgz`
    expect((await readdir(checkout)).toSorted()).toEqual(
      [...new Set([...filesBefore, 'dist', tarballName])].toSorted(),
    )
    for (const ignored of ['dist/', '/telemetry-gateway-*.tgz'])
      expect((await readFile(join(root, '.gitignore'), 'utf8')).split('\n')).toContain(ignored)
  })

  test('the tarball has what the run time needs and nothing else', async () => {
    const files = await filesOf(tarball)
    const own = files.filter((file) => !file.startsWith('node_modules/'))
    const roots = new Set(own.map((file) => file.split('/')[0] ?? ''))
    expect([...roots].sort()).toEqual(expectedRoots)
    const unexpected = own.filter((file) => !expectedFiles.some((pattern) => pattern.test(file)))
    expect(unexpected).toEqual([])
    expect(own).not.toContain('dist/stale.js')
    for (const file of [
      'dist/pinned-node.js',
      'dist/main.js',
      'dist/ops/page/page.css',
      'dist/ops/page/browser/browser.js',
      'config/presets/owntracks.yaml',
      'config/monitoring/alert-rules.yaml',
    ])
      expect(own).toContain(file)
  })

  test('the tarball has no tests, types, source maps and C++ sources of its packages, and no database for other systems', async () => {
    const files = await filesOf(tarball)
    const unused = files.filter((file) =>
      /\.(ts|mts|cts|map|h|cc|gyp)$|\/(test|tests|__tests__|bench|benchmark|examples?|docs)\//.test(
        file.replace(/^node_modules\/(@[^/]+\/)?[^/]+/, ''),
      ),
    )
    expect(unused.filter((file) => file.startsWith('node_modules/') && !file.includes('/dist/'))).toEqual([])
    expect(files.filter((file) => file.endsWith('.node')).toSorted()).toEqual([
      'node_modules/classic-level/prebuilds/linux-arm64/classic-level.armv8.node',
      'node_modules/classic-level/prebuilds/linux-x64/classic-level.musl.node',
      'node_modules/classic-level/prebuilds/linux-x64/classic-level.node',
    ])
    expect(files.some((file) => file.startsWith('node_modules/node-linux'))).toBe(false)
  })

  test('the tarball has the licence of each package, and of Node, LevelDB and Snappy', async () => {
    const notices = await readFile(join(installed, 'THIRD-PARTY-NOTICES'), 'utf8')
    const shipped = [...(await versionsBelow(installed))].filter(([path]) => !path.includes('node-linux-'))
    const names = shipped.map(([path, version]) => `${path.replace(/^.*node_modules\//, '')} ${version} (`)
    expect(names.filter((one) => !notices.includes(one))).toEqual([])
    for (const text of ['Node.js is licensed for use', 'The LevelDB Authors', 'deps/snappy'])
      expect(notices).toContain(text)
  })

  test('npm pack in a checkout packs nothing and names the command that does', async () => {
    const { status, stderr } = await runProgram('npm', ['pack'], { cwd: checkout })
    expect([status, stderr]).toEqual([1, expect.stringContaining('npm run package -- --npm')])
  })

  test('the tarball has the lockfile, without any registry host', async () => {
    const shrinkwrap = await readFile(join(installed, 'npm-shrinkwrap.json'), 'utf8')
    expect(shrinkwrap).toBe(
      lockfileText.replaceAll(`"version": "${manifest.version}"`, `"version": "${name}"`),
    )
    expect(shrinkwrap).not.toMatch(/"resolved": *"https?:/)
  })

  test('every installed package has the version of the lockfile, and none is missing', async () => {
    const found = await versionsBelow(installed)
    const inLockfile = [...found.keys()].map((path) => [path, lockfile.packages[path]?.version])
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(inLockfile))
    const needed = Object.entries(lockfile.packages).filter(
      // Types are for development: no program loads them.
      ([path, { dev, optional, devOptional }]) =>
        path !== '' && !/\/(@types\/|undici-types$)/.test(path) && !dev && !optional && !devOptional,
    )
    const paths = [...needed.map(([path]) => path), `node_modules/${pinnedName}`]
    expect(paths.filter((path) => !found.has(path))).toEqual([])
    expect([...found.keys()].filter((path) => lockfile.packages[path]?.dev === true)).toEqual([])
  })

  test('the Node of the machine gives no engine warnings in a checkout', async () => {
    const { stderr } = await npm(checkout, 'ci', '--dry-run')
    expect(stderr).not.toContain('EBADENGINE')
  })

  test('the installed command prints its version', async () => {
    const { status, stdout } = await runProgram(command, ['--version'], { cwd: folder })
    expect([status, stdout.trim()]).toEqual([0, name])
  })

  test('the installed command runs through the link that README makes', async () => {
    const link = join(folder, 'telemetry-gateway')
    await symlink(command, link)
    const { status, stdout } = await runProgram(link, ['--version'], { cwd: '/' })
    expect([status, stdout.trim()]).toEqual([0, name])
  })

  test('the installed command runs the trial', async () => {
    const trial = startProgram([command, 'trial'], { cwd: folder })
    await trial.printed(/accepted [1-9]/)
    expect(await trial.stop()).toBe(0)
  })

  test('the installed command checks a config', async () => {
    const cwd = await newFolder('check')
    const good = await runProgram(
      command,
      ['check', '--config', join(installed, 'config/examples/gateway.yaml')],
      {
        cwd,
      },
    )
    expect([good.status, good.stdout]).toEqual([0, expect.stringContaining('is valid')])
    await writeFile(join(cwd, 'wrong.yaml'), 'sources: 7\n')
    const wrong = await runProgram(command, ['check', '--config', 'wrong.yaml'], { cwd })
    expect([wrong.status, wrong.stderr + wrong.stdout]).toEqual([2, expect.stringContaining('wrong.yaml:1:')])
  })

  test('the installed command finds the presets and their cases', async () => {
    const cases = join(installed, 'config/presets/owntracks.cases.yaml')
    const { status, stdout } = await runProgram(command, ['map', '--test', cases], { cwd: folder })
    expect([status, stdout]).toEqual([0, expect.stringMatching(/[1-9]\d* passed/)])
  })

  test('the installed daemon runs on the pinned Node and delivers messages', async () => {
    const cwd = await newFolder('run')
    const serviceUrl = await startSandbox(command, cwd)
    const credentials = '{ source: environment }'
    const config = await writeConfig(cwd, { serviceUrl, spoolPath: join(cwd, 'spool'), credentials })
    const daemon = startProgram([command, 'run', '--config', config], { cwd, env: sandboxKeys })
    await deliverMessages(daemon, serviceUrl)
    const [, opsUrl = ''] = await daemon.printed(/"(http:\/\/127\.0\.0\.1:\d+)"/)
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
    expect(metrics).toMatch(new RegExp(`gateway_build_info\\{.*node="v?${pinnedVersion}"`))
    // The process that was started is the gateway itself: signals reach it.
    expect(await readJson(`${opsUrl}/status`)).toMatchObject({ pid: daemon.pid, ready: true })
    expect(await daemon.stop()).toBe(0)
  })

  test('the systemd unit starts the daemon as a user without privileges', async () => {
    const cwd = await newFolder('unit')
    const unit = await readFile(join(installed, 'systemd/telemetry-gateway.service'), 'utf8')
    const settings = (key: string) =>
      [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value ?? '')
    const [execStart = ''] = settings('ExecStart')
    expect(execStart).toContain(documentedPrefix)
    const guide = await readFile(join(installed, 'docs/install.md'), 'utf8')
    expect(guide).toContain(`npm install -g --prefix ${documentedPrefix} ./telemetry-gateway-*.tgz`)
    const documentation = settings('Documentation').map((url) =>
      url.replace(`file://${documentedPrefix}`, prefix),
    )
    for (const path of documentation) await readFile(path)

    const serviceUrl = await startSandbox(command, cwd)
    await writeFile(
      join(cwd, 'ingestion.json'),
      JSON.stringify({
        accessKeyId: sandboxKeys.AWS_ACCESS_KEY_ID,
        secretAccessKey: sandboxKeys.AWS_SECRET_ACCESS_KEY,
      }),
    )
    const credentials = '{ source: file, path: "${env:CREDENTIALS_DIRECTORY}/ingestion.json" }'
    await writeConfig(cwd, { serviceUrl, spoolPath: join(cwd, 'state/spool'), credentials })
    const config = join(cwd, 'gateway.yaml')
    const env = { ...machineEnvironment, CREDENTIALS_DIRECTORY: cwd }
    const checked = await runProgram(command, ['check', '--config', config], { cwd, env })
    expect([checked.status, checked.stderr]).toEqual([0, ''])
    const state = await newFolder('unit/state')
    const nobody = process.getuid?.() === 0 ? 65_534 : undefined
    if (nobody !== undefined) await chown(state, nobody, nobody)
    const words = execStart
      .replaceAll(documentedPrefix, prefix)
      .replaceAll('/etc/telemetry-gateway', cwd)
      .split(' ')
    const daemon = startProgram(words, {
      cwd: state,
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        CREDENTIALS_DIRECTORY: cwd,
        STATE_DIRECTORY: state,
        ...Object.fromEntries(settings('Environment').map((setting) => setting.split('='))),
      },
      ...(nobody === undefined ? {} : { uid: nobody }),
    })
    await deliverMessages(daemon, serviceUrl)
    expect(await daemon.stop()).toBe(0)
  })

  test('the unpacked tarball runs after npm ci --omit=dev', { timeout: 180_000 }, async () => {
    const cwd = await newFolder('unpacked')
    await runProgram('tar', ['-xzf', tarball, '--strip-components=1'], { cwd })
    const { stderr } = await npm(cwd, 'ci', '--omit=dev')
    expect(stderr).not.toContain('EBADENGINE')
    const unpacked = join(cwd, 'dist/launcher.sh')
    const serviceUrl = await startSandbox(unpacked, cwd)
    const credentials = '{ source: environment }'
    const config = await writeConfig(cwd, { serviceUrl, spoolPath: join(cwd, 'spool'), credentials })
    const daemon = startProgram([unpacked, 'run', '--config', config], { cwd, env: sandboxKeys })
    await deliverMessages(daemon, serviceUrl)
    expect(await daemon.stop()).toBe(0)
  })

  describe('without the pinned Node', () => {
    beforeAll(() => rename(join(installed, 'node_modules', pinnedName), join(folder, 'pinned')))
    afterAll(() => rename(join(folder, 'pinned'), join(installed, 'node_modules', pinnedName)))

    test.runIf(machineNodeIsOld)('the error names the Node that is needed', async () => {
      const { status, stderr } = await runProgram(command, ['--version'], { cwd: folder })
      expect([status, stderr]).toEqual([
        2,
        expect.stringMatching(/^NODE_TOO_OLD\n[^]*needs Node 22\.19 or newer/),
      ])
    })

    test.skipIf(machineNodeIsOld)('the command runs on the Node of the machine', async () => {
      const { status, stdout } = await runProgram(command, ['--version'], { cwd: folder })
      expect([status, stdout.trim()]).toEqual([0, name])
    })
  })
})
