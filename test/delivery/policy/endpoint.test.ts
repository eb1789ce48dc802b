import { describe, expect, test } from 'vitest'
import { createEndpoint } from '../../../src/delivery/policy/endpoint.ts'
import type { Endpoint, Report } from '../../../src/delivery/policy/endpoint.ts'
import { defaultBackoff } from '../../../src/delivery/delivery-options.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { BatchId } from '../../../src/domain/ids.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

function setUp(random = () => 0.5) {
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const endpoint = createEndpoint(
    { clock, random, emit },
    { provider: defaultProvider, backoff: defaultBackoff },
  )
  return { clock, events, endpoint }
}

const failure = (batch: string, changes: Partial<Extract<Report, { kind: 'failure' }>> = {}): Report => ({
  kind: 'failure',
  batchId: batch as BatchId,
  why: '500',
  requestId: null,
  retryAfterMs: null,
  alone: false,
  ...changes,
})

const forbidden: Report = {
  kind: 'unauthorized',
  status: 403,
  requestId: null,
  message: 'no',
  clockOffsetMs: 5,
  accessKeyId: 'AKID',
}

function submit(endpoint: Endpoint, report: Report): void {
  const pass = endpoint.enter()
  if (pass === null) throw new Error('no pass was given')
  endpoint.leave(pass, report)
}

const stateOf = (endpoint: Endpoint) => endpoint.view().state

const success: Report = { kind: 'success' }
const refused: Report = { kind: 'refused', why: '400', requestId: null }
const outage: Report = { kind: 'outage', why: 'Internal', requestId: null }
const failures = (...batches: string[]) => batches.map((batch) => failure(batch))
const times = (count: number, report: Report) => Array.from({ length: count }, () => report)

describe('the endpoint becomes unavailable', () => {
  test.each<[what: string, reports: Report[], state: 'available' | 'unavailable']>([
    ['four failures in a row over two batches', failures('a', 'b', 'a', 'b'), 'available'],
    ['five failures in a row over two batches', failures('a', 'b', 'a', 'b', 'a'), 'unavailable'],
    ['nine failures of one batch while there are others', times(9, failure('a')), 'available'],
    ['five failures of the only batch that exists', times(5, failure('a', { alone: true })), 'unavailable'],
    ['nine refusals without a success', times(9, refused), 'available'],
    ['ten refusals without a success', times(10, refused), 'unavailable'],
    [
      'failures with a success between every four of them',
      Array.from({ length: 100 }, (_, i) => (i % 5 === 0 ? success : failure(`batch ${i}`))),
      'available',
    ],
    ['an outage reported inside a 200', [outage], 'unavailable'],
  ])('or not, by %s', (_what, reports, state) => {
    const { endpoint } = setUp()
    for (const report of reports) submit(endpoint, report)
    expect(stateOf(endpoint)).toBe(state)
  })

  test('and says how often it failed, and why', () => {
    const { endpoint, events } = setUp()
    for (const report of failures('a', 'b', 'a', 'b', 'a')) submit(endpoint, report)
    expect(events).toMatchObject([{ kind: 'endpoint_unavailable', failures: 5, why: '500' }])
  })
})

