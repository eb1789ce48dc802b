// package-manifests.ts: the package.json of each package below a node_modules, and the licence that it names.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export type PackageManifest = {
  name: string
  version: string
  author?: string | { name?: string }
  license?: unknown
  licenses?: { type: string }[]
}

/** Sorted by folder; packages within packages have their own entry. */
export function manifestsBelow(modules: string): { folder: string; manifest: PackageManifest }[] {
  return globSync(['**/package.json'], { cwd: modules })
    .filter((path) => /(^|\/node_modules\/)(@[^/]+\/)?[^/]+\/package\.json$/.test(path))
    .toSorted()
    .map((path) => ({
      folder: dirname(path),
      manifest: JSON.parse(readFileSync(join(modules, path), 'utf8')) as PackageManifest,
    }))
}

export function licenceOf({ license, licenses }: PackageManifest): string {
  if (typeof license === 'string') return license
  if (typeof license === 'object' && license !== null && 'type' in license) return String(license.type)
  return licenses?.map(({ type }) => type).join(' or ') ?? 'see its folder'
}
