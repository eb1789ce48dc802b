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
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildName } from '../../src/cli/terminal/package-version.ts'
import { buildPackages, sourceDate } from './build-packages.ts'
import { noticesName } from './package-tree.ts'
import { releaseProblems } from './release-checks.ts'
import { sbomText } from './sbom.ts'

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
  const tag = `v${version}`
  const isTagged = execFileSync('git', ['tag', '--list', tag], { cwd: root, encoding: 'utf8' }) !== ''
  if (withTag && !isTagged)
    execFileSync('git', ['tag', '--annotate', tag, '--message', `telemetry-gateway ${version}`], {
      cwd: root,
    })
  for (const name of readdirSync(target))
    process.stdout.write(`${String(statSync(join(target, name)).size).padStart(10)}  ${join(target, name)}\n`)
}
