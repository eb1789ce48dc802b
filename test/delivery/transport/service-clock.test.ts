import { expect } from 'vitest'
import type { ProxyOptions } from '../../../src/delivery/delivery-options.ts'
import { createServiceClock } from '../../../src/delivery/transport/service-clock.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { stepCases } from '../../support/step-cases.ts'

type World = ReturnType<typeof world>

const dateOf = (ms: number) => new Date(ms).toUTCString()
const requestId = null
const outcomes: Record<string, Outcome> = {
  accepted: {
    kind: 'answered',
    requestId,
    accepted: 'all',
    failed: [],
    deviations: [],
  },
  forbidden: { kind: 'unauthorized', status: 403, requestId, message: 'no' },
  proxyPage: { kind: 'unavailable', status: 503, requestId, message: 'no', retryAfterMs: null },
  loginPage: { kind: 'unreadable', status: 200, requestId, message: 'no' },
}

function world(given: { baseUrl?: string; proxy?: ProxyOptions } | undefined) {
  const { baseUrl = 'https://ingest.example.com', proxy = { from: 'none' } } = given ?? {}
  const clock = createFakeClock()
  const options = { name: defaultProvider, baseUrl, proxy }
  return { clock, service: createServiceClock({ clock }, options) }
}

stepCases(import.meta.filename, world, {
  /** By how much its times differ from ours, in accepted answers. */
  says: ({ clock, service }: World, offsets: number[]) => {
    for (const ms of offsets) service.answered(dateOf(clock.now() + ms), 0, outcomes['accepted']!)
  },
  saysIn: ({ clock, service }: World, [kind, ...offsets]: [string, ...number[]]) => {
    for (const ms of offsets) service.answered(dateOf(clock.now() + ms), 0, outcomes[kind]!)
  },
  saysAfter: ({ clock, service }: World, [tookMs, ms]: [number, number]) =>
    service.answered(dateOf(clock.now() + ms), tookMs, outcomes['accepted']!),
  sends: ({ service }: World, date: string | null) => service.answered(date, 0, outcomes['accepted']!),
  offset: ({ service }: World, ms: number | null) => expect(service.offsetMs()).toBe(ms),
  signsWith: ({ service, clock }: World, ms: number) => expect(service.signingAt() - clock.now()).toBe(ms),
  mayCorrect: ({ service }: World, may: boolean) => expect(service.mayCorrect(0)).toBe(may),
  mayCorrectAgain: ({ service }: World, may: boolean) =>
    expect(service.mayCorrect(service.appliedMs())).toBe(may),
})
