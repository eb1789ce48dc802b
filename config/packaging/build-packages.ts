// build-packages.ts: compiles the checkout and writes its packages: for Debian, and the npm tarball.
//
// A package has the compiled code, the production packages of the lockfile (production-packages.ts) and, for Debian,
// the pinned Node, the unit, the manual and the completions (package-tree.ts), and control files with maintainer
// scripts (control-files.ts, deb/). dpkg-deb writes it. The same checkout gives the same bytes with the same tools:
// times are those of SOURCE_DATE_EPOCH or of the last commit, files belong to root and have modes of their own,
// whatever the umask is.
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
import { join } from 'node:path'
import { debVersion, writeControlFiles } from './control-files.ts'
import { packTarball } from './npm-tarball.ts'
import { buildTree, type Architecture } from './package-tree.ts'

type BuildOptions = {
  root: string
  target: string
  architectures: readonly Architecture[]
  withTarball: boolean
  /** Seconds since 1970. */
  date: number
  /** Without compression, for tests. */
  isFast?: boolean
}

/** Compiles, and writes the packages into `target`. Yields the path of each. */
export async function* buildPackages(options: BuildOptions): AsyncGenerator<string> {
  const { root, target, architectures, withTarball, date } = options
  mkdirSync(target, { recursive: true })
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  const version = readFileSync(join(root, 'dist/build-name'), 'utf8').trim()
  for (const kind of [...architectures, ...(withTarball ? ['npm' as const] : [])]) {
    const work = mkdtempSync(join(tmpdir(), 'telemetry-gateway-package-'))
    try {
      yield kind === 'npm'
        ? packTarball(work, { root, version, target })
        : await buildDeb(join(work, 'tree'), { ...options, architecture: kind, version })
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  }

  async function buildDeb(
    tree: string,
    { architecture, isFast }: BuildOptions & { architecture: Architecture; version: string },
  ): Promise<string> {
    await buildTree(tree, { root, architecture, version, date })
    await writeControlFiles(tree, { root, architecture, version, date })
    settle(tree, date)
    const file = join(target, `telemetry-gateway_${debVersion(version)}_${architecture}.deb`)
    const compression = isFast ? ['-Znone'] : ['-Zxz', '-z6', '--threads-max=1']
    execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', tree, file], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(date) },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return file
  }
}

/** Seconds since 1970; a tarball without git has the time of its package.json, which npm sets. */
export function sourceDate(root: string): number {
  const given = process.env['SOURCE_DATE_EPOCH']
  if (given !== undefined) return Number(given)
  try {
    return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }))
  } catch {
    return Math.floor(lstatSync(join(root, 'package.json')).mtimeMs / 1000)
  }
}

/** Modes and times that do not depend on the machine. */
function settle(path: string, date: number): void {
  const found = lstatSync(path)
  if (found.isDirectory()) for (const name of readdirSync(path)) settle(join(path, name), date)
  if (!found.isSymbolicLink()) chmodSync(path, found.isDirectory() || isExecutable(path) ? 0o755 : 0o644)
  lutimesSync(path, date, date)
}

function isExecutable(path: string): boolean {
  return /\/(launcher\.sh|bin\/node|DEBIAN\/(preinst|postinst|prerm|postrm))$/.test(path)
}
