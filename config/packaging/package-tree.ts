// package-tree.ts: the files of a Debian package, as they will lie on the machine.
//
//   /usr/lib/telemetry-gateway   dist, node_modules (with the pinned Node), config, package.json, spool-format
//   /usr/bin/telemetry-gateway   a link to dist/launcher.sh
//   /usr/lib/systemd/system, /usr/lib/sysusers.d   unit and user
//   /usr/share/doc, man, bash-completion, zsh, lintian
//
// Nothing lies in /etc: dpkg would ask a person at each upgrade who changed a file there. The first
// installation copies config/default instead (deb/postinst), and no later one touches what is there.

import { cpSync, globSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { configText, newTable, newUsers, untouched } from '../../src/cli/init-command/new-config.ts'
import { formatVersion } from '../../src/spool/spool.ts'
import { commandTree } from './command-tree.ts'
import { bashCompletion, zshCompletion } from './completions.ts'
import { manualPage } from './manual-page.ts'
import { installPackages } from './production-packages.ts'

/** By architecture of Debian: the name of npm. */
export const machines = { amd64: 'x64', arm64: 'arm64' } as const
export type Architecture = keyof typeof machines

export type PackageOptions = { root: string; architecture: Architecture; version: string; date: number }

export const noticesName = 'THIRD-PARTY-NOTICES'
const home = 'usr/lib/telemetry-gateway'
const documents = 'usr/share/doc/telemetry-gateway'

/** `npm run build` has written dist. */
export async function buildTree(tree: string, options: PackageOptions): Promise<void> {
  const { root, version, date } = options
  const write = (path: string, content: string | Buffer) => {
    mkdirSync(join(tree, dirname(path)), { recursive: true })
    writeFileSync(join(tree, path), content)
  }
  mkdirSync(join(tree, home), { recursive: true })
  cpSync(join(root, 'dist'), join(tree, home, 'dist'), { recursive: true })
  // Some machines install no documentation; the licences are not part of that.
  const processor = machines[options.architecture]
  write(`${home}/${noticesName}`, installPackages(join(tree, home), { root, processor, withNode: true }))
  link(tree, `../../../lib/telemetry-gateway/${noticesName}`, `${documents}/${noticesName}`)
  const textIn = (path: string) => readFileSync(join(root, path), 'utf8')
  const manifest = JSON.parse(textIn('package.json')) as Record<string, unknown>
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
  write('usr/share/lintian/overrides/telemetry-gateway', textIn('config/packaging/lintian-overrides'))
  const commands = await commandTree()
  write('usr/share/man/man1/telemetry-gateway.1.gz', gzipped(manualPage(commands, { version, date })))
  write('usr/share/bash-completion/completions/telemetry-gateway', bashCompletion(commands))
  write('usr/share/zsh/vendor-completions/_telemetry-gateway', zshCompletion(commands))
}

/** Without a time in its header. */
export function gzipped(content: string | Buffer): Buffer {
  return gzipSync(content, { level: 9 })
}

function link(tree: string, to: string, path: string): void {
  mkdirSync(join(tree, dirname(path)), { recursive: true })
  symlinkSync(to, join(tree, path))
}

/** `files` of package.json, and what npm adds. */
export function releasedFiles(root: string, patterns: readonly string[]): string[] {
  const names = patterns.filter((name) => name !== 'npm-shrinkwrap.json')
  return globSync([...names.map((name) => (name === 'dist' ? 'dist/**' : name)), 'README.md', 'LICENSE'], {
    cwd: root,
  }).filter((name) => lstatSync(join(root, name)).isFile())
}

/** What a release has beside the code: `files` of package.json. */
function copyReleased(tree: string, root: string, patterns: readonly string[]): void {
  const names = releasedFiles(root, patterns).filter((name) => !/^(dist|systemd)\//.test(name))
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
