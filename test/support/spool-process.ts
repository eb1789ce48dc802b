// spool-process.ts: another process that has the database of a spool open.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Opens the database below `path` in a process that ends with the test. */
export async function useElsewhere(path: string): Promise<void> {
  const storage = new URL('../../src/storage/storage.ts', import.meta.url).href
  const script = `const { openLevelStore } = await import(${JSON.stringify(storage)})
    await openLevelStore(${JSON.stringify(join(path, 'store'))})
    process.stdout.write('open')
    setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
}
