// package.ts: `npm run package`: builds the Debian packages of this checkout.
//
//   npm run package -- [--arch amd64,arm64] [--to DIR] [--fast]
//
// A package has the compiled code, the production packages of the lockfile, the pinned Node, the unit, the
// manual and the completions (package-tree.ts), and control files with maintainer scripts (control-files.ts,
// deb/). dpkg-deb writes it. The same checkout gives the same bytes: times are those of SOURCE_DATE_EPOCH or of
// the last commit, files belong to root and have modes of their own, whatever the umask is.
//
// Needs npm, dpkg-deb and, for packages that are not in its cache, the registry. A package for another
// processor is built from the packages of that processor; nothing of it is run.

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { debVersion, writeControlFiles } from './control-files.ts'
import { buildTree, machines, type Architecture } from './package-tree.ts'

const root = resolve(import.meta.dirname, '../..')
const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: 'amd64,arm64' },
    to: { type: 'string', default: 'packages' },
    /** Without compression, for tests. */
    fast: { type: 'boolean', default: false },
  },
})

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const { version } = manifest
const date = Number(process.env['SOURCE_DATE_EPOCH'] ?? lastCommit())
const target = resolve(values.to)
mkdirSync(target, { recursive: true })

execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })

for (const name of values.arch.split(',')) {
  if (!Object.hasOwn(machines, name)) throw new Error(`--arch is one of ${Object.keys(machines).join(', ')}.`)
  const architecture = name as Architecture
  const work = mkdtempSync(join(tmpdir(), 'telemetry-gateway-package-'))
  try {
    const tree = join(work, 'tree')
    await buildTree(tree, { root, architecture, version, date })
    writeControlFiles(tree, { root, architecture, version, date })
    settle(tree)
    const file = join(target, `telemetry-gateway_${debVersion(version)}_${architecture}.deb`)
    const compression = values.fast ? ['-Znone'] : ['-Zxz', '-z6', '--threads-max=1']
    execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', tree, file], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(date) },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    process.stdout.write(`${file}\n`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Seconds since 1970; a tarball without git has the time of its package.json, which npm sets. */
function lastCommit(): number {
  try {
    return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }))
  } catch {
    return Math.floor(lstatSync(join(root, 'package.json')).mtimeMs / 1000)
  }
}

/** Modes and times that do not depend on the machine. */
function settle(path: string): void {
  const found = lstatSync(path)
  if (found.isDirectory()) for (const name of readdirSync(path)) settle(join(path, name))
  if (!found.isSymbolicLink()) chmodSync(path, found.isDirectory() || isExecutable(path) ? 0o755 : 0o644)
  lutimesSync(path, date, date)
}

function isExecutable(path: string): boolean {
  return /\/(launcher\.sh|bin\/node|DEBIAN\/(preinst|postinst|prerm|postrm))$/.test(path)
}
