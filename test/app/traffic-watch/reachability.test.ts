import { describe, expect, test } from 'vitest'
import type { LinkView, SourceTraits } from '../../../src/ingest/message-sources/types.ts'
import { isReachable } from '../../../src/app/traffic-watch/reachability.ts'

type Role = 'active' | 'standby' | null

function engine(roles: readonly Role[], more: { lastMessageAt?: number; outstanding?: number } = {}) {
  const { lastMessageAt = null, outstanding = 0 } = more
  const traits: SourceTraits = {
    ackKind: 'up_to',
    partitioned: true,
    windowMax: 10,
    holdMs: null,
    redelivers: 'after_hold',
  }
  const link: LinkView = {
    clientId: 'a',
    state: 'connected',
    since: 0,
    sinceMs: 0,
    sessionPresent: null,
    losses: 0,
    lastFault: null,
    lastAct: null,
    messages: 0,
    isPausedLong: false,
    lastMessageMs: null,
  }
  return {
    lastMessageAt,
    traits,
    links: [link],
    partitions: roles.map((role, index) => ({
      partition: `fleet-${index}`,
      member: 'a',
      role,
      outstanding,
      lag: 0,
    })),
  }
}

const reached = (source: ReturnType<typeof engine>, holds: boolean | null = null) =>
  isReachable({ isListening: false, sources: [source], custody: holds === null ? null : { holds } })

describe('devices can reach the gateway', () => {
  test('by a partition that is taken, unless its window is used up or custody takes nothing', () => {
    expect(reached(engine(['active', 'standby']))).toBe(true)
    expect(reached(engine(['active', 'standby'], { outstanding: 10 }))).toBe(false)
    expect(reached(engine(['active']), false)).toBe(true)
    expect(reached(engine(['active']), true)).toBe(false)
  })

  test('not where other gateways have all partitions', () => {
    expect(reached(engine(['standby', 'standby']))).toBe(false)
    expect(reached(engine(['standby', 'standby'], { lastMessageAt: 5 }))).toBe(false)
  })

  test('by queues of RabbitMQ whose role is not known, where a message came before', () => {
    expect(reached(engine([null, null]))).toBe(false)
    expect(reached(engine([null, null], { lastMessageAt: 5 }))).toBe(true)
  })

  test('by a listener', () => {
    const only = { isListening: true, sources: [] }
    expect(isReachable({ ...only, custody: null })).toBe(true)
    expect(isReachable({ ...only, isListening: false, custody: null })).toBe(false)
  })
})