describe('while the endpoint is unavailable', () => {
  function close(random?: () => number) {
    const world = setUp(random)
    for (const batch of ['a', 'b', 'a', 'b', 'a']) submit(world.endpoint, failure(batch))
    return world
  }

  test('late failures of earlier submissions neither end the outage nor lengthen the wait', () => {
    const { endpoint, clock } = setUp()
    const passes = Array.from({ length: 8 }, () => endpoint.enter())
    for (const [index, pass] of passes.entries())
      if (pass !== null) endpoint.leave(pass, failure(`batch ${index}`))
    expect((endpoint.opensAt() ?? 0) - clock.monotonic()).toBe(500)
  })

  test('a pass from before the outage is void', () => {
    const { endpoint } = setUp()
    const pass = endpoint.enter()
    for (const batch of ['a', 'b', 'a', 'b', 'a']) submit(endpoint, failure(batch))
    expect(pass !== null && endpoint.isValid(pass)).toBe(false)
  })

  test('a late success of an earlier submission makes it available', () => {
    const { endpoint, events } = setUp()
    const pass = endpoint.enter()
    for (const batch of ['a', 'b', 'a', 'b', 'a']) submit(endpoint, failure(batch))
    if (pass !== null) endpoint.leave(pass, { kind: 'success' })
    expect(stateOf(endpoint)).toBe('available')
    expect(events.at(-1)).toMatchObject({ kind: 'endpoint_available' })
  })

  test('another reason is reported, and each probe with the same reason for the condition only', async () => {
    const { endpoint, events, clock } = close()
    const probe = async (changes: Parameters<typeof failure>[1]) => {
      await clock.advance(60_000)
      submit(endpoint, failure('a', changes))
    }
    await probe({ why: '503' })
    await probe({ why: 'not valid yet', reason: 'clock', act: 'Set the time.' })
    await probe({ why: 'not valid yet', reason: 'clock', act: 'Set the time.' })
    await probe({ why: '500' })
    const shown = events.map((event) =>
      'act' in event && 'why' in event ? [event.kind, event.why, event.act] : [],
    )
    expect(shown).toEqual([
      ['endpoint_unavailable', '500', null],
      ['probe_failed', '503', null],
      ['endpoint_unavailable', 'not valid yet', 'Set the time.'],
      ['probe_failed', 'not valid yet', 'Set the time.'],
      ['endpoint_unavailable', '500', null],
    ])
  })

  test('a probe that was never sent is given back', async () => {
    const { endpoint, clock } = close()
    await clock.advance(1000)
    submit(endpoint, { kind: 'nothing' })
    expect(endpoint.enter()).not.toBeNull()
  })
})

describe('Retry-After while available', () => {
  test('of one batch delays only that batch; of two batches in a row it delays all', () => {
    const { endpoint, clock } = setUp()
    submit(endpoint, failure('a', { retryAfterMs: 30_000 }))
    expect(endpoint.enter()).not.toBeNull()
    submit(endpoint, failure('b', { retryAfterMs: 30_000 }))
    expect(endpoint.enter()).toBeNull()
    expect(stateOf(endpoint)).toBe('available')
    expect(endpoint.view().nextAttemptAt).toBe(clock.now() + 30_000)
  })
})

describe('unauthorized', () => {
  test('reports when the problem changes', async () => {
    const { endpoint, events, clock } = setUp()
    submit(endpoint, forbidden)
    await clock.advance(600_000)
    submit(endpoint, failure('a', { why: 'no name server', reason: 'dns', act: 'Check it.' }))
    expect(stateOf(endpoint)).toBe('unavailable')
    expect(events.at(-1)).toMatchObject({
      kind: 'endpoint_unavailable',
      why: 'no name server',
      act: 'Check it.',
    })
  })

  test('is told as unavailable when its probe is a batch that the service refuses', async () => {
    const { endpoint, events, clock } = setUp()
    submit(endpoint, forbidden)
    await clock.advance(600_000)
    submit(endpoint, { kind: 'isolating', why: '400: invalid', requestId: 'r' })
    expect(stateOf(endpoint)).toBe('unavailable')
    expect(events.at(-1)).toMatchObject({ kind: 'endpoint_unavailable', why: '400: invalid', requestId: 'r' })
    await clock.advance(60_000)
    submit(endpoint, { kind: 'isolating', why: '400: invalid', requestId: 's' })
    expect(events.filter(({ kind }) => kind === 'endpoint_unavailable')).toHaveLength(1)
  })

  test('is not brought back by a late answer to an older signature', () => {
    const { endpoint } = setUp()
    const early = endpoint.enter()
    submit(endpoint, { kind: 'success' })
    if (early !== null) endpoint.leave(early, forbidden)
    expect(stateOf(endpoint)).toBe('available')
  })
})
