import { chmod, lstat, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makePrivate, realDisk } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'

const mode = async (path: string) => ((await lstat(path)).mode & 0o777).toString(8)

describe('the files of the spool', () => {
  test('that other users can open are closed to them; links and what is private stay', async () => {
    const folder = await newFolder()
    const path = join(folder, 'spool')
    const outside = join(folder, 'outside')
    await writeFile(outside, '')
    await chmod(outside, 0o644)
    await mkdir(join(path, 'store'), { recursive: true })
    await writeFile(join(path, 'store/000001.log'), '')
    await symlink(outside, join(path, 'store/link'))
    await writeFile(join(path, 'mark'), '', { mode: 0o600 })
    for (const [name, open] of [
      ['', 0o755],
      ['store', 0o775],
      ['store/000001.log', 0o664],
    ] as const)
      await chmod(join(path, name), open)
    expect(await makePrivate(path)).toEqual({ changed: 3, failed: 0 })
    expect(
      await Promise.all(['', 'store', 'store/000001.log'].map((name) => mode(join(path, name)))),
    ).toEqual(['700', '700', '600'])
    expect(await mode(outside)).toBe('644')
    expect(await makePrivate(path)).toEqual({ changed: 0, failed: 0 })
    expect(await makePrivate(join(folder, 'none'))).toEqual({ changed: 0, failed: 0 })
  })

  test('are in a directory that only their user can open', async () => {
    const path = join(await newFolder(), 'a/spool')
    await realDisk.makeDirectory(path)
    expect(await mode(path)).toBe('700')
  })
})
