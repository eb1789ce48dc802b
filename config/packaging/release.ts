// release.ts: `npm run release`: checks that this commit can be released, and makes everything that is published.
//
//   npm run release -- [--dev] [--tag] [--to DIR]
//
// --dev   the version in package.json may end in -dev
// --tag   makes the tag v<version> when all else has succeeded; it is not pushed
//
// The folder then has two Debian packages, the npm tarball, the licences of all packages, an SBOM in CycloneDX and
// SHA256SUMS. All problems are named at once, and then nothing is made. The same commit gives the same bytes with the
// same tools.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildName } from '../../src/cli/terminal/package-version.ts'
import { buildPackages, sourceDate } from './package.ts'
import { noticesName } from './package-tree.ts'

type Manifest = { version: string; devDependencies?: unknown }
type Lockfile = Manifest & { packages: Record<string, Partial<Manifest> & { dev?: boolean }> }

/** Why this commit cannot be released. */
export function releaseProblems(
  root: string,
  { isDev, withTag }: { isDev: boolean; withTag: boolean },
): string[] {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  const textOf = (name: string) => readFileSync(join(root, name), 'utf8')
  const versionIn = (name: string) => (JSON.parse(textOf(name)) as Manifest).version
  const version = versionIn('package.json')
  const problems: string[] = []
  if (version.endsWith('-dev') !== isDev)
    problems.push(
      isDev
        ? `package.json says ${version}, which is no development version: leave out --dev.`
        : `package.json says ${version}: set the version of the release, or give --dev.`,
    )
  if (withTag && isDev) problems.push('A development version gets no tag: leave out --tag.')
  if (versionIn('package-lock.json') !== version)
    problems.push(`package-lock.json does not say ${version}: run npm run lockfile.`)
  const heading = version.replace(/-dev$/, '')
  const headings = new RegExp(`^## ${heading.replaceAll('.', '\\.')}([ ,:]|$)`, 'm')
  if (!headings.test(textOf('CHANGELOG.md'))) problems.push(`CHANGELOG.md has no heading "## ${heading}".`)
  if (buildName(root).endsWith('+unknown'))
    return [...problems, 'git cannot name the commit: use a clone with all commits.']
  const changed = git('status', '--porcelain')
  if (changed !== '') problems.push(`The checkout differs from its commit:\n${changed.replace(/^/gm, '  ')}`)
  const tagged = git('tag', '--list', `v${version}`) === '' ? null : git('rev-list', '-n', '1', `v${version}`)
  if (tagged !== null && tagged !== git('rev-parse', 'HEAD'))
    problems.push(`The tag v${version} is at another commit, ${tagged.slice(0, 12)}.`)
  return problems
}

/**
 * The production packages in CycloneDX, without what differs from one call to the next. With the development packages
 * in the lockfile, npm also omits production packages that one of them needs, such as zod.
 */
export function sbomText(root: string, { version, date }: { version: string; date: number }): string {
  const folder = mkdtempSync(join(tmpdir(), 'telemetry-gateway-sbom-'))
  try {
    const textOf = (name: string) => readFileSync(join(root, name), 'utf8')
    const production = (manifest: Partial<Manifest>) => ({ ...manifest, version, devDependencies: {} })
    const manifest = JSON.parse(textOf('package.json')) as Manifest
    const lockfile = JSON.parse(textOf('package-lock.json')) as Lockfile
    const packages = Object.entries(lockfile.packages)
      .filter(([, { dev }]) => dev !== true)
      .map(([path, entry]) => [path, path === '' ? production(entry) : entry] as const)
    writeFileSync(join(folder, 'package.json'), JSON.stringify(production(manifest)))
    writeFileSync(
      join(folder, 'package-lock.json'),
      JSON.stringify({ ...lockfile, version, packages: Object.fromEntries(packages) }),
    )
    const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
    const printed = execFileSync('npm', args, { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 })
    const sbom = JSON.parse(printed) as {
      serialNumber?: string
      metadata: Record<string, unknown> & { component: Record<string, unknown> }
    }
    delete sbom.serialNumber
    sbom.metadata['timestamp'] = new Date(date * 1000).toISOString()
    // npm takes the name of the folder.
    sbom.metadata.component['name'] = 'telemetry-gateway'
    return `${JSON.stringify(sbom, null, 2)}\n`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** As sha256sum prints it. */
function sumsOf(folder: string): string {
  const lines = readdirSync(folder)
    .toSorted()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}\n`,
    )
  return lines.join('')
}

async function release(
  root: string,
  { isDev, withTag, to }: { isDev: boolean; withTag: boolean; to?: string },
) {
  const problems = releaseProblems(root, { isDev, withTag })
  if (problems.length > 0) {
    process.stderr.write(`Nothing was made:\n${problems.map((text) => `- ${text}\n`).join('')}`)
    process.exitCode = 1
    return
  }
  const version = buildName(root)
  const date = sourceDate(root)
  const target = resolve(root, to ?? `packages/${version}`)
  if (to === undefined) rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  if (readdirSync(target).length > 0) throw new Error(`${target} is not empty.`)
  const kinds = { architectures: ['amd64', 'arm64'] as const, withTarball: true }
  const built: string[] = []
  for await (const file of buildPackages({ root, target, date, ...kinds })) built.push(file)
  const tarball = built.at(-1) ?? ''
  const notices = execFileSync('tar', ['-xzOf', tarball, `package/${noticesName}`], {
    maxBuffer: 64 * 1024 ** 2,
  })
  writeFileSync(join(target, noticesName), notices)
  writeFileSync(join(target, `telemetry-gateway-${version}.cdx.json`), sbomText(root, { version, date }))
  writeFileSync(join(target, 'SHA256SUMS'), sumsOf(target))
  if (withTag)
    execFileSync('git', ['tag', '--annotate', `v${version}`, '--message', `telemetry-gateway ${version}`])
  for (const name of readdirSync(target))
    process.stdout.write(`${String(statSync(join(target, name)).size).padStart(10)}  ${join(target, name)}\n`)
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      dev: { type: 'boolean', default: false },
      tag: { type: 'boolean', default: false },
      to: { type: 'string' },
    },
  })
  const { dev: isDev, tag: withTag, to } = values
  await release(resolve(import.meta.dirname, '../..'), {
    isDev,
    withTag,
    ...(to === undefined ? {} : { to }),
  })
}
