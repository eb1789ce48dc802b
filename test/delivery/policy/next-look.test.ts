import { expect, test } from 'vitest'
import { createNextLook } from '../../../src/delivery/policy/next-look.ts'
import type { LanePlan } from '../../../src/delivery/policy/scheduler.ts'
import { createWakeTimer } from '../../../src/delivery/watch/wake-timer.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

function world() {
  const clock = createFakeClock()
  const state = { looks: 0 }
  const look = () => {
    nextLook.begins()
    state.looks += 1
  }
  const wakeTimer = createWakeTimer({ clock }, look)
  const nextLook = createNextLook({ clock, wakeTimer }, look)
  return { clock, state, nextLook, wakeTimer, in: (ms: number) => clock.monotonic() + ms }
}

function plan(kind: 'live' | 'backfill' | 'retry', pending: number): LanePlan {
  return { lane: { role: { kind }, pending }, limits: { payloadsMax: 500 } } as unknown as LanePlan
}

test('each commit is looked at as long as no look found that nothing is due', () => {
  const { state, nextLook } = world()
  nextLook.added(1)
  nextLook.added(1)
  expect(state.looks).toBe(2)
})

test('a commit that fills no batch is looked at after 20 ms, with all that came meanwhile', async () => {
  const { clock, state, nextLook, ...times } = world()
  nextLook.waitFor([plan('live', 10)], times.in(1000))
  for (let commit = 0; commit < 100; commit += 1) nextLook.added(4)
  await clock.advance(19)
  expect(state.looks).toBe(0)
  await clock.advance(1)
  expect(state.looks).toBe(1)
})

test('the commit that fills a batch is looked at at once, and so is the next one', () => {
  const { state, nextLook, ...times } = world()
  nextLook.waitFor([plan('retry', 0), plan('backfill', 3), plan('live', 498)], times.in(1000))
  nextLook.added(1)
  expect(state.looks).toBe(0)
  nextLook.added(1)
  expect(state.looks).toBe(1)
  nextLook.added(1)
  expect(state.looks).toBe(2)
})

test('what is due by its time is looked at then, with and without new payloads', async () => {
  const { clock, state, nextLook, ...times } = world()
  nextLook.waitFor([plan('live', 10)], times.in(5))
  await clock.advance(5)
  expect(state.looks).toBe(1)
  nextLook.waitFor([plan('live', 10)], times.in(5))
  nextLook.added(1)
  await clock.advance(5)
  expect(state.looks).toBe(2)
})

test('without a lane that waits, or with one that is due, nothing rests', () => {
  const { state, nextLook, ...times } = world()
  nextLook.waitFor([], times.in(1000))
  nextLook.added(1)
  nextLook.waitFor([plan('retry', 10)], times.in(1000))
  nextLook.added(1)
  nextLook.waitFor([plan('live', 10)], times.in(0))
  nextLook.added(1)
  expect(state.looks).toBe(3)
})

test('after a look for another reason that finds nothing to wait for, the next commit is looked at', async () => {
  const { clock, state, nextLook, wakeTimer, ...times } = world()
  nextLook.waitFor([plan('live', 10)], times.in(1000))
  nextLook.added(1)
  wakeTimer.set(times.in(5))
  await clock.advance(5)
  expect(state.looks).toBe(1)
  nextLook.added(1)
  expect(state.looks).toBe(2)
})
