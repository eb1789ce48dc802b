import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/std/clock.ts'
import type { Clock } from '../../../src/std/clock.ts'
import { openSandboxPipeline } from '../../support/sandbox-pipeline.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** The clock of this machine with an error. */
function wrongBy(ms: number): Clock & { set(ms: number): void } {
  let wrongMs = ms
  return { ...systemClock, now: () => systemClock.now() + wrongMs, set: (next) => void (wrongMs = next) }
}

describe('a daemon whose clock is wrong', () => {
  test.each([
    ['an hour behind', -hourMs],
    ['an hour ahead', hourMs],
    ['years behind, as without a battery', -20 * 365 * dayMs],
  ])('%s signs correctly from its third request on', async (_name, wrongMs) => {
    const pipeline = await openSandboxPipeline({ clock: wrongBy(wrongMs), providers: [{ maxInFlight: 1 }] })
    await pipeline.publish(200)
    await pipeline.until(() => pipeline.spool.totals().delivered === 200)
    const { byStatus } = pipeline.sandbox.stats()
    // Two answers that agree show the time.
    expect(byStatus['403']).toBe(2)
    expect(byStatus['200']).toBeGreaterThanOrEqual(4)
    expect(pipeline.ofKind('endpoint_changed')).toEqual([])
    expect([...pipeline.delivery.states()].map(({ code }) => code)).toEqual(['CLOCK_OFF'])
    const offsetMs = pipeline.delivery.providers()[0]?.clockOffsetMs ?? 0
    expect(Math.abs(offsetMs + wrongMs)).toBeLessThan(2000)
  })

  test('continues without a pause when the clock is set while it runs', async () => {
    const clock = wrongBy(-hourMs)
    const pipeline = await openSandboxPipeline({ clock, providers: [{ maxInFlight: 1 }] })
    await pipeline.publish(50)
    await pipeline.until(() => pipeline.spool.totals().delivered === 50)
    clock.set(0)
    await pipeline.publish(50, { from: 50 })
    await pipeline.until(() => pipeline.spool.totals().delivered === 100)
    // The offset is forgotten when the clock is set, so no further signature is refused.
    expect(pipeline.sandbox.stats().byStatus['403']).toBe(2)
    clock.set(5 * hourMs)
    await pipeline.publish(50, { from: 100 })
    await pipeline.until(() => pipeline.spool.totals().delivered === 150)
    expect(pipeline.sandbox.stats().byStatus['403']).toBe(4)
    expect(pipeline.ofKind('endpoint_changed')).toEqual([])
  })
})
