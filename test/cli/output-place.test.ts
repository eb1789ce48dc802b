import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { openSpoolWorld } from '../support/open-spool.ts'

describe('a command that writes where a person says', () => {
  test('names the directory that does not exist, and creates none above it', async () => {
    const folder = await newFolder()
    const { path: spool, spool: opened } = await openSpoolWorld()
    await opened.close()
    const missing = join(folder, 'not-mounted')
    const to = join(missing, 'x')
    for (const argv of [
      ['support-bundle', '--config', join(folder, 'none.yaml'), '--to', to],
      ['dead-letters', 'export', '--path', spool, '--to', to],
      ['spool', 'snapshot', '--path', spool, '--to', to],
      ['spool', 'salvage', '--path', spool, '--to', to],
      ['sandbox', '--listen', '127.0.0.1:0', '--accepted', to],
    ]) {
      const { status, stderr } = await runCli(argv)
      expect([argv[1], status, stderr]).toEqual([argv[1], 1, expect.stringMatching(/^OUTPUT_UNWRITABLE\n/)])
      expect(stderr).toContain(`The directory ${missing} does not exist.`)
    }
    expect(await readdir(folder)).toEqual([])
  })

  test('replaces no file', async () => {
    const folder = await newFolder()
    const to = join(folder, 'x')
    await writeFile(to, 'mine')
    const { status, stderr } = await runCli([
      'support-bundle',
      '--config',
      join(folder, 'none.yaml'),
      '--to',
      to,
    ])
    expect([status, stderr]).toEqual([1, expect.stringContaining('It exists. Nothing is replaced.')])
    await mkdir(join(folder, 'd'))
    expect((await runCli(['spool', 'salvage', '--path', to, '--to', join(folder, 'd')])).status).toBe(1)
  })
})
