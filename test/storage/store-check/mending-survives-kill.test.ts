// The mending of a log that is killed behind each of its file operations: the damaged log or the mended one is there,
// the damaged one is never lost, and the next check gives the same content.

import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { logItems } from '../../../src/storage/level-files/log-reader.ts'
import { checkFiles } from '../../../src/storage/store-check/check-files.ts'
import { newFolder } from '../../support/folders.ts'
import { killAtEachCall } from '../../support/kill-each-call.ts'
import { contentAfter, contentOf, writesOf } from '../../support/killed-store.ts'
import { killedStore } from '../../support/killed-store-copies.ts'

const small = { seed: 11, writes: 40, operationsMax: 4, valueBytesMax: 3000, keys: 50 }

test('at each step the damaged log is there, and the next check mends it', async () => {
  const base = await killedStore(small)
  const name = (await readdir(base)).find((file) => file.endsWith('.log')) ?? ''
  const damaged = await readFile(join(base, name))
  const entries = [...logItems(damaged)].filter(({ kind }) => kind === 'entry')
  const at = (entries[7]?.offset ?? 0) + 40
  damaged[at] = (damaged[at] ?? 0) ^ 4
  await writeFile(join(base, name), damaged)
  const expected = contentAfter(writesOf(small).filter((_write, index) => index !== 7))
  const kills = await killAtEachCall(
    'check-program.ts',
    async () => {
      const path = join(await newFolder(), 'store')
      await cp(base, path, { recursive: true })
      return [path]
    },
    async ([path = ''], call) => {
      const label = `killed after call ${call}`
      const aside = join(path, '../damaged/now', name)
      const kept = await Promise.all([readFile(join(path, name)), readFile(aside).catch(() => null)])
      expect(
        kept.some((bytes) => bytes?.equals(damaged)),
        label,
      ).toBe(true)
      const asidePath = join(path, '../damaged/later')
      await checkFiles({ path, logs: true, tables: 'none', verified: [], asidePath, mend: true })
      expect(await contentOf(path), label).toEqual(expected)
    },
  )
  expect(kills).toBeGreaterThan(3)
}, 240_000)
