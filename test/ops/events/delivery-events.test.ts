// The conditions and log lines of the endpoint: endpoint, credentials, clock, providers.

import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { ProviderName } from '../../../src/domain/ids.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createEventConditions } from '../../../src/ops/conditions/event-conditions.ts'
import { levelOf, lineOf } from '../../../src/ops/logging/log-line.ts'
import { get, handClock, opsWorld } from '../../support/ops-world.ts'

const provider = 'north' as ProviderName
const hourMs = 3_600_000

function world() {
  const conditions = createConditions({ clock: handClock() })
  return { conditions, apply: createEventConditions(conditions).apply, open: () => conditions.open() }
}

const unavailable = (why: string, act: string | null = null): GatewayEvent => ({
  kind: 'endpoint_unavailable',
  provider,
  failures: 5,
  why,
  requestId: null,
  retryInMs: 1000,
  act,
})

describe('conditions of the endpoint', () => {
  test.each<[string, string, GatewayEvent, GatewayEvent]>([
    [
      'CLOCK_OFF',
      'warning',
      { kind: 'clock_off', provider, offsetMs: hourMs },
      { kind: 'clock_right', provider, offsetMs: 20 },
    ],
    [
      'CREDENTIALS_STALE',
      'warning',
      { kind: 'credentials_stale', provider, why: 'HTTP 500.', expiresAt: Date.UTC(2026, 10, 21) },
      { kind: 'credentials_refreshed', provider },
    ],
    [
      'PROVIDER_UNKNOWN',
      'error',
      { kind: 'provider_unknown', provider, payloads: 12 },
      { kind: 'provider_unknown', provider, payloads: 0 },
    ],
  ])('%s, a %s, is open until it is over, for its provider alone', (code, severity, opens, closes) => {
    const { apply, open } = world()
    apply(opens)
    expect(open()).toMatchObject([{ code, severity, key: 'north' }])
    apply({ ...closes, provider: 'south' as ProviderName } as GatewayEvent)
    expect(open()).toHaveLength(1)
    apply(closes)
    expect(open()).toEqual([])
  })

  test('an unreachable service says what to do about its cause', () => {
    const { apply, open } = world()
    apply(unavailable('our clock says 1970-01-01', 'Set the time of this machine.'))
    expect(open()[0]).toMatchObject({
      what: expect.stringContaining('our clock says 1970-01-01'),
      act: 'Set the time of this machine. Delivery resumes automatically.',
    })
    apply(unavailable('nothing listens there', 'Check scheme, host and port in delivery.base_url.'))
    expect(open()[0]?.act).toMatch(
      /base_url\. Delivery resumes automatically, or after the restart where RESTART_NEEDED names delivery\.$/,
    )
    apply(unavailable('500'))
    expect(open()[0]?.act).toMatch(/If this continues, ask the support/)
  })

  test('says by how much the clock is off, which way, and until when old credentials serve', () => {
    const { apply, open } = world()
    apply({ kind: 'clock_off', provider, offsetMs: hourMs })
    expect(open()[0]?.what).toBe('The clock of this machine is 1 h behind the service.')
    apply({ kind: 'clock_off', provider, offsetMs: -hourMs })
    expect(open()[0]?.what).toContain('1 h ahead of')
    apply({ kind: 'credentials_stale', provider, why: 'HTTP 500.', expiresAt: Date.UTC(2026, 10, 21) })
    expect(open().at(-1)?.why).toBe('HTTP 500. The old ones expire at 2026-11-21T00:00:00.000Z.')
  })
})

describe('log lines of the endpoint', () => {
  test.each<[GatewayEvent, string, RegExp]>([
    [{ kind: 'clock_off', provider, offsetMs: -90_000 }, 'warn', /1 min 30 s ahead of/],
    [{ kind: 'clock_right', provider, offsetMs: 0 }, 'info', /agrees with the service again/],
    [{ kind: 'credentials_stale', provider, why: 'a\nb', expiresAt: null }, 'warn', /old ones stay in use/],
    [{ kind: 'credentials_refreshed', provider }, 'info', /can be refreshed again/],
    [
      { kind: 'provider_unknown', provider, payloads: 3 },
      'error',
      /"north" is not in the config\. 3 payloads kept/,
    ],
    [{ kind: 'provider_unknown', provider, payloads: 0 }, 'info', /No payloads wait .* any more/],
  ])('%j', (event, level, words) => {
    expect([levelOf(event), lineOf(event).text]).toEqual([level, expect.stringMatching(words)])
  })
})

describe('POST /control/probe', () => {
  test('is answered when the result is known, on the control socket only', async () => {
    await using ops = opsWorld()
    await ops.ops.start()
    const unexpectedCall = () => Promise.reject(new Error('unexpected call'))
    let probes = 0
    const probe = () => {
      probes += 1
      return Promise.resolve({ now: 7, providers: [] })
    }
    ops.ops.attach({
      control: {
        reload: unexpectedCall,
        remap: unexpectedCall,
        mute: () => 0,
        snapshotsFolder: '/var/lib/gateway/snapshots',
        forget: unexpectedCall,
        check: unexpectedCall,
        probe,
      },
    })
    const answer = await get(ops.ops.control(), '/control/probe', { method: 'POST' })
    expect([answer.status, answer.text]).toEqual([200, '{"now":"1970-01-01T00:00:00.007Z","providers":[]}\n'])
    const page = await get(ops.ops.url(), '/control/probe', { method: 'POST' })
    expect([page.status, probes]).toEqual([403, 1])
  })
})
