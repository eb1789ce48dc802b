import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSpoolOrWait } from '../../src/app/refused-spool.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { Spool } from '../../src/spool/spool.ts'
import { GatewayError, type ErrorCode } from '../../src/std/gateway-error.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { newFolder } from '../support/folders.ts'
import { stepCases } from '../support/step-cases.ts'

const fault = (code: ErrorCode, why = 'Bad.') => new GatewayError(code, { what: 'No.', why, act: 'Mend it.' })
const opened = { close: async () => undefined } as Spool

type Given = {
  attempts?: ErrorCode[]
  always?: ErrorCode
  /** A file of the store that the first attempt removes; that each writes one. */
  removes?: string
  writes?: boolean
  isStart?: boolean
}
type World = Awaited<ReturnType<typeof waitWorld>>

async function waitWorld(given: Given, attempt?: () => Promise<Spool>) {
  const path = await newFolder()
  const store = join(path, 'store')
  await mkdir(store)
  await writeFile(join(store, 'CURRENT'), 'MANIFEST-000002\n')
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const stop = new AbortController()
  let attempts = 0
  async function open(): Promise<Spool> {
    const code = given.always ?? given.attempts?.[attempts]
    attempts += 1
    if (attempt !== undefined) return attempt()
    if (given.writes === true) await writeFile(join(store, `${attempts}.log`), 'x')
    if (given.removes !== undefined && attempts === 1) await rm(join(store, given.removes))
    if (code === undefined) return opened
    throw fault(code)
  }
  const deps = {
    clock,
    emit: (event: GatewayEvent) => void events.push(event),
    open,
    refused: () => undefined,
  }
  const spool = openSpoolOrWait(deps, { path, isStart: given.isStart ?? true }, stop.signal)
  // Looked at by a step.
  spool.catch(() => undefined)
  const waits = () => eventually(() => clock.pending() > 0)
  return { store, clock, events, stop, spool, attempts: () => attempts, waits }
}

stepCases(import.meta.filename, waitWorld, {
  waits: ({ waits }: World) => waits(),
  tries: async ({ clock, attempts }: World, [seconds, expected]: [number, number]) => {
    // A look that is under way may have seen the change.
    await eventually(() => clock.pending() > 0 || attempts() === expected)
    await clock.advance(seconds * 1000)
    await eventually(() => attempts() === expected)
    expect(attempts()).toBe(expected)
  },
  seconds: async ({ clock, waits }: World, count: number) => {
    for (let second = 0; second < count; second += 1) {
      await waits()
      await clock.advance(1000)
    }
  },
  triedAfter: async ({ clock, attempts, waits }: World, delays: number[]) => {
    for (const seconds of delays) {
      await waits()
      const before = attempts()
      await clock.advance(seconds * 1000 - 1)
      expect(attempts()).toBe(before)
      await clock.advance(1)
      await eventually(() => attempts() === before + 1)
    }
  },
  change: ({ store }: World, name: string) => writeFile(join(store, name), 'MANIFEST-000007\n'),
  remove: ({ store }: World, name: string) => rm(join(store, name)),
  opens: async ({ spool }: World) => expect(await spool).toBe(opened),
  throws: async ({ spool }: World, code: ErrorCode) => {
    await expect(spool).rejects.toMatchObject({ code })
  },
  ends: async ({ spool, stop }: World) => {
    stop.abort()
    expect(await spool).toBeNull()
  },
  refusals: ({ events }: World, count: number) =>
    expect(events.map(({ kind }) => kind)).toEqual(Array(count).fill('spool_refused')),
})

test('a damaged spool that the disk could not read is opened again when it can, though no file has changed', async () => {
  const tries: number[] = []
  let isReadable = false
  const world = await waitWorld({}, async () => {
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
