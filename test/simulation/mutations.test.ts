// The test of the simulation: each mistake of mutations.ts must be found, and soon. `npm run test:mutations` runs it.

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { mutations } from './mutations.ts'

/** Seeds that may hold although there is a mistake, in portions: the first that fails ends the search. */
const seedsMax = 2000
const portion = 25
/** Of a portion, beside other work. */
const timeout = 300_000

const run = promisify(execFile)

/** The output of the portion with the first seed that fails; null where none does. */
async function firstFailure(name: string): Promise<string | null> {
  for (let seed = 1; seed <= seedsMax; seed += portion) {
    const words = ['--seed', `${seed}`, '--seeds', `${portion}`, '--mutation', name]
    const result = await run(process.execPath, [join(import.meta.dirname, 'run.ts'), ...words], {
      timeout,
    }).catch((error: unknown) => error as { stdout: string; stderr: string })
    if (!/^\d+ seeds, 0 failed/m.test(result.stdout)) return result.stdout + result.stderr
  }
  return null
}

describe('the simulation finds a daemon in which', () => {
  test.each(mutations)('$name', { timeout: 1_800_000 }, async ({ name }) => {
    expect(await firstFailure(name)).toMatch(/^seed \d+ /m)
  })
})
