// package-tree.ts: the files of a Debian package, as they will lie on the machine.
//
//   /usr/lib/telemetry-gateway   dist, node_modules (with the pinned Node), config, package.json, spool-format
//   /usr/bin/telemetry-gateway   a link to dist/launcher.sh
//   /usr/lib/systemd/system, /usr/lib/sysusers.d   unit and user
//   /usr/share/doc, man, bash-completion, zsh      documentation
//
// Nothing lies in /etc: dpkg would ask a person at each upgrade who changed a file there. The first
// installation copies config/default instead (deb/postinst), and no later one touches what is there.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { configText, newTable, newUsers, untouched } from '../../src/cli/init-command/new-config.ts'
import { formatVersion } from '../../src/spool/spool.ts'
import { commandTree } from './command-tree.ts'
import { bashCompletion, zshCompletion } from './completions.ts'
import { manualPage } from './manual-page.ts'

/** By architecture of Debian: the name of npm. */
export const machines = { amd64: 'x64', arm64: 'arm64' } as const
export type Architecture = keyof typeof machines

export type PackageOptions = { root: string; architecture: Architecture; version: string; date: number }

const home = 'usr/lib/telemetry-gateway'
const documents = 'usr/share/doc/telemetry-gateway'

/** `npm run build` has written dist. */
export async function buildTree(tree: string, options: PackageOptions): Promise<void> {
  const { root, version, date } = options
  const write = (path: string, content: string | Buffer) => {
    mkdirSync(join(tree, dirname(path)), { recursive: true })
    writeFileSync(join(tree, path), content)
  }
  cpSync(join(root, 'dist'), join(tree, home, 'dist'), { recursive: true })
  installPackages(join(tree, home), options)
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>
  const { name, description, license, type, engines } = manifest
  write(
    `${home}/package.json`,
    `${JSON.stringify({ name, version, description, license, type, engines }, null, 2)}\n`,
  )
  write(`${home}/spool-format`, `${formatVersion}\n`)
  copyReleased(tree, root, manifest['files'] as string[])
  write(`${home}/config/default/gateway.yaml`, configText(untouched))
  write(`${home}/config/default/devices.csv`, newTable)
  write(`${home}/config/default/users`, newUsers)
  write(`${home}/config/default/ingestion.json`, '')
  link(tree, '../lib/telemetry-gateway/dist/launcher.sh', 'usr/bin/telemetry-gateway')
  write('usr/lib/systemd/system/telemetry-gateway.service', unitText(root))
  write('usr/lib/sysusers.d/telemetry-gateway.conf', sysusersText(root))
  const commands = await commandTree()
  write('usr/share/man/man1/telemetry-gateway.1.gz', gzipped(manualPage(commands, { version, date })))
  write('usr/share/bash-completion/completions/telemetry-gateway', bashCompletion(commands))
  write('usr/share/zsh/vendor-completions/_telemetry-gateway', zshCompletion(commands))
}

/** Without a time in its header. */
export function gzipped(text: string): Buffer {
  return gzipSync(text, { level: 9 })
}

function link(tree: string, to: string, path: string): void {
  mkdirSync(join(tree, dirname(path)), { recursive: true })
  symlinkSync(to, join(tree, path))
}

