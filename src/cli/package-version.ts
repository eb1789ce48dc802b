// package-version.ts: the version of this gateway, as package.json has it. The file lies two folders up from the source
// and from what is compiled.

import { readFileSync } from 'node:fs'

export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  if (
    typeof manifest === 'object' &&
    manifest &&
    'version' in manifest &&
    typeof manifest.version === 'string'
  )
    return manifest.version
  return 'unknown'
}
