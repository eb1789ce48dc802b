// The test of the model: each mistake of mutations.ts must break a rule, and the right one.

import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { mutations } from './mutations.ts'

const run = promisify(execFile)
const cwd = resolve(import.meta.dirname, '../..')

function runMutated(
  mistake: string,
  target: string,
  { sequences = 5000, firstSeed = 1 } = {},
): Promise<unknown> {
  const histories = ['--seed', `${firstSeed}`, '--sequences', `${sequences}`]
  const options = [...histories, '--mutation', mistake, '--target', target]
  return run(process.execPath, ['test/model/run.ts', ...options], { cwd })
}

describe('the model notices a spool that', () => {
  test.each(mutations)(
    '$mistake',
    { timeout: 240_000 },
    async ({ mistake, file, name, noticed, firstSeed }) => {
      const mutated = runMutated(mistake, `${file}#${name}`, { firstSeed })
      await expect(mutated).rejects.toMatchObject({ stderr: expect.stringMatching(noticed) })
    },
  )
})

describe('a mutation', () => {
  const [{ mistake }] = mutations as [(typeof mutations)[number]]

  test('of a function that does not exist ends the run with its name', async () => {
    const mutated = runMutated(mistake, 'chunk-log/committer.ts#createNothing')
    await expect(mutated).rejects.toMatchObject({
      stderr: expect.stringContaining('createNothing is not defined'),
    })
  })

  test('of a function that the model does not call ends the run', async () => {
    const mutated = runMutated(mistake, 'batches/damage-quarantine.ts#setDamageAside', { sequences: 1 })
    await expect(mutated).rejects.toMatchObject({ stderr: expect.stringContaining('was never called') })
  })
})
