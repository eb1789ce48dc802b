// package.ts: `npm run package`: builds the packages of this checkout.
//
//   npm run package -- [--arch amd64,arm64] [--to DIR] [--fast]    Debian packages
//   npm run package -- --npm [--to DIR]                            the npm tarball
//
// Without --to they are in packages/, which has the last build of each kind only: `./telemetry-gateway_*_amd64.deb` is
// one file there. --fast does not compress.

import { globSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildPackages, sourceDate } from './build-packages.ts'
import { machines, type Architecture } from './package-tree.ts'

const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: 'amd64,arm64' },
    npm: { type: 'boolean', default: false },
    to: { type: 'string' },
    fast: { type: 'boolean', default: false },
  },
})
const names = values.npm ? [] : values.arch.split(',')
for (const name of names)
  if (!Object.hasOwn(machines, name)) throw new Error(`--arch is one of ${Object.keys(machines).join(', ')}.`)
const root = resolve(import.meta.dirname, '../..')
const target = values.to === undefined ? join(root, 'packages') : resolve(values.to)
const kinds = values.npm
  ? ['telemetry-gateway-*.tgz']
  : names.map((name) => `telemetry-gateway_*_${name}.deb`)
if (values.to === undefined) for (const name of globSync(kinds, { cwd: target })) rmSync(join(target, name))
for await (const file of buildPackages({
  root,
  target,
  architectures: names as Architecture[],
  withTarball: values.npm,
  date: sourceDate(root),
  isFast: values.fast,
}))
  process.stdout.write(`${file}\n`)
