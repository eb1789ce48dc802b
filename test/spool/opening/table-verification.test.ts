import { rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { verifyTables } from '../../../src/spool/opening/table-verification.ts'
import { liveTablesAt, readTablesInThread, type ReadTables } from '../../../src/storage/storage.ts'
import { killedSpool, tableOf, zeroPage } from '../../support/damaged-spool.ts'
import { eventually } from '../../support/eventually.ts'
import { openingWorld } from '../../support/opening-world.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** The background check over a store with one table, which was written `ageMs` ago. */
async function verificationWorld({ ageMs, bytesPerS = 1024 ** 3 }: { ageMs: number; bytesPerS?: number }) {
  const world = await openingWorld()
  await rm(world.path, { recursive: true })
  await killedSpool(world.path, 500)
  const opening = world.start()
  const table = await tableOf(world.path)
  const writtenAt = new Date(world.clock.now() - ageMs)
  await utimes(table, writtenAt, writtenAt)
  const rounds: (readonly number[])[] = []
  let ended = 0
  const readTables: ReadTables = async (round, options) => {
    rounds.push(round.tables)
    await readTablesInThread(round, options)
    ended += 1
  }
  const stop = new AbortController()
  const done = verifyTables(
    { ...world, emit: (event) => void world.events.push(event), readTables, opening, random: () => 0 },
    { path: world.path, verifyBytesPerS: bytesPerS },
    stop.signal,
  )
  return {
    ...world,
    opening,
    table,
    rounds,
    async passRound(ms: number) {
      const before = ended
      await world.clock.advance(ms)
      await eventually(() => ended > before && world.clock.pending() > 0)
    },
    async stop() {
      stop.abort()
      await done
    },
  }
}

describe('the background check', () => {
  test('reads all tables at the first start, and notes them as whole for the next one', async () => {
    const world = await verificationWorld({ ageMs: 0 })
    await world.passRound(minuteMs)
    expect(world.opening.checkState()).toMatchObject({
      verified: await liveTablesAt(join(world.path, 'store')),
      checkAll: false,
    })
    expect(world.events).toEqual([])
    await world.stop()
  })

  test('reads a new table once, a minute after it was written, and all tables once a day', async () => {
    const world = await verificationWorld({ ageMs: 0 })
    await world.opening.note({ passedAt: world.clock.now() })
    await world.passRound(2 * minuteMs)
    await world.clock.advance(10 * minuteMs)
    expect(world.rounds).toHaveLength(1)
    await world.passRound(dayMs)
    expect(world.rounds).toHaveLength(2)
    await world.stop()
  })

  test('reports damage once, with the command, and lets the next start check everything', async () => {
    const world = await verificationWorld({ ageMs: dayMs })
    await zeroPage(world.table, 1)
    await world.passRound(minuteMs)
    await world.passRound(dayMs)
    expect(world.events).toEqual([
      {
        kind: 'table_damaged',
        file: world.table.split('/').at(-1),
        what: expect.stringContaining('damaged place'),
        command: `telemetry-gateway spool repair --path ${world.path}`,
      },
    ])
    expect(world.opening.checkState()).toMatchObject({ verified: [], checkAll: true })
    await world.start().prepare(new AbortController().signal)
    expect(world.requests[0]?.tables).toBe('all')
    await world.stop()
  })

  test('leaves out a table that is gone', async () => {
    const world = await verificationWorld({ ageMs: dayMs })
    const read: unknown[] = []
    await readTablesInThread(
      { path: join(world.path, 'store'), tables: [99_999], bytesPerS: 1 },
      { onTable: (table) => void read.push(table), signal: new AbortController().signal },
    )
    expect(read).toEqual([])
    await world.stop()
  })

  test('ends at once with the session', async () => {
    const world = await verificationWorld({ ageMs: dayMs, bytesPerS: 1 })
    await world.clock.advance(minuteMs)
    await eventually(() => world.rounds.length === 1)
    const startedMs = performance.now()
    await world.stop()
    expect(performance.now() - startedMs).toBeLessThan(2000)
  })

  test('does nothing at a rate of 0', async () => {
    const world = await verificationWorld({ ageMs: dayMs, bytesPerS: 0 })
    await world.clock.advance(dayMs)
    expect(world.rounds).toEqual([])
    await world.stop()
  })
})
