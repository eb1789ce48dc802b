// Damaged records of the ledger never end the process: LevelDB does not open what the check refuses.

import { execFileSync } from 'node:child_process'
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { openOfflineLedger } from '../../src/ledger/ledger.ts'
import { openRecords } from '../../src/ledger/ledger-records.ts'
import { recordsPath, type PreviousEnd } from '../../src/ledger/records-check.ts'
import { createRecordsSupervisor } from '../../src/ledger/records-supervisor.ts'
import { systemClock } from '../../src/std/clock.ts'
import {
  checkInThread,
  openExistingStore,
  openLevelStore,
  type CheckRequest,
  type CheckStore,
} from '../../src/storage/storage.ts'
import { zeroPage } from '../support/damaged-spool.ts'
import { newFolder } from '../support/folders.ts'
import { receiptNumbered } from '../support/ledger-world.ts'

const everything = { gte: Buffer.alloc(0), lt: Buffer.from([0xff]) }

/** Records with one table, of a spool in a new folder. */
async function recordsInTable(): Promise<{ path: string; table: string }> {
  const path = await newFolder()
  await mkdir(recordsPath(path))
  const store = await openLevelStore(recordsPath(path))
  const records = await openRecords(store, { blockReceiptBytesMax: 1000, blockAgeMaxMs: Infinity })
  await records.append(
    Array.from({ length: 200 }, (_, n) => receiptNumbered(n)),
    systemClock.now(),
  )
  await store.compact(everything)
  await records.close()
  const [name] = (await readdir(recordsPath(path))).filter((file) => file.endsWith('.ldb'))
  return { path, table: join(recordsPath(path), name ?? '') }
}

function supervise(path: string, previousEnd: PreviousEnd) {
  const events: GatewayEvent[] = []
  const requests: CheckRequest[] = []
  const checkStore: CheckStore = (request, options) => {
    requests.push(request)
    return checkInThread(request, options)
  }
  const supervisor = createRecordsSupervisor(
    {
      clock: systemClock,
      emit: (event) => void events.push(event),
      openStore: openLevelStore,
      checkStore,
      previousEnd,
    },
    { path, blockReceiptBytesMax: 1000, blockAgeMaxMs: Infinity, reopen: { firstMs: 0, mostMs: 0 } },
  )
  onTestFinished(() => supervisor.close())
  return { supervisor, events, requests, kinds: () => events.map(({ kind }) => kind) }
}

describe('records with a zeroed page', () => {
  test('are set aside after an unclean end, and new ones are created', async () => {
    const { path, table } = await recordsInTable()
    await zeroPage(table, 0)
    const { supervisor, kinds, events } = supervise(path, 'unclean')
    expect(await supervisor.ensure()).toBeNull()
    expect(events[0]).toMatchObject({ kind: 'ledger_set_aside', why: expect.stringContaining('byte 0') })
    expect((await supervisor.ensure())?.totals().records).toBe(0)
    expect(kinds()).toEqual(['ledger_set_aside', 'ledger_opened'])
    expect(await readdir(`${recordsPath(path)}.damaged`)).toContain(table.split('/').at(-1))
  })

  test('are refused by the command for a stopped daemon, and then set aside by the next start', async () => {
    const { path, table } = await recordsInTable()
    await zeroPage(table, 0)
    const opening = openOfflineLedger(
      { openStore: openExistingStore, checkStore: checkInThread, clock: systemClock },
      { path },
    )
    await expect(opening).rejects.toMatchObject({
      code: 'LEDGER_UNUSABLE',
      why: expect.stringContaining('1 damaged place'),
      act: expect.stringContaining('Start the gateway'),
    })
    // Also after a clean end: the command has noted it.
    const { supervisor, kinds } = supervise(path, 'clean')
    await supervisor.ensure()
    expect(kinds()).toEqual(['ledger_set_aside'])
  })
})

