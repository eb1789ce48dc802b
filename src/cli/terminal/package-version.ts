// package-version.ts: the name of this build, which is its version everywhere: `version`, log, status, page,
// packages.
//
//   0.2.0                            package.json says so: a release
//   0.2.0-dev.812.g1a2b3c4d5e6f      package.json says 0.2.0-dev: the number of commits, and the commit
//   0.2.0-dev.812.g1a2b3c4d5e6f+dirty  files of the checkout differ from the commit
//   0.2.0-dev+unknown                no git, no repository of this project, or not all of its commits
//
// The number of commits makes a later build the newer one. dpkg compares the same names with `~` in place of
// the first `-`: +unknown is older than all builds with a number, and all are older than 0.2.0. The commit
// tells apart builds with the same number.
//
// `npm run build` writes the name into the folder of the compiled code. A checkout that runs from its sources
// asks git, which takes some 20 ms: only what prints the name calls this.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const sources = resolve(import.meta.dirname, '../..')

export function readVersion(): string {
  try {
    return readFileSync(join(sources, 'build-name'), 'utf8').trim()
  } catch {
    return buildName(join(sources, '..'))
  }
}

/** The name of a build of this checkout. */
export function buildName(root: string): string {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  return version.endsWith('-dev') ? `${version}${commitText(root)}` : version
}

function commitText(root: string): string {
  const git = (...args: string[]) =>
    execFileSync('git', ['--no-optional-locks', ...args], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  try {
    // A path before the top of the repository: the repository is another project's.
    const [isShallow, below, commit] = git(
      'rev-parse',
      '--is-shallow-repository',
      '--show-prefix',
      'HEAD',
    ).split('\n')
    if (isShallow !== 'false' || below !== '' || commit === undefined) return '+unknown'
    const count = git('rev-list', '--count', commit).trim()
    const isDirty = git('status', '--porcelain', '--untracked-files=no') !== ''
    return `.${count}.g${commit.slice(0, 12)}${isDirty ? '+dirty' : ''}`
  } catch {
    return '+unknown'
  }
}
