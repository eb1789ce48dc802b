// production-packages.ts: the node_modules of a release: the production packages of the lockfile, without what no
// program reads, and the licences of all of them.
//
// A Debian package has the Node and the compiled database for its processor. The npm tarball has the compiled
// databases for both processors and C libraries, and no Node: npm installs that from its own package.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { thirdPartyNotices } from './third-party-notices.ts'

export type Processor = 'x64' | 'arm64'
type Options = { root: string; processor: Processor; withNode: boolean }

/** Patterns below node_modules. Licences and README.md stay. */
const unused = [
  '.bin',
  '.package-lock.json',
  '@types',
  // Headers and texts of Node; its licence stays.
  'node-linux-*/{include,share,CHANGELOG.md,README.md}',
  // The database is compiled already. The licences of its sources are in the notices.
  'classic-level/deps',
  '**/*.{h,cc,gyp}',
  // Node runs no TypeScript of a package.
  '**/*.{ts,mts,cts,map,tsbuildinfo}',
  '{,**/node_modules/}{*,@*/*}/{test,tests,benchmark,benchmarks,bench,integration,example,examples}',
  '{,**/node_modules/}{*,@*/*}/{docs,docfiles,.github}',
  '**/{tests,__tests__}',
  '**/*.html',
  '**/.{eslintrc,prettierrc,editorconfig,npmignore,gitattributes,gitignore,travis.yml,airtap.yml,nycrc}*',
]

/** Writes node_modules into `folder`; no script of a package is run. Returns the notices of the licences. */
export function installPackages(folder: string, { root, processor, withNode }: Options): string {
  const own = ['package.json', 'package-lock.json', '.npmrc']
  for (const name of own) cpSync(join(root, name), join(folder, name))
  const options = ['--omit=dev', '--ignore-scripts', '--prefer-offline', '--loglevel=error']
  execFileSync('npm', ['ci', ...options], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  putPinnedNode(folder, `node-linux-${processor}`)
  for (const name of own) rmSync(join(folder, name))
  const modules = join(folder, 'node_modules')
  const notices = thirdPartyNotices(modules, root)
  for (const pattern of [...unused, ...(withNode ? [] : ['node-linux-*'])])
    for (const found of globSync(pattern, { cwd: modules }))
      rmSync(join(modules, found), { recursive: true, force: true })
  keepPrebuilds(
    join(modules, 'classic-level/prebuilds'),
    withNode ? [processor] : ['x64', 'arm64'],
    !withNode,
  )
  if (withNode) strip(join(modules, `node-linux-${processor}/bin/node`), processor)
  return notices
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

/** Those of glibc must be there, one for each processor. */
function keepPrebuilds(folder: string, processors: readonly Processor[], withMusl: boolean): void {
  const kept = globSync('*/*', { cwd: folder }).filter(
    (path) =>
      processors.some((processor) => path.startsWith(`linux-${processor}/`)) &&
      (withMusl || !path.includes('musl')),
  )
  if (kept.filter((path) => !path.includes('musl')).length !== processors.length)
    throw new Error(`classic-level has no single prebuild for ${processors.join(', ')}: ${kept.join(', ')}`)
  for (const path of globSync('{*,*/*}', { cwd: folder }))
    if (!kept.some((name) => name === path || dirname(name) === path))
      rmSync(join(folder, path), { recursive: true, force: true })
}

/** Removes the symbols for debuggers; those that compiled packages need are in another table, which stays. */
function strip(file: string, processor: Processor): void {
  const tools = [
    ...(process.arch === processor ? ['strip'] : []),
    { x64: 'x86_64-linux-gnu-strip', arm64: 'aarch64-linux-gnu-strip' }[processor],
    'llvm-strip',
  ]
  const folders = (process.env['PATH'] ?? '').split(':')
  const tool = tools.find((name) => folders.some((path) => existsSync(join(path, name))))
  if (tool === undefined)
    process.stderr.write(`Node for ${processor} keeps its symbols: install ${tools.join(' or ')}.\n`)
  else execFileSync(tool, [file], { stdio: ['ignore', 'inherit', 'inherit'] })
}
