import { describe, expect, test } from 'vitest'
import { explainDirectory, isDiskFull } from '../../src/storage/storage.ts'

const failed = (code: string) => Object.assign(new Error(`${code}: mkdir`), { code })
/** As classic-level reports a failed opening. */
const levelFailed = (text: string) =>
  new Error('Database failed to open', { cause: Object.assign(new Error(text), { code: 'LEVEL_IO_ERROR' }) })

describe('the code of a directory that cannot be used', () => {
  test.each([
    ['EROFS', 'SPOOL_READ_ONLY'],
    ['EACCES', 'SPOOL_PERMISSION'],
    ['EPERM', 'SPOOL_PERMISSION'],
    ['ENOENT', 'SPOOL_PATH_MISSING'],
    ['ENOTDIR', 'SPOOL_NOT_DIRECTORY'],
    ['ENAMETOOLONG', 'SPOOL_PATH_INVALID'],
    ['ENOSPC', 'SPOOL_DISK_FULL'],
    ['EDQUOT', 'SPOOL_DISK_FULL'],
    ['EIO', 'SPOOL_UNWRITABLE'],
  ])('follows from the system call: %s', (code, expected) => {
    const fault = explainDirectory('Cannot create the directory /s.', failed(code))
    expect(fault).toMatchObject({ code: expected, why: expect.stringContaining(code) })
  })

  test.each([
    ['IO error: /s/LOCK: Read-only file system', 'SPOOL_READ_ONLY'],
    ['IO error: /s/LOCK: Permission denied', 'SPOOL_PERMISSION'],
    ['IO error: /s/000007.log: No space left on device', 'SPOOL_DISK_FULL'],
    ['IO error: /s/LOCK: Not a directory', 'SPOOL_NOT_DIRECTORY'],
    ['IO error: /s/000007.log: Input/output error', 'SPOOL_UNWRITABLE'],
  ])('follows from the text of LevelDB: %s', (text, expected) => {
    expect(explainDirectory('Cannot open.', levelFailed(text)).code).toBe(expected)
  })

  test('of a full disk is recognized at both', () => {
    expect(isDiskFull(failed('ENOSPC'))).toBe(true)
    expect(isDiskFull(levelFailed('IO error: /s/1.log: No space left on device'))).toBe(true)
    expect(isDiskFull(failed('EIO'))).toBe(false)
  })
})
