// When a heartbeat is sent, and which form: with a clock that the test moves.

import { expect } from 'vitest'
import { createHeartbeat, type HeartbeatSettings } from '../../src/alerts/heartbeat.ts'
import type { Sent, Situation } from '../../src/alerts/types.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'
import { stepCases } from '../support/step-cases.ts'

type Given = Partial<HeartbeatSettings> & { hasUnhealthyUrl?: boolean }
type World = ReturnType<typeof world>

const well: Sent = { kind: 'sent', detail: 'HTTP 200', warning: null }
const fails: Sent = {
  kind: 'failed',
  why: 'HTTP 500',
  act: 'Nothing.',
  retryAfterMs: null,
  mayHaveArrived: false,
}

function world({ hasUnhealthyUrl = false, ...more }: Given = {}) {
  const clock = createFakeClock()
  const sent: { healthy: boolean; atMs: number }[] = []
  const events: GatewayEvent[] = []
  const answer: { sent: Sent | null } = { sent: well }
  const situation: Situation = {
    verdict: 'ok',
    sentence: 'Well.',
    isReady: true,
    isComplete: true,
    conditions: [],
    endOf: () => null,
  }
  const settings: HeartbeatSettings = {
    name: 'monitor',
    everyMs: 300_000,
    healthyVerdicts: ['ok', 'degraded'],
    request: {
      target: 'https://hc/***',
      timeoutMs: 10_000,
      hasUnhealthyUrl,
      check: async () => answer.sent!,
      send(_, healthy) {
        sent.push({ healthy, atMs: clock.monotonic() })
        return answer.sent === null ? new Promise(() => undefined) : Promise.resolve(answer.sent)
      },
    },
    ...more,
  }
  const heartbeat = createHeartbeat({ clock, emit: (event) => void events.push(event) }, settings)
  return {
    sent,
    events,
    answer,
    situation,
    heartbeat,
    clock,
    async pass(ms: number) {
      for (let past = 0; past < ms; past += 1000) {
        await clock.advance(1000)
        heartbeat.look(situation)
        await turn()
      }
    },
  }
}

stepCases(import.meta.filename, world, {
  pass: ({ pass }: World, ms: number) => pass(ms),
  'pass more': ({ pass }: World, ms: number) => pass(ms),
  stepClock: ({ clock }: World, ms: number) => clock.stepWall(ms),
  is: ({ situation }: World, more: Partial<Situation>) => Object.assign(situation, more),
  alternate: async ({ situation, pass }: World, rounds: number) => {
    for (let round = 0; round < rounds; round += 1) {
      situation.verdict = round % 2 === 0 ? 'ok' : 'degraded'
      await pass(1000)
    }
  },
  answers: ({ answer }: World, how: 'well' | 'fails' | 'hangs') =>
    void (answer.sent = { well, fails, hangs: null }[how]),
  sentAt: ({ sent }: World, seconds: number[]) =>
    expect(sent.map(({ atMs }) => atMs / 1000)).toEqual(seconds),
  healthy: ({ sent }: World, expected: boolean[]) =>
    expect(sent.map(({ healthy }) => healthy)).toEqual(expected),
  count: ({ sent }: World, count: number) => expect(sent).toHaveLength(count),
  countAtMost: ({ sent }: World, most: number) => expect(sent.length).toBeLessThanOrEqual(most),
  view: ({ heartbeat }: World, expected: object) => expect(heartbeat.view()).toMatchObject(expected),
  states: ({ heartbeat }: World, expected: object[]) => expect(heartbeat.states()).toMatchObject(expected),
  events: ({ events }: World, expected: string[]) => expect(events.map(({ kind }) => kind)).toEqual(expected),
})
