// package-version.ts: the version in package.json, which is three folders up from the source and from dist
// alike.

import { readFileSync } from 'node:fs'

export function readVersion(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  )
  if (
    typeof manifest === 'object' &&
    manifest &&
    'version' in manifest &&
    typeof manifest.version === 'string'
  )
    return manifest.version
  return 'unknown'
}