describe('records that were open', () => {
  test('are not created anew where they are gone, because the spool may be unmounted', async () => {
    const { path } = await recordsInTable()
    const { supervisor } = supervise(path, 'clean')
    const open = await supervisor.ensure()
    await rename(recordsPath(path), join(path, 'away'))
    await supervisor.lost(open!, new Error('a write failed'))
    expect(await supervisor.ensure()).toBeNull()
    expect([...supervisor.states()]).toMatchObject([{ fault: { code: 'LEDGER_UNUSABLE' } }])
    expect(await readdir(path)).not.toContain('records')
    await rename(join(path, 'away'), recordsPath(path))
    expect((await supervisor.ensure())?.totals().records).toBe(600)
    expect([...supervisor.states()]).toEqual([])
  })
})

describe('whole records', () => {
  test.each([
    ['clean', []],
    ['unclean', ['unverified']],
    ['aborted', ['all']],
  ] as const)('after a %s end are opened, with these tables checked before: %j', async (end, tables) => {
    const { path } = await recordsInTable()
    const { supervisor, requests } = supervise(path, end)
    expect((await supervisor.ensure())?.totals().records).toBe(600)
    expect(requests.map((request) => request.tables)).toEqual(tables)
    expect(requests.every(({ logs, mend }) => !logs && !mend)).toBe(true)
  })
})

test.each(['missing', 'empty'])(
  'records whose CURRENT is %s are set aside, and not replaced in place',
  async (kind) => {
    const { path, table } = await recordsInTable()
    const current = join(recordsPath(path), 'CURRENT')
    await (kind === 'missing' ? rm(current) : writeFile(current, ''))
    const { supervisor, kinds } = supervise(path, 'clean')
    await supervisor.ensure()
    expect((await supervisor.ensure())?.totals().records).toBe(0)
    expect(kinds()).toEqual(['ledger_set_aside', 'ledger_opened'])
    expect(await readdir(`${recordsPath(path)}.damaged`)).toContain(table.split('/').at(-1))
  },
)

describe('other things in the place of the records are set aside, also after a clean end', () => {
  const inPlaceOf = (start: string) => async (path: string, make: (file: string) => unknown) => {
    const names = await readdir(recordsPath(path))
    const file = join(
      recordsPath(path),
      names.find((name) => name.startsWith(start) || name.endsWith(start))!,
    )
    await rm(file)
    await make(file)
  }
  const whole = async (path: string, make: (file: string) => unknown) => {
    await rm(recordsPath(path), { recursive: true })
    await make(recordsPath(path))
  }
  const pipe = (file: string) => execFileSync('mkfifo', [file])
  const loop = (file: string) => symlink(file, file)
  const cases: [name: string, replace: typeof whole, make: (file: string) => unknown][] = [
    ['a pipe as CURRENT', inPlaceOf('CURRENT'), pipe],
    ['a pipe as the manifest', inPlaceOf('MANIFEST'), pipe],
    ['a pipe as a log', inPlaceOf('.log'), pipe],
    ['a pipe as a table', inPlaceOf('.ldb'), pipe],
    ['a directory as CURRENT', inPlaceOf('CURRENT'), (file) => mkdir(file)],
    ['a directory as the manifest', inPlaceOf('MANIFEST'), (file) => mkdir(file)],
    ['a circular link as a table', inPlaceOf('.ldb'), loop],
    ['a file as the records', whole, (file) => writeFile(file, 'x')],
    ['a pipe as the records', whole, pipe],
    ['a circular link as the records', whole, loop],
  ]

  test.each(cases)('%s', async (_name, replace, make) => {
    const { path } = await recordsInTable()
    await replace(path, make)
    const { supervisor, kinds } = supervise(path, 'clean')
    while ((await supervisor.ensure()) === null) expect(kinds().length).toBeLessThan(3)
    expect(kinds()).toEqual(['ledger_set_aside', 'ledger_opened'])
  })
})
