import { describe, expect, test } from 'vitest'
import { conditionCatalogue, type ConditionCode } from '../../../src/ops/conditions/condition-catalogue.ts'
import type { Condition } from '../../../src/ops/conditions/conditions.ts'
import { verdictOf, type VerdictSource } from '../../../src/ops/gateway-verdict/gateway-verdict.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { lane, provider, stages, startedOps } from '../../support/ops-world.ts'

const now = 1_750_000_000_000
const minute = 60_000

function condition(code: ConditionCode, more: Partial<Condition> = {}): Condition {
  const { severity, meaning, act } = conditionCatalogue[code]
  const at = now - minute
  return {
    code,
    key: null,
    severity,
    since: at,
    lastAt: at,
    count: 1,
    what: meaning,
    why: 'w.',
    act,
    causes: [],
    ...more,
  }
}

function source(more: Partial<VerdictSource> = {}): VerdictSource {
  return {
    now,
    startedAt: now - 60 * minute,
    notReady: null,
    holdReason: null,
    conditions: [],
    providers: [provider('default', { lastAcceptedAt: now - 3000 })],
    lanes: [lane(1, { pending: 2, oldestAt: now - 1000 })],
    lastMessageAt: now - 2000,
    ...more,
  }
}

const two = [provider('default', { lastAcceptedAt: now - 3000 }), provider('other')]
const down = condition('ENDPOINT_UNAVAILABLE', { key: 'default', what: 'HTTP 500.' })
const stale = [provider('default', { lastAcceptedAt: now - 5 * minute })]

describe('the verdict', () => {
  test.each<[string, Partial<VerdictSource>, string, RegExp]>([
    ['delivers', {}, 'ok', /^Delivering\. Last message 2 s ago, last accepted 3 s ago\.$/],
    ['has nothing to deliver', { lanes: [] }, 'ok', /^Nothing waits for delivery\. Last message 2 s ago/],
    ['is new', { lanes: [], providers: [provider('default')], lastMessageAt: null }, 'ok', /No message came/],
    [
      'has sent nothing yet',
      { providers: [provider('default')], startedAt: now - 3000 },
      'ok',
      /^The first payloads wait for an answer\. Last message 2 s ago, nothing accepted since the start 3 s ago\.$/,
    ],
    ['starts', { notReady: 'starting' }, 'not_receiving', /^Not ready: starting\. /],
    ['holds all', { holdReason: 'disk_low' }, 'not_receiving', /^Acknowledgements are held: disk_low\./],
    ['is full', { conditions: [condition('SPOOL_FULL')] }, 'not_receiving', /^The spool is full/],
    ['cannot deliver', { conditions: [down] }, 'not_delivering', /^HTTP 500\. Last message 2 s ago/],
    [
      'neither receives nor delivers',
      { conditions: [condition('DISK_LOW'), down] },
      'not_receiving',
      /^The disk of the spool/,
    ],
    [
      'cannot deliver for one of two providers',
      { conditions: [down], providers: two },
      'degraded',
      /^ENDPOINT_UNAVAILABLE: HTTP 500\./,
    ],
    [
      'cannot deliver for both of two providers',
      { conditions: [down, condition('CREDENTIALS_MISSING', { key: 'other' })], providers: two },
      'not_delivering',
      /^HTTP 500\./,
    ],
    [
      'has a problem',
      { conditions: [condition('AUTH_FAILURES'), condition('CLOCK_OFF')] },
      'degraded',
      /^AUTH_FAILURES \(1 of 2 problems\): Clients are refused/,
    ],
    ['only waits as it should', { conditions: [condition('RATE_LIMITED')] }, 'ok', /^Delivering\./],
    [
      'delivers nothing, and no condition says why',
      { providers: stale, lanes: [lane(1, { sealed: 1, oldestSealedAt: now - 4 * minute })] },
      'not_delivering',
      /^Payloads wait for 4 min, and none is accepted\./,
    ],
    [
      'delivers nothing because of its own limit',
      {
        conditions: [
          condition('RATE_LIMITED', { severity: 'info', what: 'Nothing is delivered since 12:00.' }),
        ],
        providers: stale,
        lanes: [lane(1, { sealed: 1, oldestSealedAt: now - 4 * minute })],
      },
      'not_delivering',
      /^Nothing is delivered since 12:00\. Payloads wait for 4 min/,
    ],
    [
      'delivers nothing, and names the likely cause',
      {
        conditions: [
          condition('CLOCK_OFF'),
          condition('SERVICE_HANGING', { what: 'The service does not answer.' }),
        ],
        providers: stale,
        lanes: [lane(1, { sealed: 1, oldestSealedAt: now - 4 * minute })],
      },
      'not_delivering',
      /^The service does not answer\. Payloads wait for 4 min, and none is accepted\./,
    ],
    [
      'accepts nothing since the start',
      { providers: [provider('default')], lanes: [lane(1, { pending: 1, oldestAt: now - 9 * minute })] },
      'not_delivering',
      /nothing accepted since the start 1 h ago\.$/,
    ],
    [
      'was quiet for long and has new payloads',
      { providers: stale, lanes: [lane(1, { pending: 1, oldestAt: now - 1000 })] },
      'ok',
      /^Delivering\./,
    ],
    [
      'has retries and held batches only',
      {
        providers: stale,
        lanes: [
          lane(1, { sealed: 3, heldPayloads: 3, oldestSealedAt: now - 9 * minute }),
          lane(2, {
            role: { kind: 'retry', schedule: 'default', step: 1 },
            pending: 1,
            oldestAt: now - 9 * minute,
          }),
        ],
      },
      'ok',
      /^Delivering\./,
    ],
  ])('of a gateway that %s', (_, more, verdict, sentence) => {
    const view = verdictOf(source(more))
    expect(view.verdict).toBe(verdict)
    expect(view.sentence).toMatch(sentence)
    expect(view.sentence).toMatch(/\.$/)
  })

  test('is on top of /status, and the answer of /verdict: 503 where it does not receive or deliver', async () => {
    await using world = await startedOps()
    expect((await world.ask('/verdict')).status).toBe(503)
    await world.ops.ready()
    expect((await world.ask('/verdict')).status).toBe(200)
    const none = { lastMessageAt: null, lastAcceptedAt: null }
    expect(await world.json('/verdict')).toMatchObject({ verdict: 'ok', ...none })
    expect(Object.keys(await world.json('/status')).slice(0, 3)).toEqual(['version', 'verdict', 'sentence'])
  })

  test('and readiness: not ready while every acknowledgement is held, and ready in an outage of the service', async () => {
    await using world = await startedOps()
    const views = stages({})
    world.ops.attach(views)
    await world.ops.ready()
    world.ops.emit(eventSamples.endpoint_unavailable)
    expect((await world.ask('/readyz')).status).toBe(200)
    expect(await world.metrics()).toContain('gateway_ready 1')
    world.ops.attach({ spool: { ...views.spool!, holdReason: () => 'disk_low' } })
    expect((await world.ask('/readyz')).status).toBe(503)
    const reason = 'acknowledgements are held: disk_low'
    expect(await world.json('/readyz')).toEqual({ ready: false, reason })
    expect(world.ops.status()).toMatchObject({ ready: false, verdict: 'not_receiving' })
    expect(await world.metrics()).toMatch(/gateway_ready 0\n[^]*gateway_verdict\{verdict="not_receiving"\} 1/)
    expect((await world.ask('/healthz')).status).toBe(200)
  })
})
