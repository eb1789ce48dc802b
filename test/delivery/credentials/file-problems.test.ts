import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sharedFileProblem } from '../../../src/delivery/credentials/file-problems.ts'
import { newFolder } from '../../support/folders.ts'

const key = 'aws_access_key_id = AKIA\n'
const secret = 'aws_secret_access_key = hush\n'

describe('the shared credentials file', () => {
  test.each([
    ['that is whole', `# keys\n[default]\n${key}${secret}`, null],
    ['of a role', '[default]\nrole_arn = arn:aws:iam::1:role/x\n', null],
    ['without the profile', `[other]\n${key}${secret}`, 'PATH has no profile "default"'],
    ['without the secret', `[default]\n${key}`, 'the profile "default" in PATH has no aws_secret_access_key'],
    [
      'with an empty secret',
      `[default]\n${key}aws_secret_access_key =\n`,
      'PATH has at line 3 neither [PROFILE] nor KEY = VALUE of a profile',
    ],
    [
      'with keys before a profile',
      `${key}[default]\n${secret}`,
      'PATH has at line 1 neither [PROFILE] nor KEY = VALUE of a profile',
    ],
    [
      'with a broken line',
      `[default]\n${key}hush\n`,
      'PATH has at line 3 neither [PROFILE] nor KEY = VALUE of a profile',
    ],
  ])('%s', async (_, text, expected) => {
    const path = join(await newFolder(), 'credentials')
    await writeFile(path, text)
    await chmod(path, 0o600)
    const problem = await sharedFileProblem({ AWS_SHARED_CREDENTIALS_FILE: path }, null)
    expect(problem).toBe(expected?.replace('PATH', path) ?? null)
    expect(problem ?? '').not.toContain('hush')
  })

  test('that is missing leaves the search to the chain', async () => {
    expect(await sharedFileProblem({ AWS_SHARED_CREDENTIALS_FILE: '/nowhere/credentials' }, 'x')).toBeNull()
  })
})
