// sbom.ts: the list of all production packages in CycloneDX, by npm.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type Manifest = { version: string; devDependencies?: unknown }
type Lockfile = Manifest & { packages: Record<string, Partial<Manifest> & { dev?: boolean }> }

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
