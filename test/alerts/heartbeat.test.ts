// When a heartbeat is sent, and which form: with a clock that the test moves.

import { describe, expect, test } from 'vitest'
import { createHeartbeat, type HeartbeatSettings } from '../../src/alerts/heartbeat.ts'
import type { Sent, Situation } from '../../src/alerts/types.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'

const minuteMs = 60_000

function world(more: Partial<HeartbeatSettings> = {}, hasUnhealthyUrl = false) {
  const clock = createFakeClock()
  const sent: { healthy: boolean; atMs: number }[] = []
  const events: GatewayEvent[] = []
  const answer: { sent: Sent | null } = { sent: { kind: 'sent', detail: 'HTTP 200', warning: null } }
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
    everyMs: 5 * minuteMs,
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

const failed: Sent = {
  kind: 'failed',
  why: 'HTTP 500',
  act: 'Nothing.',
  retryAfterMs: null,
  mayHaveArrived: false,
}

describe('a heartbeat', () => {
  test('is sent at once and every n minutes, whatever the wall clock does', async () => {
    const { pass, sent, clock } = world()
    await pass(6 * minuteMs)
    clock.stepWall(-400 * 24 * 60 * minuteMs)
    await pass(5 * minuteMs)
    clock.stepWall(800 * 24 * 60 * minuteMs)
    await pass(5 * minuteMs)
    expect(sent.map(({ atMs }) => atMs / 1000)).toEqual([1, 301, 601, 901])
  })

  test('stays out while the gateway is not healthy, or not ready, and comes back at once', async () => {
    const { pass, sent, situation } = world()
    await pass(1000)
    situation.verdict = 'not_delivering'
    await pass(20 * minuteMs)
    expect(sent).toHaveLength(1)
    situation.verdict = 'degraded'
    situation.isReady = false
    await pass(5 * minuteMs)
    expect(sent).toHaveLength(1)
    situation.isReady = true
    await pass(2000)
    expect(sent.map(({ healthy }) => healthy)).toEqual([true, true])
  })

  test('with an unhealthy_url says so at once, at most every 10 s', async () => {
    const { pass, sent, situation } = world({ healthyVerdicts: ['ok'] }, true)
    await pass(minuteMs)
    situation.verdict = 'degraded'
    await pass(1000)
    expect(sent.map(({ healthy }) => healthy)).toEqual([true, false])
    for (let round = 0; round < 60; round += 1) {
      situation.verdict = round % 2 === 0 ? 'ok' : 'degraded'
      await pass(1000)
    }
    expect(sent.length).toBeLessThanOrEqual(9)
  })

  test('that fails is repeated, and counts as failing after three tries', async () => {
    const { pass, sent, answer, events, heartbeat } = world()
    answer.sent = failed
    await pass(45_000)
    expect(sent.map(({ atMs }) => atMs / 1000)).toEqual([1, 11, 31])
    expect(heartbeat.view()).toMatchObject({ failures: 3, failed: 3, lastFailure: 'HTTP 500' })
    expect(heartbeat.states()).toMatchObject([{ code: 'ALERTS_FAILING', failures: 3, why: 'HTTP 500' }])
    answer.sent = { kind: 'sent', detail: '', warning: null }
    await pass(30_000)
    expect(events.map(({ kind }) => kind)).toEqual(['alert_failed', 'alert_failed', 'alert_failed'])
    expect(heartbeat.states()).toEqual([])
    await pass(5 * minuteMs)
    expect(sent).toHaveLength(5)
  })

  test('that hangs is one request at a time', async () => {
    const { pass, sent, answer } = world()
    answer.sent = null
    await pass(12_000)
    expect(sent).toHaveLength(1)
    await pass(40_000)
    expect(sent.length).toBeLessThanOrEqual(3)
  })
})
