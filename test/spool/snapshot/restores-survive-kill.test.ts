// A restore that is killed behind each of its file operations: the spool that was there or the snapshot is whole at
// any moment, nothing empty takes their place, and the command can be repeated.

import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRestingSpool, restoreSpool } from '../../../src/spool/spool.ts'
import { newFolder } from '../../support/folders.ts'
import { killAtEachCall } from '../../support/kill-each-call.ts'
import { addDeadLetters, namesIn, openSpoolWorld, sealAll } from '../../support/open-spool.ts'

const never = new AbortController().signal

async function spoolOf(names: readonly string[]): Promise<string> {
  const world = await openSpoolWorld()
  for (const name of names) await world.publish(name)
  await addDeadLetters(world.spool, ['dead'])
  await world.spool.close()
  return world.path
}

/** What a start would deliver; the code of the fault where it refuses the spool. */
async function pendingIn(path: string): Promise<string[] | string> {
  try {
    const world = await openSpoolWorld({ path, checks: true })
    const names: string[] = []
    for (const batch of await sealAll(world.spool)) names.push(...(await namesIn(world.spool, batch)))
    await world.spool.close()
    return names
  } catch (error) {
    return (error as { code: string }).code
  }
}

/** The directories below `path` that hold a whole database. */
async function wholeStores(path: string): Promise<number> {
  let whole = 0
  for (const name of await readdir(path)) {
    if (!name.startsWith('store')) continue
    const folder = await newFolder()
    await cp(join(path, name), join(folder, 'store'), { recursive: true })
    try {
      const spool = await openRestingSpool(folder)
      const { lanes } = await spool.check(never)
      await spool.close()
      if (lanes.some(({ open }) => open === 2)) whole += 1
    } catch {
      // A part of a copy.
    }
  }
  return whole
}

test('at each step the old spool or the snapshot is there, and the restore can be repeated', async () => {
  const old = await spoolOf(['old 1', 'old 2'])
  const source = await spoolOf(['new 1', 'new 2'])
  const snapshot = join(await newFolder(), 'snapshot')
  await cp(source, snapshot, { recursive: true })
  const kills = await killAtEachCall(
    'restore-program.ts',
    async () => {
      const path = join(await newFolder(), 'spool')
      await cp(old, path, { recursive: true })
      return [snapshot, path]
    },
    async ([, path = ''], call) => {
      const label = `killed after call ${call}`
      expect(await wholeStores(path), label).toBeGreaterThan(0)
      const started = join(await newFolder(), 'spool')
      await cp(path, started, { recursive: true })
      const found = await pendingIn(started)
      const possible = [['old 1', 'old 2'], ['new 1', 'new 2'], 'SPOOL_DAMAGED']
      expect(possible, `${label}: ${JSON.stringify(found)}`).toContainEqual(found)
      const again = { replace: true, now: () => Date.now(), newId: () => 'again', signal: never }
      await restoreSpool(snapshot, path, again)
      expect(await pendingIn(path), label).toEqual(['new 1', 'new 2'])
      expect(
        (await readdir(path)).filter((name) => name.startsWith('store.replaced')).length,
        label,
      ).toBeGreaterThan(0)
    },
  )
  expect(kills).toBeGreaterThan(8)
}, 240_000)
