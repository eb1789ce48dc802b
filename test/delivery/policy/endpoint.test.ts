import { expect } from 'vitest'
import { createEndpoint } from '../../../src/delivery/policy/endpoint.ts'
import type { Endpoint, Pass, Report } from '../../../src/delivery/policy/endpoint.ts'
import { defaultBackoff } from '../../../src/delivery/delivery-options.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { BatchId } from '../../../src/domain/ids.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { stepCases } from '../../support/step-cases.ts'

/** A name: a failure of that batch, or another report; with other fields. */
type Written = string | ({ of: string } & Record<string, unknown>)
type World = ReturnType<typeof world>

function world() {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const endpoint = createEndpoint(
    { clock, random: () => 0.5, emit },
    { provider: defaultProvider, backoff: defaultBackoff },
  )
  return { clock, events, endpoint, passes: [] as Pass[] }
}

const others: Record<string, Report> = {
  success: { kind: 'success' },
  nothing: { kind: 'nothing' },
  refused: { kind: 'refused', why: '400', requestId: null },
  outage: { kind: 'outage', why: 'Internal', requestId: null },
  isolating: { kind: 'isolating', why: '400: invalid', requestId: 'r' },
  forbidden: {
    kind: 'unauthorized',
    status: 403,
    requestId: null,
    message: 'no',
    clockOffsetMs: 5,
    accessKeyId: 'AKID',
  },
}

function reportOf(written: Written): Report {
  const { of, ...more } = typeof written === 'string' ? { of: written } : written
  const failure = {
    kind: 'failure',
    batchId: of as BatchId,
    why: '500',
    requestId: null,
    retryAfterMs: null,
    alone: false,
  } as const
  return { ...(others[of] ?? failure), ...more }
}

function enter(endpoint: Endpoint): Pass {
  const pass = endpoint.enter()
  if (pass === null) throw new Error('no pass was given')
  return pass
}

stepCases(import.meta.filename, world, {
  /** Each begins and ends before the next one begins. */
  submit: ({ endpoint }: World, reports: Written[]) => {
    for (const one of reports) endpoint.leave(enter(endpoint), reportOf(one))
  },
  leads: ({ endpoint }: World, [state, reports]: [string, Written[]]) => {
    for (const one of reports) endpoint.leave(enter(endpoint), reportOf(one))
    expect(endpoint.view().state).toBe(state)
  },
  submitOften: ({ endpoint }: World, [times, ...reports]: [number, ...Written[]]) => {
    for (let n = 0; n < times; n += 1)
      for (const one of reports)
        endpoint.leave(enter(endpoint), reportOf(one === 'another' ? `batch ${n}` : one))
  },
  begin: ({ endpoint, passes }: World, count: number) => {
    for (let n = 0; n < count; n += 1) passes.push(enter(endpoint))
  },
  /** Those that began, in their order. */
  end: ({ endpoint, passes }: World, reports: Written[]) => {
    for (const one of reports) endpoint.leave(passes.shift()!, reportOf(one))
  },
  pass: ({ clock }: World, ms: number) => clock.advance(ms),
  state: ({ endpoint }: World, state: string) => expect(endpoint.view().state).toBe(state),
  opensIn: ({ endpoint, clock }: World, ms: number) =>
    expect((endpoint.opensAt() ?? 0) - clock.monotonic()).toBe(ms),
  nextAttemptIn: ({ endpoint, clock }: World, ms: number) =>
    expect((endpoint.view().nextAttemptAt ?? 0) - clock.now()).toBe(ms),
  mayEnter: ({ endpoint }: World, may: boolean) => expect(endpoint.enter() !== null).toBe(may),
  isValid: ({ endpoint, passes }: World, valid: boolean) => expect(endpoint.isValid(passes[0]!)).toBe(valid),
  holds: ({ endpoint }: World, expected: object[]) => expect(endpoint.states()).toMatchObject(expected),
  events: ({ events }: World, expected: object[]) => expect(events).toMatchObject(expected),
})
