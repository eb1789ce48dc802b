// folders.ts: directories for one test, removed after it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A new directory that is removed when the test ends, or when `atEnd` says. */
export async function newFolder(atEnd: (end: () => Promise<void>) => void = onTestFinished): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'gateway-test-'))
  atEnd(() => rm(path, { recursive: true, force: true, maxRetries: 10 }))
  return path
}
