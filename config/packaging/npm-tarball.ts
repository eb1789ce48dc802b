// npm-tarball.ts: the npm tarball: the files of `files` in package.json, the production packages without what no
// program reads, and their licences. npm packs a folder of its own, because it would pack the packages of the checkout
// as they are, with tests, types and databases for other systems.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { noticesName, releasedFiles } from './package-tree.ts'
import { installPackages } from './production-packages.ts'

type Manifest = Record<string, unknown> & { files: string[] }
type Lockfile = { version: string; packages: Record<string, { version: string }> }

/** `npm run build` has written dist. `work`: an empty folder. Returns the file, in `target`. */
export function packTarball(
  work: string,
  { root, version, target }: { root: string; version: string; target: string },
): string {
  const readJson = (name: string): unknown => JSON.parse(readFileSync(join(root, name), 'utf8'))
  const writeJson = (name: string, content: unknown) =>
    writeFileSync(join(work, name), `${JSON.stringify(content, null, 2)}\n`)
  const { scripts: _, ...manifest } = readJson('package.json') as Manifest
  const lockfile = readJson('package-lock.json') as Lockfile
  const notices = installPackages(work, { root, processor: 'x64', withNode: false })
  for (const name of releasedFiles(root, manifest.files)) {
    mkdirSync(join(work, dirname(name)), { recursive: true })
    cpSync(join(root, name), join(work, name))
  }
  writeFileSync(join(work, noticesName), notices)
  writeJson('package.json', { ...manifest, version, files: [...manifest.files, noticesName] })
  Object.assign(lockfile.packages[''] ?? {}, { version })
  writeJson('npm-shrinkwrap.json', { ...lockfile, version })
  const printed = execFileSync('npm', ['pack', '--silent', '--pack-destination', target], {
    cwd: work,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // npm leaves out what follows a `+`.
  const file = join(target, `telemetry-gateway-${version}.tgz`)
  renameSync(join(target, printed.trim().split('\n').at(-1) ?? ''), file)
  return file
}