/** The packages of the lockfile for that processor. No script of a package is run. */
function installPackages(folder: string, { root, architecture }: PackageOptions): void {
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    cpSync(join(root, name), join(folder, name))
  const cpu = machines[architecture]
  const options = ['--omit=dev', '--ignore-scripts', '--prefer-offline', '--loglevel=error']
  execFileSync('npm', ['ci', ...options], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  putPinnedNode(folder, `node-linux-${cpu}`)
  for (const name of ['package-lock.json', '.npmrc']) rmSync(join(folder, name))
  const modules = join(folder, 'node_modules')
  const prebuild = `linux-${cpu}/classic-level.node`
  const unused = [
    '.bin',
    '.package-lock.json',
    '@types',
    // Headers and texts of Node; its licence stays.
    `node-linux-${cpu}/{include,share,CHANGELOG.md,README.md}`,
    // The database is compiled already, for one processor and C library.
    'classic-level/{deps,binding.cc,binding.gyp}',
    '**/*.{d.ts,d.mts,d.cts,map,tsbuildinfo}',
    // Of packages, what no program reads. Licences and README.md stay.
    '{*,@*/*}/{test,tests,benchmark,benchmarks,bench,integration,example,examples,docs,docfiles,.github}',
    '**/*.html',
    '**/.{eslintrc,prettierrc,editorconfig,npmignore,gitattributes,gitignore,travis.yml,airtap.yml,nycrc}*',
  ]
  for (const pattern of unused)
    for (const found of globSync(pattern, { cwd: modules }))
      rmSync(join(modules, found), { recursive: true, force: true })
  const prebuilds = join(modules, 'classic-level/prebuilds')
  const present = globSync('*/*', { cwd: prebuilds })
  const own = present.filter((name) => name.startsWith(`linux-${cpu}/`) && !name.includes('musl'))
  if (own.length !== 1)
    throw new Error(`No single prebuild of classic-level for ${prebuild}: ${present.join(', ')}`)
  for (const name of present) if (name !== own[0]) rmSync(join(prebuilds, name))
  for (const name of readdirSync(prebuilds))
    if (!own[0]?.startsWith(`${name}/`)) rmSync(join(prebuilds, name), { recursive: true })
}

/** Only the pinned Node is compiled for one processor, and npm 9 installs packages of its own processor alone. */
function putPinnedNode(folder: string, name: string): void {
  const modules = join(folder, 'node_modules')
  const others = readdirSync(modules).filter((found) => found.startsWith('node-linux-') && found !== name)
  for (const other of others) rmSync(join(modules, other), { recursive: true })
  if (existsSync(join(modules, name))) return
  const lockfile = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; integrity: string }>
  }
  const locked = lockfile.packages[`node_modules/${name}`]
  if (locked === undefined) throw new Error(`${name} is not in the lockfile.`)
  const pack = ['pack', `${name}@${locked.version}`, '--prefer-offline', '--loglevel=error']
  execFileSync('npm', pack, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const tarball = join(folder, `${name}-${locked.version}.tgz`)
  const sum = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  if (sum !== locked.integrity) throw new Error(`${tarball} is not the package of the lockfile.`)
  mkdirSync(join(modules, name))
  execFileSync('tar', ['-xzf', tarball, '-C', join(modules, name), '--strip-components=1', '--no-same-owner'])
  rmSync(tarball)
}

/** What a release has beside the code: `files` of package.json. */
function copyReleased(tree: string, root: string, patterns: readonly string[]): void {
  const names = globSync([...patterns, 'README.md', 'LICENSE'], { cwd: root }).filter(
    (name) => !/^(dist|systemd)(\/|$)|^npm-shrinkwrap/.test(name),
  )
  for (const name of names) {
    // Some machines install no documentation, and the program reads its presets.
    const place = name.startsWith('config/') ? home : documents
    mkdirSync(join(tree, place, dirname(name)), { recursive: true })
    if (name !== 'LICENSE') cpSync(join(root, name), join(tree, place, name))
  }
  link(tree, '../../../lib/telemetry-gateway/config', `${documents}/config`)
}

/** The unit of the release, with the paths of the package. */
function unitText(root: string): string {
  return replaced(readFileSync(join(root, 'systemd/telemetry-gateway.service'), 'utf8'), [
    [
      /^(# telemetry-gateway\.service: .*\n)[^]*?\n\n/,
      '$1# Change settings with `systemctl edit telemetry-gateway`: an upgrade replaces this file.\n\n',
    ],
    [
      'ExecStart=/opt/telemetry-gateway/bin/telemetry-gateway run',
      'ExecStart=/usr/bin/telemetry-gateway run',
    ],
    [
      /^Documentation=.*$/m,
      'Documentation=man:telemetry-gateway(1) file:///usr/share/doc/telemetry-gateway/README.md',
    ],
  ])
}

function sysusersText(root: string): string {
  return replaced(readFileSync(join(root, 'systemd/telemetry-gateway.conf'), 'utf8'), [
    [/^#[^]*?(?=^u )/m, '# The user of the daemon. Members of the group may use the control socket.\n'],
  ])
}

function replaced(text: string, changes: readonly [string | RegExp, string][]): string {
  let result = text
  for (const [from, to] of changes) {
    const next = result.replace(from, to)
    if (next === result) throw new Error(`The unit has no ${String(from)} to replace.`)
    result = next
  }
  if (result.includes('/opt/')) throw new Error('A path of another installation is left in the unit.')
  return result
}
