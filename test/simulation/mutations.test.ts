// The test of the simulation: each mistake of mutations.ts must be found, and soon. `npm run test:mutations` runs it.
//
// `mutations/found-by.json` has the seed that found each one last. It is tried first, since most seeds mean the same run
// for a long time. Where it finds nothing any more, all seeds are tried from the first one on, and the file is written
// anew with those that find.

import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { mutations, type Mutation } from './mutations.ts'

/** Seeds that may hold although there is a mistake. */
const seedsMax = 2000
/** Of all of them, beside other work. */
const timeout = 3_600_000

const foundByPath = join(import.meta.dirname, 'mutations/found-by.json')
const foundBy = JSON.parse(readFileSync(foundByPath, 'utf8')) as Record<string, number>

const run = promisify(execFile)

/** The first seed that fails; null where none does. */
async function firstFailure(
  { name, theme }: Mutation,
  { first, count }: { first: number; count: number },
): Promise<number | null> {
  const words = ['--search', '--seed', `${first}`, '--seeds', `${count}`, '--mutation', name]
  if (theme !== undefined) words.push('--theme', theme)
  const { stdout, stderr } = await run(process.execPath, [join(import.meta.dirname, 'run.ts'), ...words], {
    timeout,
  }).catch((error: unknown) => error as { stdout: string; stderr: string })
  const [, seed] = /^seed (\d+) /m.exec(stdout) ?? []
  if (seed === undefined && !/^\d+ seeds, 0 failed/m.test(stdout)) throw new Error(stdout + stderr)
  return seed === undefined ? null : Number(seed)
}

describe('the simulation finds a daemon in which', () => {
  test.each(mutations)('$name', { timeout: 2 * timeout }, async (mutation) => {
    const { name } = mutation
    const last = foundBy[name]
    const again = last === undefined ? null : await firstFailure(mutation, { first: last, count: 1 })
    const seed = again ?? (await firstFailure(mutation, { first: 1, count: seedsMax }))
    expect(seed).not.toBeNull()
    foundBy[name] = seed!
  })
})

afterAll(() => {
  const inOrder = mutations.flatMap(({ name }) => (name in foundBy ? [[name, foundBy[name]] as const] : []))
  writeFileSync(foundByPath, `${JSON.stringify(Object.fromEntries(inOrder), null, 2)}\n`)
})
