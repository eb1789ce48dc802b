import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/std/clock.ts'
import type { Clock } from '../../../src/std/clock.ts'
import { createAuthority } from '../../support/certificates.ts'
import type { IssueOptions } from '../../support/certificates.ts'
import { openSandboxPipeline } from '../../support/sandbox-pipeline.ts'
import { startTlsFront } from '../../support/tls-service.ts'

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
    expect(pipeline.ofKind('endpoint_unauthorized')).toEqual([])
    expect(pipeline.ofKind('clock_off')).toHaveLength(1)
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
    expect(pipeline.ofKind('endpoint_unauthorized')).toEqual([])
  })
})

describe('a clock outside the validity period of the certificate of the service', () => {
  test.each<[string, IssueOptions]>([
    ['not yet', { from: new Date(Date.now() + dayMs), until: new Date(Date.now() + 2 * dayMs) }],
    ['no more', { from: new Date(Date.now() - 2 * dayMs), until: new Date(Date.now() - dayMs) }],
  ])(
    '%s: the cause is reported, everything is held, and delivery resumes when the time is right',
    async (_name, dates) => {
      const authority = createAuthority()
      const front = await startTlsFront(authority.issue(dates))
      const pipeline = await openSandboxPipeline({
        providers: [{ ca: authority.ca }],
        baseUrl: (url) => (front.lead(url), front.url),
      })
      await pipeline.publish(10)
      await pipeline.until(() => pipeline.ofKind('endpoint_unavailable').length > 0)
      expect(pipeline.ofKind('endpoint_unavailable')[0]).toMatchObject({
        why: expect.stringMatching(/^The clock of this machine says \d{4}-.*certificate of the service/),
        act: expect.stringContaining('Set the time of this machine'),
      })
      expect(pipeline.spool.lanes()[0]?.open).toBe(10)
      // The certificate is valid, as it is after the time was set.
      front.renew(authority.issue())
      await pipeline.until(() => pipeline.spool.totals().delivered === 10)
      expect(pipeline.sandbox.stats().distinctPayloadIds).toBe(10)
      expect(pipeline.delivery.providers()[0]?.endpoint).toBe('available')
    },
  )
})
