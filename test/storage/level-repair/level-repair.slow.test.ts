// The repair of a database that kill -9 left and that was damaged then: LevelDB opens it again, with everything
// that was not hit.

import { execFileSync } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readStoreDirectory } from '../../../src/storage/level-files/store-directory.ts'
import {
  planFiles,
  readJournal,
  removeJournal,
  removeLeftovers,
  repairFiles,
  type FilePlan,
  type NewEntry,
} from '../../../src/storage/level-repair/level-repair.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { checkFiles } from '../../../src/storage/store-check/check-files.ts'
import { newFolder } from '../../support/folders.ts'
import { contentAfter, contentOf, writesOf, type Contents } from '../../support/killed-store.ts'
import { killedStore } from '../../support/killed-store-copies.ts'
import { createRandom } from '../../support/random.ts'

/** Few keys, written again and again: the newest versions are at many levels. */
const overwritten: Contents = { seed: 5, writes: 700, operationsMax: 12, valueBytesMax: 2500, keys: 900 }
const few: Contents = { seed: 8, writes: 420, operationsMax: 12, valueBytesMax: 1500, keys: 400 }
const spread: Contents = { seed: 6, writes: 500, operationsMax: 12, valueBytesMax: 2500, keys: 30_000 }
const { signal } = new AbortController()

type Extra = { replaced?: NewEntry[]; added?: NewEntry[]; failAfter?: number }

/** As `spool repair` does it: an interrupted one first. */
async function repair(
  path: string,
  { replaced, added, failAfter = Infinity }: Extra = {},
): Promise<FilePlan> {
  const journalFile = join(path, '../repair-journal.json')
  const interrupted = await readJournal(journalFile, path)
  if (interrupted?.isSwitched === false) await removeLeftovers(path, interrupted)
  const plan = await planFiles(path, { signal })
  let steps = 0
  await repairFiles(plan, {
    journalFile,
    asidePath: join(path, '../damaged/now'),
    startedAt: '2026-01-01T00:00:00.000Z',
    signal,
    ...(replaced === undefined ? {} : { replaced: () => replaced }),
    ...(added === undefined
      ? {}
      : {
          added: (async function* () {
            yield* added
          })(),
        }),
    onStep() {
      steps += 1
      if (steps > failAfter) throw new Error('interrupted')
    },
  })
  await removeJournal(journalFile)
  return plan
}

/** False where it was interrupted behind so many steps. */
async function isRepaired(path: string, failAfter: number): Promise<boolean> {
  try {
    await repair(path, { failAfter })
    return true
  } catch (error) {
    if (String(error).includes('interrupted')) return false
    throw error
  }
}

async function namesEnding(path: string, ending: string): Promise<string[]> {
  return (await readdir(path)).filter((name) => name.endsWith(ending)).toSorted()
}

async function manifestOf(path: string): Promise<string> {
  return (await readdir(path)).find((name) => name.startsWith('MANIFEST-')) ?? ''
}

async function expectWhole(path: string): Promise<void> {
  const report = await checkFiles({
    path,
    logs: true,
    tables: 'all',
    verified: [],
    asidePath: '',
    mend: false,
  })
  expect(report).toMatchObject({ kind: 'ok', damage: [], mendedLogs: [] })
}

/** LevelDB's get stops at the first level that has the key; an iteration does not show a wrong order. */
async function expectNewest(path: string, expected: ReadonlyMap<string, string>): Promise<void> {
  const store = await openLevelStore(path)
  for (const [key, value] of expected)
    expect((await store.get(Buffer.from(key, 'hex')))?.toString('hex') === value, key).toBe(true)
  await store.close()
}

async function flip(file: string, at: number): Promise<void> {
  const bytes = await readFile(file)
  bytes[at] = (bytes[at] ?? 0) ^ 16
  await writeFile(file, bytes)
}

