// folders.ts: directories for one test, removed after it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A new directory that is removed when the test ends. */
export async function newFolder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'gateway-test-'))
  onTestFinished(() => rm(path, { recursive: true, force: true, maxRetries: 10 }))
  return path
}
