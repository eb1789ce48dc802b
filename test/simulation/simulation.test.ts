import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { mutations } from './mutations.ts'

/** The output of `npm run simulate`; without a failure that is one line. */
async function simulate(...words: string[]): Promise<string> {
  const run = promisify(execFile)
  const result = await run(process.execPath, [join(import.meta.dirname, 'run.ts'), ...words]).catch(
    (error: unknown) => error as { stdout: string; stderr: string },
  )
  return result.stdout + result.stderr
}

/** Each run starts a process, which loads the daemon once. */
const usualMs = 480_000

describe('a gateway under faults that a seed draws', () => {
  test(
    'keeps every promise in the seeds that failed before',
    async () => {
      expect(await simulate('--regressions')).toMatch(/^\d+ seeds, 0 failed/)
    },
    usualMs,
  )

  test(
    'keeps every promise in the first seeds',
    async () => {
      expect(await simulate('--seeds', '200')).toMatch(/^200 seeds, 0 failed/)
    },
    usualMs,
  )

  test(
    'does the same again under the same seed, whichever seeds ran before',
    async () => {
      const hashOf = (output: string) => /^seed 3 (\w{16})/m.exec(output)?.[1]
      const alone = hashOf(await simulate('--seed', '3', '--seeds', '1'))
      expect(alone).toBeDefined()
      expect(hashOf(await simulate('--seed', '1', '--seeds', '3', '--each'))).toBe(alone)
    },
    usualMs,
  )

  test(
    'is found at fault where it does not wait for the disk',
    async () => {
      const { name } = mutations.find((one) => one.name === 'writes are not synced')!
      expect(await simulate('--seeds', '20', '--mutation', name)).toMatch(/^20 seeds, [1-9]\d* failed/m)
    },
    usualMs,
  )
})

describe('a mistake in the daemon, for `npm run test:mutations`,', () => {
  test('has its place in the source', () => {
    const lost = mutations.filter(({ file, find }) => {
      const source = readFileSync(join(import.meta.dirname, '../../src', file), 'utf8')
      return source.split(find).length !== 2
    })
    expect(lost.map(({ name }) => name)).toEqual([])
  })

  test('has a name of its own', () => {
    expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length)
  })
})
