import { describe, expect, test } from 'vitest'
import type { ProxyOptions } from '../../../src/delivery/delivery-options.ts'
import { createServiceClock } from '../../../src/delivery/transport/service-clock.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const hourMs = 3_600_000
const dateOf = (ms: number) => new Date(ms).toUTCString()

const requestId = null
const accepted: Outcome = {
  kind: 'answered',
  requestId,
  accepted: 'all',
  failed: [],
  complete: true,
  tooLarge: false,
  deviations: [],
}
const forbidden: Outcome = { kind: 'unauthorized', status: 403, requestId, message: 'no' }
const proxyPage: Outcome = { kind: 'unavailable', status: 503, requestId, message: 'no', retryAfterMs: null }
const loginPage: Outcome = { kind: 'unreadable', status: 200, requestId, message: 'no' }

function setUp(baseUrl = 'https://ingest.example.com', proxy: ProxyOptions = { from: 'none' }) {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const service = createServiceClock({ clock, emit }, { name: defaultProvider, baseUrl, proxy })
  const says = (ms: number, outcome: Outcome = accepted) =>
    service.answered(dateOf(clock.now() + ms), 0, outcome)
  return { clock, service, events, says }
}

describe("the service's clock", () => {
  test('corrects the signing time from an offset of a minute on, and is always shown', () => {
    const { clock, service, says } = setUp()
    expect(service.offsetMs()).toBeNull()
    expect(service.signingAt()).toBe(clock.now())
    says(30_000)
    expect(service.offsetMs()).toBe(30_500)
    expect(service.signingAt()).toBe(clock.now())
    says(-hourMs)
    says(-hourMs)
    expect(service.signingAt()).toBe(clock.now() - hourMs + 500)
  })

  test('that an accepted batch has shown is not changed by a single other one, and by two that agree', () => {
    const { service, says } = setUp()
    says(0)
    for (const ms of [-24 * hourMs, 0, 5 * hourMs, -24 * hourMs, 2000]) says(ms)
    expect(service.offsetMs()).toBe(2500)
    says(-24 * hourMs)
    says(-24 * hourMs + 3000)
    expect(service.offsetMs()).toBe(-24 * hourMs + 3500)
  })

  test('is estimated with half of the response time, a second at most: the rest is the upload', () => {
    const { clock, service } = setUp()
    service.answered(dateOf(clock.now() - 1000), 2000, accepted)
    expect(service.offsetMs()).toBe(500)
    service.answered(dateOf(clock.now() - 1000), 36_000, accepted)
    expect(service.offsetMs()).toBe(500)
  })

  test.each(['http://10.0.0.1', 'http://example.com', 'http://127.evil.example', 'http://localhost.evil'])(
    '%s is not believed',
    (baseUrl) => {
      const { service, says } = setUp(baseUrl)
      says(2 * hourMs)
      expect(service.offsetMs()).toBeNull()
    },
  )

  test.each(['https://example.com', 'http://localhost', 'http://[::1]:80', 'http://127.0.0.9'])(
    '%s is',
    (baseUrl) => {
      const { service, says } = setUp(baseUrl)
      says(0)
      expect(service.offsetMs()).toBe(500)
    },
  )

  test('is not used from the loopback address of a proxy without TLS', () => {
    const proxy: ProxyOptions = { from: 'config', url: 'http://proxy:3128', auth: null }
    const plain = setUp('http://localhost:80', proxy)
    plain.says(2 * hourMs)
    expect(plain.service.offsetMs()).toBeNull()
    const tls = setUp('https://localhost', proxy)
    tls.says(2 * hourMs)
    expect(tls.service.offsetMs()).not.toBeNull()
  })

  test.each([null, '', 'soon', dateOf(0), dateOf(Date.UTC(2200, 0, 1)), 'NaN', '9'.repeat(400)])(
    'a Date of %j is ignored',
    (date) => {
      const { service } = setUp()
      service.answered(date, 0, accepted)
      expect(service.offsetMs()).toBeNull()
    },
  )

  test('an answer that took more than a minute sets no offset', () => {
    const { clock, service } = setUp()
    service.answered(dateOf(clock.now() + hourMs), 61_000, accepted)
    expect(service.offsetMs()).toBeNull()
  })

  test('is not learned from a page of a proxy, nor from two, nor from three that contradict each other', () => {
    const { service, says } = setUp()
    for (const page of [proxyPage, loginPage]) {
      for (const ms of [-2 * hourMs, -2 * hourMs, hourMs, hourMs, 0]) says(ms, page)
      expect(service.offsetMs()).toBeNull()
    }
  })

  test('is learned from three pages in a row that agree, while nothing else is known', () => {
    const { service, says } = setUp()
    for (const ms of [hourMs, hourMs + 3000, hourMs - 1000]) says(ms, proxyPage)
    expect(service.offsetMs()).toBe(hourMs - 500)
  })

  test('that an accepted batch has shown is not changed by any number of pages', () => {
    const { service, says } = setUp()
    says(0)
    for (let page = 0; page < 10; page += 1) says(-2 * hourMs, proxyPage)
    expect(service.offsetMs()).toBe(500)
  })

  test('is learned from two answers 403 that agree within five seconds, and the next is asked for at once', () => {
    const { service, says } = setUp()
    expect(service.mayCorrect(0)).toBe(false)
    says(hourMs, forbidden)
    expect(service.offsetMs()).toBeNull()
    expect(service.mayCorrect(0)).toBe(true)
    says(hourMs + 10_000, forbidden)
    expect(service.offsetMs()).toBeNull()
    says(hourMs + 8000, forbidden)
    expect(service.offsetMs()).toBe(hourMs + 8500)
    expect(service.mayCorrect(0)).toBe(true)
    expect(service.mayCorrect(service.appliedMs())).toBe(false)
  })

  test('of a single accepted batch that contradicts the others gives no reason to sign again', () => {
    const { service, says } = setUp()
    says(0)
    says(-24 * hourMs)
    expect(service.mayCorrect(0)).toBe(false)
  })
})
