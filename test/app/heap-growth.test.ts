import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { limitGrowthOfLargeHeap, startedGrowth } from '../../src/app/heap-growth.ts'
import { createFakeClock } from '../support/fake-clock.ts'

const mib = 1024 ** 2

function world(usual: number) {
  const clock = createFakeClock()
  const state = { bytes: 60 * mib, set: [] as number[] }
  const heap = { pageBytes: () => state.bytes, setGrowth: (percent: number) => void state.set.push(percent) }
  const end = limitGrowthOfLargeHeap({ clock, heap }, usual)
  return { clock, state, end }
}

test('a heap may grow by less within a second after it got large, and by as much as before when it is not', async () => {
  const { clock, state, end } = world(50)
  state.bytes = 112 * mib
  await clock.advance(5000)
  expect(state.set).toEqual([])
  state.bytes = 113 * mib
  await clock.advance(1000)
  expect(state.set).toEqual([25])
  state.bytes = 97 * mib
  await clock.advance(5000)
  expect(state.set).toEqual([25])
  state.bytes = 95 * mib
  await clock.advance(1000)
  expect(state.set).toEqual([25, 50])
  state.bytes = 500 * mib
  await clock.advance(5000)
  expect(state.set).toEqual([25, 50, 25])
  // The next one begins with the usual growth.
  end()
  await clock.advance(5000)
  expect(state.set).toEqual([25, 50, 25, 50])
})

test('less than a quarter stays', async () => {
  const { clock, state } = world(10)
  state.bytes = 200 * mib
  await clock.advance(1000)
  expect(state.set).toEqual([10])
})

test('the growth at the start is read from the flags of the process', () => {
  expect(startedGrowth(['--expose-gc', '--heap-growing-percent=50', '--no-warnings'])).toBe(50)
  expect(startedGrowth(['--expose-gc'])).toBe(null)
  for (const other of ['--heap-growing-percent=100', '--heap_growing_percent=100'])
    expect(startedGrowth(['--heap-growing-percent=50', other])).toBe(null)
})

/** Grows a heap until V8 collects it, and prints by how many percent it had grown. */
const growUntilCollected = `
  import { PerformanceObserver, constants } from 'node:perf_hooks'
  import { v8Heap } from ${JSON.stringify(import.meta.resolve('../../src/app/heap-growth.ts'))}
  const kept = []
  const keep = (count) => { for (let k = 0; k < count; k += 1) kept.push(new Array(128).fill(k)) }
  keep(50_000)
  v8Heap.setGrowth(Number(process.argv[2]))
  gc()
  const left = v8Heap.pageBytes()
  let collectedAt = 0
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries())
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collectedAt ||= v8Heap.pageBytes()
  }).observe({ entryTypes: ['gc'] })
  while (collectedAt === 0) {
    keep(1000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  console.log(Math.round((collectedAt / left - 1) * 100))
`

async function grownWith(percent: string): Promise<number> {
  const flags = ['--expose-gc', '--heap-growing-percent=50', '--input-type=module', '-e', growUntilCollected]
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--', 'x', percent])
  return Number(stdout)
}

test('V8 takes the setting of a running process for its next collections', async () => {
  const [little, much] = await Promise.all([grownWith('25'), grownWith('200')])
  expect(little).toBeLessThan(45)
  expect(much).toBeGreaterThan(55)
})
