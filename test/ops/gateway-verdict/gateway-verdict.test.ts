import { describe, expect, test } from 'vitest'
import { specOf, type ConditionCode } from '../../../src/ops/conditions/condition-catalogue.ts'
import type { ProviderView } from '../../../src/delivery/types.ts'
import type { Condition } from '../../../src/ops/conditions/conditions.ts'
import { verdictOf, type VerdictSource } from '../../../src/ops/gateway-verdict/gateway-verdict.ts'
import type { ConditionSpec } from '../../../src/ops/conditions/types.ts'
import type { LaneView } from '../../../src/spool/spool.ts'
import { stateSamples } from '../../support/event-samples.ts'
import { lane, provider, stages, startedOps } from '../../support/ops-world.ts'
import { timedCases } from '../../support/timed-cases.ts'

const now = 1_750_000_000_000
const minute = 60_000

type Given = Omit<VerdictSource, 'conditions' | 'providers' | 'lanes'> & {
  conditions: (Partial<Condition> & { code: ConditionCode })[]
  providers: (Omit<Partial<ProviderView>, 'name'> & { name: string })[]
  lanes: (Omit<Partial<LaneView>, 'id'> & { id: number })[]
}
type Case = Partial<Given> & { gateway: string; verdict: string; sentence: string }

const usual = {
  now,
  startedAt: now - 60 * minute,
  countedSince: now - 60 * minute,
  notReady: null,
  holdReason: null,
  conditions: [],
  providers: [{ name: 'default', lastAcceptedAt: now - 3000 }],
  lanes: [{ id: 1, pending: 2, oldestAt: now - 1000 }],
  lastMessageAt: now - 2000,
}

function sourceOf(given: Partial<Given>): VerdictSource {
  const { conditions, providers, lanes, ...more }: Given = { ...usual, ...given }
  const at = now - minute
  return {
    ...more,
    conditions: conditions.map((one) => {
      const { severity: usually, meaning: what, act, stops: stopped }: ConditionSpec = specOf(one.code)
      const severity = one.severity ?? usually
      const stops = severity === 'info' ? null : (stopped ?? null)
      const rest = { key: null, since: at, lastAt: at, count: 1, why: 'w.', causes: [] }
      return { what, act, ...rest, ...one, severity, stops }
    }),
    providers: providers.map(({ name, ...one }) => provider(name, one)),
    lanes: lanes.map(({ id, ...one }) => lane(id, one)),
  }
}

const cases = timedCases(new URL('gateway-verdict.yaml', import.meta.url), now) as Case[]

describe('the verdict', () => {
  test.each(cases)('of a gateway that $gateway', ({ verdict, sentence, ...given }) => {
    const view = verdictOf(sourceOf(given))
    expect(view.verdict).toBe(verdict)
    expect(view.sentence).toMatch(new RegExp(sentence))
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
    const views = stages({ states: [stateSamples.ENDPOINT_UNAVAILABLE] })
    world.ops.attach(views)
    await world.ops.ready()
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
