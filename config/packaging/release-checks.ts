// release-checks.ts: what must be true of a commit that is released.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildName } from '../../src/cli/terminal/package-version.ts'

type Manifest = { version: string }

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
