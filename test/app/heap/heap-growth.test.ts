import { expect, test } from 'vitest'
import { boundHeapGrowth } from '../../../src/app/heap/heap-growth.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const mib = 1024 ** 2

function world(usedMiB: number) {
  const clock = createFakeClock()
  const state = { used: usedMiB * mib, percents: [] as number[] }
  const growing = {
    usedBytes: () => state.used,
    setPercent: (percent: number) => void state.percents.push(percent),
  }
  const end = boundHeapGrowth({ clock, growing })
  return { clock, state, end }
}

test('a small heap may double, and a larger one grows by as many bytes', async () => {
  const { clock, state } = world(30)
  await clock.advance(1000)
  expect(state.percents).toEqual([100])
  state.used = 64 * mib
  await clock.advance(5000)
  expect(state.percents).toEqual([100, 63])
})

test('a heap of thousands of devices grows by half, as from the start', async () => {
  const { clock, state } = world(300)
  await clock.advance(10_000)
  expect(state.percents).toEqual([])
  state.used = 50 * mib
  await clock.advance(1000)
  state.used = 300 * mib
  await clock.advance(4000)
  expect(state.percents).toEqual([80, 50])
})

test('garbage does not count as use: the least of the last looks does', async () => {
  const { clock, state } = world(60)
  for (let look = 0; look < 20; look += 1) {
    state.used = (look % 4 === 0 ? 60 : 110) * mib
    await clock.advance(1000)
  }
  expect(state.percents).toEqual([67])
})

test('a change of a few percent is left alone, and nothing is set after the end', async () => {
  const { clock, state, end } = world(60)
  await clock.advance(1000)
  state.used = 62 * mib
  await clock.advance(8000)
  expect(state.percents).toEqual([67])
  end()
  state.used = 300 * mib
  await clock.advance(8000)
  expect(state.percents).toEqual([67])
})
