import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { lockStore, openLevelStore } from '../../../src/storage/storage.ts'
import { damagedBlock, openingWorld, type OpeningWorld } from '../../support/opening-world.ts'
import { useElsewhere } from '../../support/spool-process.ts'

const never = new AbortController().signal
const minuteMs = 60_000

async function exists(path: string): Promise<boolean> {
  return readFile(path).then(
    () => true,
    () => false,
  )
}

/** Whole files of a store. */
async function createStore(world: OpeningWorld): Promise<void> {
  await (await openLevelStore(join(world.path, 'store'))).close()
}

/** A store as a daemon leaves it that stopped in order. */
async function withStore(world: OpeningWorld): Promise<void> {
  const opening = world.start()
  await opening.prepare(never)
  await createStore(world)
  await opening.closed()
}

/** A daemon opens the store and is killed. */
async function killed(world: OpeningWorld): Promise<void> {
  await world.start().prepare(never)
  world.requests.length = 0
}

/** A world whose daemon was killed; `note`: what the service manager has noted of it. */
async function killedWorld(note?: string): Promise<OpeningWorld> {
  const world = await openingWorld()
  await withStore(world)
  await killed(world)
  if (note !== undefined) await writeFile(join(world.path, 'last-exit'), note)
  return world
}

describe('a start after a clean end', () => {
  test('checks nothing, in a new directory and in one with a store', async () => {
    const world = await openingWorld()
    const first = world.start()
    await first.prepare(never)
    expect(await exists(join(world.path, 'in-use'))).toBe(true)
    await createStore(world)
    await first.closed()
    expect(await exists(join(world.path, 'in-use'))).toBe(false)
    const second = world.start()
    await second.prepare(never)
    expect(second.previousEnd()).toBe('clean')
    expect(world.requests).toEqual([])
  })
})

test('the first start after another version had the store checks the logs and all tables', async () => {
  const world = await openingWorld()
  await createStore(world)
  const opening = world.start()
  await opening.prepare(never)
  expect(opening.previousEnd()).toBe('unclean')
  expect(world.requests).toMatchObject([{ logs: true, tables: 'unverified', verified: [] }])
})

describe('a start after an unclean end', () => {
  test('checks the logs, and the tables that were not read since they were written', async () => {
    const world = await killedWorld()
    world.report.verified = [{ number: 5, bytes: 900, mtimeMs: 7 }]
    const opening = world.start()
    await opening.prepare(never)
    expect(opening.previousEnd()).toBe('unclean')
    expect(world.requests).toMatchObject([
      { path: join(world.path, 'store'), logs: true, tables: 'unverified', verified: [], mend: true },
    ])
    await world.clock.advance(11 * minuteMs)
    await world.start().prepare(never)
    expect(world.requests[1]).toMatchObject({
      tables: 'unverified',
      verified: [{ number: 5, bytes: 900, mtimeMs: 7 }],
    })
  })

  test('checks all tables if the one before it was less than ten minutes ago', async () => {
    const world = await killedWorld()
    await world.start().prepare(never)
    await world.clock.advance(9 * minuteMs)
    const opening = world.start()
    await opening.prepare(never)
    expect(opening.previousEnd()).toBe('aborted')
    expect(world.requests.map(({ tables }) => tables)).toEqual(['unverified', 'all'])
  })

  test.each([
    ['killed ABRT\n', ['all', 'unverified']],
    ['dumped BUS\n', ['all', 'unverified']],
    ['dumped SEGV\n', ['all', 'unverified']],
    ['exited 0', ['unverified', 'unverified']],
    ['killed KILL', ['unverified', 'unverified']],
    ['', ['unverified', 'unverified']],
  ])('checks the tables at two starts by what the service manager noted: %j, %j', async (note, tables) => {
    const world = await killedWorld(note)
    await world.start().prepare(never)
    await world.clock.advance(11 * minuteMs)
    await world.start().prepare(never)
    expect(world.requests.map((request) => request.tables)).toEqual(tables)
  })

  test('checks all tables again until a check that was killed has ended', async () => {
    const world = await killedWorld('killed ABRT')
    const stop = new AbortController()
    const opening = world.start()
    world.report = new Proxy(world.report, {
      get() {
        stop.abort()
        throw new Error('killed during the check')
      },
    })
    await expect(opening.prepare(stop.signal)).rejects.toThrow()
    const after = await openingWorldLike(world)
    await world.clock.advance(11 * minuteMs)
    await after.start().prepare(never)
    expect(after.requests[0]?.tables).toBe('all')
  })
})

