import { execFileSync } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'

/** False where this user may not mount. */
function mounted(...argv: string[]): boolean {
  try {
    execFileSync('mount', argv, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const makeDirectory = (path: string) => realDisk.makeDirectory(path)

describe('a directory that cannot be created is refused with its own code', () => {
  test('below /proc, which refuses every new directory, within a second', async () => {
    const startedMs = performance.now()
    await expect(makeDirectory('/proc/gateway/spool/a')).rejects.toMatchObject({ code: 'SPOOL_PATH_MISSING' })
    await expect(makeDirectory('/proc/self/gateway')).rejects.toMatchObject({ code: 'SPOOL_PATH_MISSING' })
    expect(performance.now() - startedMs).toBeLessThan(1000)
  })

  test('where a file is in the place of the directory, or of one above it', async () => {
    const file = join(await newFolder(), 'file')
    await writeFile(file, '')
    for (const path of [file, join(file, 'spool'), '/dev/null/spool'])
      await expect(makeDirectory(path)).rejects.toMatchObject({
        code: 'SPOOL_NOT_DIRECTORY',
        what: `Cannot create the directory ${path}.`,
      })
  })

  test('where the name is too long, or a link leads to itself', async () => {
    const folder = await newFolder()
    await symlink(join(folder, 'loop'), join(folder, 'loop'))
    for (const path of [join(folder, 'x'.repeat(300)), join(folder, 'loop'), join(folder, 'loop', 'spool')])
      await expect(makeDirectory(path)).rejects.toMatchObject({ code: 'SPOOL_PATH_INVALID' })
  })

  test('on a read-only file system, also where the directory exists', async ({ skip }) => {
    const folder = await newFolder()
    await mkdir(join(folder, 'store'))
    const [from, to] = [folder, join(await newFolder(), 'mount')]
    await mkdir(to)
    if (!mounted('--bind', from, to)) skip('nothing may be mounted here')
    onTestFinished(() => void execFileSync('umount', [to]))
    execFileSync('mount', ['-o', 'remount,ro,bind', to])
    await expect(makeDirectory(join(to, 'spool'))).rejects.toMatchObject({ code: 'SPOOL_READ_ONLY' })
    await makeDirectory(join(to, 'store'))
    await expect(openLevelStore(join(to, 'store'))).rejects.toMatchObject({ code: 'SPOOL_READ_ONLY' })
  })

  test('where the file system has no space', async ({ skip }) => {
    const path = await newFolder()
    if (!mounted('-t', 'tmpfs', '-o', 'size=64k,nr_inodes=2', 'tmpfs', path))
      skip('nothing may be mounted here')
    onTestFinished(() => void execFileSync('umount', [path]))
    await makeDirectory(join(path, 'a'))
    await expect(makeDirectory(join(path, 'b'))).rejects.toMatchObject({ code: 'SPOOL_DISK_FULL' })
  })

  test('where the user may not write', async ({ skip }) => {
    if (process.getuid?.() === 0) skip('permissions do not bind root')
    await expect(makeDirectory('/root/spool')).rejects.toMatchObject({ code: 'SPOOL_PERMISSION' })
  })
})

test('missing directories above are created', async () => {
  const path = join(await newFolder(), 'a', 'b', 'c')
  await makeDirectory(path)
  await makeDirectory(path)
  expect(await realDisk.usedBytes(path)).toBe(0)
})

test('the used bytes are those of the files of the directory alone', async () => {
  const path = await newFolder()
  await mkdir(join(path, 'below'))
  await writeFile(join(path, 'a'), 'x'.repeat(10))
  await writeFile(join(path, 'below', 'b'), 'x'.repeat(100))
  expect(await realDisk.usedBytes(path)).toBe(10)
  expect(await realDisk.usedBytes(join(path, 'missing'))).toBe(0)
})