describe('the repair of files', () => {
  test.each([
    ['CURRENT is missing', async (path: string) => rm(join(path, 'CURRENT'))],
    ['CURRENT is damaged', async (path: string) => writeFile(join(path, 'CURRENT'), 'MANIF')],
    ['nothing is damaged', async () => undefined],
  ])('brings everything back where %s', async (_name, damage) => {
    const path = await killedStore(spread)
    await damage(path)
    await repair(path)
    await expectWhole(path)
    expect(await contentOf(path)).toEqual(contentAfter(writesOf(spread)))
  })

  test.each([
    ['is missing', async (path: string) => rm(join(path, await manifestOf(path)))],
    ['is empty', async (path: string) => truncate(join(path, await manifestOf(path)), 0)],
    ['has a flipped bit', async (path: string) => flip(join(path, await manifestOf(path)), 60)],
  ])('brings everything back where the manifest %s', async (_name, damage) => {
    for (const contents of [spread, overwritten]) {
      const path = await killedStore(contents)
      await damage(path)
      const { damage: found } = await repair(path)
      expect(found.map(({ unit }) => unit)).toContain('manifest')
      await expectWhole(path)
      const expected = contentAfter(writesOf(contents))
      await expectNewest(path, expected)
      expect(await contentOf(path)).toEqual(expected)
    }
  })

  test('keeps newer versions above older ones when a table at level 0 is written anew', async () => {
    const path = await killedStore(overwritten)
    const { tables } = await readStoreDirectory(path)
    const atTop = tables.filter(({ level }) => level === 0)
    const [oldest] = atTop.length > 0 ? atTop : tables
    if (oldest === undefined) throw new Error('no table')
    await flip(join(path, oldest.name), oldest.bytes - 4)
    await repair(path)
    await expectWhole(path)
    await expectNewest(path, contentAfter(writesOf(overwritten)))
    expect(await contentOf(path)).toEqual(contentAfter(writesOf(overwritten)))
  })

  test.each([
    ['a directory', (file: string) => mkdir(join(file, 'content'), { recursive: true })],
    ['a pipe', (file: string) => Promise.resolve(execFileSync('mkfifo', [file]))],
    ['a circular link', (file: string) => symlink(file, file)],
  ])('moves %s in the place of CURRENT, manifest, table or log away', async (_name, put) => {
    const manifest = await manifestOf(await killedStore(spread))
    for (const ending of ['CURRENT', manifest, '.ldb', '.log']) {
      const path = await killedStore(spread)
      const name = (await namesEnding(path, ending)).at(ending === '.log' ? -1 : 0) ?? ''
      await rm(join(path, name))
      await put(join(path, name))
      await repair(path)
      expect(await namesEnding(join(path, '../damaged/now'), ending)).toContain(name)
      await expectWhole(path)
      const expected = contentAfter(writesOf(spread))
      const found = await contentOf(path)
      const isLost = (key: string) => found.get(key) !== expected.get(key)
      const lost = [...expected.keys()].filter(isLost).length
      expect(ending.startsWith('.') ? lost < expected.size : lost === 0, ending).toBe(true)
    }
  })

  test.each([
    ['two tables have changed places', 'swap', 'all'],
    ['a table is there under two numbers', 'copy', 'some'],
    ['an older table is in the place of one', 'older', 'some'],
  ] as const)('makes a database that LevelDB opens where %s', async (_name, kind, kept) => {
    const older = kind === 'older' ? await killedStore(few) : null
    for (const [from, to] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const path = await killedStore(spread)
      const { tables } = await readStoreDirectory(older ?? path)
      const [one, other] = [
        join(path, (await readStoreDirectory(path)).tables[from]?.name ?? ''),
        join(older ?? path, (tables[to] ?? tables[0])?.name ?? ''),
      ]
      const [bytes, others] = [await readFile(one), await readFile(other)]
      await writeFile(one, others)
      if (kind === 'swap') await writeFile(other, bytes)
      const plan = await repair(path)
      expect(plan.damage.length).toBeGreaterThan(0)
      await expectWhole(path)
      const found = await contentOf(path)
      const expected = contentAfter(writesOf(spread))
      const lost = [...expected].filter(([key, value]) => found.get(key) !== value).length
      expect(kept === 'all' ? lost === 0 : lost < expected.size).toBe(true)
      expect((await planFiles(path, { signal })).damage).toEqual([])
    }
  })

  test('does not count files with numbers that no database gives', async () => {
    const path = await killedStore(few)
    await writeFile(join(path, '99999999999999999999.log'), '')
    await writeFile(join(path, 'MANIFEST-99999999999999999999'), '')
    await rm(join(path, 'CURRENT'))
    await repair(path)
    expect(await contentOf(path)).toEqual(contentAfter(writesOf(few)))
  })

  test('adds entries, replaces some and deletes others', async () => {
    const path = await killedStore(spread)
    const expected = contentAfter(writesOf(spread))
    const [one = '', two = ''] = expected.keys()
    const added = Array.from({ length: 3000 }, (_, n): NewEntry => [
      Buffer.from(`added ${String(n).padStart(5, '0')}`),
      Buffer.alloc(9000, n),
    ])
    await repair(path, {
      replaced: [
        [Buffer.from(one, 'hex'), null],
        [Buffer.from(two, 'hex'), Buffer.from('new')],
      ],
      added,
    })
    await expectWhole(path)
    const found = await contentOf(path)
    expect(found.has(one)).toBe(false)
    expect(found.get(two)).toBe(Buffer.from('new').toString('hex'))
    expect(found.size).toBe(expected.size - 1 + added.length)
  })

  test('can be interrupted behind any step and repeated, with the same result', async () => {
    const random = createRandom(9)
    const base = await killedStore(few)
    await rm(join(base, await manifestOf(base)))
    const [name = ''] = await namesEnding(base, '.ldb')
    await flip(join(base, name), 3000)
    let isDone = false
    let expected: Map<string, string> | null = null
    for (let failAfter = 0; !isDone; failAfter += 1) {
      const path = join(await newFolder(), 'store')
      await cp(base, path, { recursive: true })
      isDone = await isRepaired(path, failAfter)
      if (!isDone) {
        if (random.chance(0.5)) await isRepaired(path, random.below(4))
        const interrupted = await readJournal(join(path, '../repair-journal.json'), path)
        if (interrupted?.isSwitched !== true) await repair(path)
      }
      await expectWhole(path)
      const found = await contentOf(path)
      expected ??= found
      expect(found.size).toBeGreaterThan(100)
      expect(found).toEqual(expected)
    }
  })
})