/** The same directory with a check that reports no damage. */
async function openingWorldLike(world: OpeningWorld): Promise<OpeningWorld> {
  const other = await openingWorld()
  await rm(other.path, { recursive: true })
  return Object.assign(other, {
    path: world.path,
    start: () => Object.assign(world, { report: other.report, requests: other.requests }).start(),
  })
}

describe('a spool that another process uses', () => {
  test('is refused, and nothing of it is checked or changed', async () => {
    const world = await killedWorld('killed ABRT')
    const files = await readdir(world.path)
    await useElsewhere(world.path)
    await expect(world.start().prepare(never)).rejects.toMatchObject({ code: 'SPOOL_LOCKED' })
    expect(world.requests).toEqual([])
    expect(await readdir(world.path)).toEqual(files)
  })

  test('leaves no directory of its lock behind', async () => {
    const world = await openingWorld()
    await withStore(world)
    await mkdir(join(world.path, 'lock-killed'))
    const lock = await lockStore(join(world.path, 'store'), world.path)
    await lock.release()
    expect((await readdir(world.path)).filter((name) => name.startsWith('lock'))).toEqual([])
  })
})

describe('damage that the check finds', () => {
  test('refuses the start with files, offsets and the command, and the next start checks all tables', async () => {
    const world = await killedWorld()
    const damage = [1, 2, 3, 4, 5].map((n) => ({ ...damagedBlock, offset: n * 4096 }))
    world.report = { ...world.report, kind: 'damaged', damage }
    await expect(world.start().prepare(never)).rejects.toMatchObject({
      code: 'SPOOL_DAMAGED',
      why: expect.stringMatching(
        /^5 damaged places: 000005.ldb, block at byte 4096: its checksum is wrong; .*; and 2 more\./,
      ),
      act: expect.stringContaining(`telemetry-gateway spool repair --path ${world.path}`),
    })
    await world.clock.advance(11 * minuteMs)
    await expect(world.start().prepare(never)).rejects.toMatchObject({ code: 'SPOOL_DAMAGED' })
    expect(world.requests.map(({ tables }) => tables)).toEqual(['unverified', 'all'])
    expect(await readdir(join(world.path, 'store'))).toContain('CURRENT')
  })

  test('is set aside with the mark, and a new store can be begun, if the config says so', async () => {
    const world = await killedWorld()
    await writeFile(join(world.path, 'mark'), 'mark')
    world.report = { ...world.report, kind: 'damaged', damage: [damagedBlock] }
    const opening = world.start({ onDamage: 'set_aside' })
    await opening.prepare(never)
    const names = await readdir(world.path)
    const aside = names.find((name) => name.startsWith('store.damaged-')) ?? ''
    expect(aside).toMatch(/^store\.damaged-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}$/)
    expect(await readdir(join(world.path, aside))).toEqual(expect.arrayContaining(['CURRENT', 'mark']))
    expect(names).not.toContain('store')
    expect(names).not.toContain('mark')
    await createStore(world)
    await opening.lookForAside()
    expect(world.events.map(({ kind }) => kind)).toEqual(['spool_set_aside'])
    const state = { code: 'SPOOL_SET_ASIDE', path: join(world.path, aside), spoolPath: world.path, stores: 1 }
    expect([...opening.states()]).toEqual([state])
    const later = world.start()
    await later.lookForAside()
    expect([...later.states()]).toEqual([state])
    await rm(join(world.path, aside), { recursive: true })
    await later.lookForAside()
    expect([...later.states()]).toEqual([])
  })

  test('of a log alone is reported with the copy, and the store is opened', async () => {
    const world = await killedWorld()
    const log = { file: '000004.log', aside: '/aside/000004.log', lostBytes: 900, lostOperations: 40 }
    world.report = { ...world.report, mendedLogs: [{ ...log, keptBatches: 3, damage: [damagedBlock] }] }
    await world.start().prepare(never)
    expect(world.events).toContainEqual({ kind: 'log_mended', ...log })
  })
})

describe('a directory without CURRENT', () => {
  test('with the mark is damaged, also where the store is missing', async () => {
    const world = await openingWorld()
    await writeFile(join(world.path, 'mark'), 'mark')
    world.report = { ...world.report, kind: 'empty' }
    await expect(world.start().prepare(never)).rejects.toMatchObject({
      code: 'SPOOL_DAMAGED',
      why: expect.stringContaining('the mark beside it shows that data was stored'),
    })
  })
})
