import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openSpoolOrWait } from '../../src/app/refused-spool.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { Spool } from '../../src/spool/spool.ts'
import { GatewayError, type ErrorCode } from '../../src/std/gateway-error.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { newFolder } from '../support/folders.ts'

const fault = (code: ErrorCode, why = 'Bad.') => new GatewayError(code, { what: 'No.', why, act: 'Mend it.' })
const opened = { close: async () => undefined } as Spool

/** `attempt` is called with the number of each attempt to open the spool. */
async function waitWorld(attempt: (n: number, path: string) => Promise<Spool>, isStart = true) {
  const path = await newFolder()
  const store = join(path, 'store')
  await mkdir(store)
  await writeFile(join(store, 'CURRENT'), 'MANIFEST-000002\n')
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const stop = new AbortController()
  let attempts = 0
  const open = () => attempt((attempts += 1), store)
  const deps = {
    clock,
    emit: (event: GatewayEvent) => void events.push(event),
    open,
    refused: () => undefined,
  }
  const spool = openSpoolOrWait(deps, { path, isStart }, stop.signal)
  return {
    store,
    clock,
    events,
    stop,
    spool,
    attempts: () => attempts,
    waits: () => eventually(() => clock.pending() > 0),
  }
}

describe('a damaged spool', () => {
  test('is tried again when a file of the store changes, and not before', async () => {
    const world = await waitWorld(async (n) => {
      if (n > 1) return opened
      throw fault('SPOOL_DAMAGED')
    })
    await world.waits()
    await world.clock.advance(60_000)
    expect(world.attempts()).toBe(1)
    await writeFile(join(world.store, 'CURRENT'), 'MANIFEST-000007\n')
    await world.clock.advance(1000)
    expect(await world.spool).toBe(opened)
  })

  test('is tried again at once when a file changed while the attempt failed', async () => {
    const world = await waitWorld(async (n, store) => {
      if (n > 1) return opened
      await rm(join(store, 'CURRENT'))
      throw fault('SPOOL_DAMAGED')
    })
    expect(await world.spool).toBe(opened)
  })

  test('is not tried without end where the attempts themselves change files', async () => {
    const world = await waitWorld(async (n, store) => {
      await writeFile(join(store, `${n}.log`), 'x')
      throw fault('SPOOL_DAMAGED')
    })
    await world.waits()
    expect(world.attempts()).toBe(3)
    await world.clock.advance(60_000)
    expect(world.attempts()).toBe(3)
    expect(world.events).toHaveLength(1)
    world.stop.abort()
    expect(await world.spool).toBeNull()
  })

  test('that a repair has locked stays refused until the repair is done', async () => {
    const faults = ['SPOOL_DAMAGED', 'SPOOL_LOCKED', 'SPOOL_LOCKED'] as const
    const world = await waitWorld(async (n) => {
      const code = faults[n - 1]
      if (code === undefined) return opened
      throw fault(code)
    })
    await world.waits()
    await rm(join(world.store, 'CURRENT'))
    for (let second = 0; second < 3; second += 1) {
      await world.waits()
      await world.clock.advance(1000)
    }
    expect(await world.spool).toBe(opened)
    expect(world.events.map(({ kind }) => kind)).toEqual(['spool_refused'])
  })
})

test('a damaged spool that the disk could not read is opened again when it can, though no file has changed', async () => {
  const tries: number[] = []
  let isReadable = false
  const world = await waitWorld(async () => {
    tries.push(world.clock.monotonic() / 60_000)
    if (isReadable) return opened
    throw fault('SPOOL_DAMAGED', 'CURRENT: EIO.')
  })
  const triesReach = (count: number) =>
    eventually(async () => {
      await world.clock.advance(60_000)
      return tries.length === count
    })
  await triesReach(4)
  isReadable = true
  await triesReach(5)
  expect(await world.spool).toBe(opened)
  // Two minutes, then doubling. Between two reads of the directory the clock moves by one.
  const minutes = tries.slice(1).map((at, n) => at - (tries[n] ?? 0))
  for (const [n, between] of minutes.entries()) {
    expect(between).toBeGreaterThanOrEqual(2 ** (n + 1))
    expect(between).toBeLessThanOrEqual(2 ** (n + 1) + 2)
  }
})

describe('a spool that the disk does not allow to open', () => {
  test('is tried again after 1 s, doubling to 30 s', async () => {
    const world = await waitWorld(async () => Promise.reject(fault('SPOOL_DISK_FULL')))
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      await world.waits()
      const before = world.attempts()
      await world.clock.advance(seconds * 1000 - 1)
      expect(world.attempts()).toBe(before)
      await world.clock.advance(1)
      await eventually(() => world.attempts() === before + 1)
    }
    world.stop.abort()
  })
})

test.each(['SPOOL_LOCKED', 'SPOOL_VERSION', 'SPOOL_PERMISSION', 'SPOOL_NOT_DIRECTORY'] as const)(
  '%s ends the start',
  async (code) => {
    const world = await waitWorld(async () => Promise.reject(fault(code)))
    await expect(world.spool).rejects.toMatchObject({ code })
    expect(world.events).toEqual([])
  },
)

test.each(['SPOOL_PERMISSION', 'SPOOL_PATH_MISSING', 'SPOOL_NOT_DIRECTORY', 'SPOOL_LOCKED'] as const)(
  '%s is waited for by a daemon that has had the spool',
  async (code) => {
    const world = await waitWorld(async (n) => (n > 2 ? opened : Promise.reject(fault(code))), false)
    for (const seconds of [1, 2]) {
      await world.waits()
      await world.clock.advance(seconds * 1000)
    }
    expect(await world.spool).toBe(opened)
    expect(world.events).toMatchObject([{ kind: 'spool_refused', fault: { code } }])
  },
)
