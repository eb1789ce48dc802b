import { expect, test } from 'vitest'
import { releaseHeapWhenQuiet } from '../../src/app/heap-release.ts'
import { createFakeClock } from '../support/fake-clock.ts'

const mib = 1024 ** 2

function world(startMiB: number) {
  const clock = createFakeClock()
  const state = { bytes: startMiB * mib, used: startMiB * mib, messages: 0, collections: 0 }
  const heap = {
    bytes: () => state.bytes,
    collect() {
      state.collections += 1
      state.bytes = state.used
    },
  }
  const end = releaseHeapWhenQuiet({ clock, heap, messages: () => state.messages })
  return { clock, state, end }
}

test('a heap that has grown and is quiet is collected once, and what it then needs is the new measure', async () => {
  const { clock, state } = world(48)
  state.bytes = 150 * mib
  await clock.advance(10_000)
  expect(state.collections).toBe(0)
  await clock.advance(10_000)
  expect([state.collections, state.bytes]).toEqual([1, 48 * mib])
  state.bytes = state.used = 120 * mib
  await clock.advance(20_000)
  expect(state.collections).toBe(2)
  await clock.advance(600_000)
  expect(state.collections).toBe(2)
})

test('a heap that a few clients make grow is collected', async () => {
  const { clock, state } = world(48)
  state.bytes = 150 * mib
  for (let look = 0; look < 3; look += 1) {
    state.bytes += 2 * mib
    await clock.advance(10_000)
  }
  expect(state.collections).toBe(1)
})

test('a heap that still grows fast is left alone, and a busy one is collected after 30 s', async () => {
  const { clock, state } = world(48)
  for (let look = 0; look < 20; look += 1) {
    state.bytes += 10 * mib
    await clock.advance(10_000)
  }
  expect(state.collections).toBe(0)
  for (let look = 0; look < 3; look += 1) {
    expect(state.collections).toBe(0)
    state.messages += 50_000
    await clock.advance(10_000)
  }
  expect(state.collections).toBe(1)
})

test('a small growth is no reason, and nothing is collected after the end', async () => {
  const { clock, state, end } = world(48)
  state.bytes = 71 * mib
  await clock.advance(60_000)
  expect(state.collections).toBe(0)
  state.bytes = 200 * mib
  end()
  await clock.advance(60_000)
  expect(state.collections).toBe(0)
})
