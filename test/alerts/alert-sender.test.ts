// When a receiver gets an alert, and what is in it: with a clock that the test moves.

import { describe, expect, test } from 'vitest'
import { createAlertSender, type SenderSettings } from '../../src/alerts/alert-sender.ts'
import type { SenderState } from '../../src/alerts/alert-state.ts'
import type { Alert, OpenCondition, Sent, Situation } from '../../src/alerts/types.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { condition } from '../support/alert-world.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'

const hourMs = 3_600_000
const sentWell: Sent = { kind: 'sent', detail: 'HTTP 200', warning: null }

const failed = (why: string, more: Partial<Extract<Sent, { kind: 'failed' }>> = {}): Sent => ({
  kind: 'failed',
  why,
  act: 'Nothing.',
  retryAfterMs: null,
  mayHaveArrived: false,
  ...more,
})

type World = {
  settings?: Partial<SenderSettings>
  stored?: SenderState
  send?: (alert: Alert, ends: AbortSignal) => Promise<Sent>
}

function world({ settings: more = {}, stored, send }: World = {}) {
  const clock = createFakeClock()
  const alerts: Alert[] = []
  const events: GatewayEvent[] = []
  const saves: SenderState[] = []
  let situation: Situation = {
    verdict: 'ok',
    sentence: 'All is well.',
    isReady: true,
    isComplete: true,
    conditions: [],
  }
  const answer = { sent: sentWell }
  let ids = 0
  const settings: SenderSettings = {
    name: 'chat',
    receiver: {
      type: 'webhook',
      target: 'https://chat',
      timeoutMs: 10_000,
      check: async () => sentWell,
      async send(alert, ends) {
        alerts.push(alert)
        return send?.(alert, ends) ?? answer.sent
      },
    },
    targetId: 'chat',
    filter: { from: 'warning', only: null, except: [] },
    waitMs: 10_000,
    repeatMs: 24 * hourMs,
    perHour: 12,
    digestAt: null,
    ...more,
  }
  const sender = createAlertSender(
    {
      clock,
      random: () => 1,
      newId: () => `id-${(ids += 1)}`,
      emit: (event) => void events.push(event),
      alertBase: () => ({ gateway: 'depot', version: '1', page: null }),
      save: async () => void saves.push(structuredClone(sender.state())),
    },
    settings,
    stored ?? null,
  )
  return {
    clock,
    sender,
    settings,
    alerts,
    events,
    saves,
    answer,
    is: (conditions: OpenCondition[], other: Partial<Situation> = {}) => {
      situation = { ...situation, conditions, ...other }
    },
    async pass(ms: number) {
      for (let past = 0; past < ms; past += 1000) {
        await clock.advance(Math.min(1000, ms - past))
        sender.look(situation)
        await turn()
      }
    },
    /** Dead letters come and go, each for a minute. */
    async flap(rounds: number) {
      for (let round = 0; round < rounds; round += 1) {
        situation = { ...situation, conditions: round % 2 === 0 ? [deadLetters] : [] }
        await this.pass(60_000)
      }
    },
    /** What each alert said, in short. */
    said: () =>
      alerts.map(({ changes, omitted }) =>
        [...changes.map(({ kind, code }) => `${kind} ${code}`), ...(omitted > 0 ? [`+${omitted}`] : [])].join(
          ', ',
        ),
      ),
  }
}

const deadLetters = condition('DEAD_LETTERS')
const full = condition('SPOOL_FULL', { severity: 'critical' })
const stale = condition('MAPPING_STALE', { severity: 'warning' })

describe('a receiver', () => {
  test('gets what is raised within `wait` as one alert, the worst first, and later that it is cleared', async () => {
    const { is, pass, said, alerts } = world()
    is([deadLetters])
    await pass(5000)
    // Conditions have more than alerts say.
    is([deadLetters, Object.assign({ lastAt: 1 }, full)])
    await pass(5000)
    expect(said()).toEqual([])
    await pass(2000)
    expect(said()).toEqual(['raised SPOOL_FULL, raised DEAD_LETTERS'])
    expect(alerts[0]).toMatchObject({ open: 2, gateway: 'depot', receiver: 'chat', id: 'id-1' })
    expect(alerts[0]?.headline).toBe('RAISED critical SPOOL_FULL: What SPOOL_FULL is. (and 1 more)')
    expect(Object.keys(alerts[0]!.changes[0]!)).not.toContain('lastAt')
    await pass(60_000)
    is([deadLetters])
    await pass(12_000)
    expect(said()).toEqual(['raised SPOOL_FULL, raised DEAD_LETTERS', 'cleared SPOOL_FULL'])
    expect(alerts[1]?.changes[0]?.clearedAt).toBeGreaterThan(full.since)
  })

  test('gets nothing of what is raised and cleared within `wait`, and the next alert has the number', async () => {
    const { is, pass, said, sender } = world()
    is([deadLetters])
    await pass(5000)
    is([])
    await pass(60_000)
    expect(said()).toEqual([])
    is([full])
    await pass(12_000)
    expect(said()).toEqual(['raised SPOOL_FULL, +1'])
    expect(sender.view()).toMatchObject({ sent: 1, dropped: 1, waiting: 0 })
  })

  test('gets only what its filter lets through', async () => {
    const { is, pass, said } = world({
      settings: { filter: { from: 'error', only: null, except: ['DEAD_LETTERS'] } },
    })
    is([deadLetters, full, stale])
    await pass(12_000)
    expect(said()).toEqual(['raised SPOOL_FULL'])
  })

  test('gets a condition again when it is worse, and when it is still raised after `repeat`', async () => {
    const { is, pass, said } = world({ settings: { repeatMs: hourMs } })
    is([stale])
    await pass(12_000)
    is([{ ...stale, severity: 'error' }])
    await pass(12_000)
    await pass(hourMs)
    await pass(12_000)
    expect(said()).toEqual(['raised MAPPING_STALE', 'worsened MAPPING_STALE', 'repeated MAPPING_STALE'])
  })

  test('is not sent that it fails itself', async () => {
    const { is, pass, said } = world()
    is([condition('ALERTS_FAILING', { key: 'chat' }), condition('ALERTS_FAILING', { key: 'mail' })])
    await pass(12_000)
    expect(said()).toEqual(['raised ALERTS_FAILING'])
  })
})

describe('a receiver that fails', () => {
  test('is tried again at growing intervals, with what is different then, and the id of the same alert', async () => {
    const { is, pass, alerts, said, answer, events, sender } = world()
    answer.sent = failed('HTTP 500')
    is([deadLetters])
    await pass(11_000)
    await pass(5000)
    await pass(10_000)
    expect(alerts.map(({ id }) => id)).toEqual(['id-1', 'id-1', 'id-1'])
    expect(events.map((event) => ('retryInMs' in event ? event.retryInMs : event.kind))).toEqual([
      5000, 10_000, 20_000,
    ])
    is([full])
    answer.sent = sentWell
    await pass(21_000)
    expect(said().at(-1)).toBe('raised SPOOL_FULL, +1')
    expect(alerts.at(-1)?.id).toBe('id-2')
    expect(events.slice(-2).map(({ kind }) => kind)).toEqual(['alert_sent', 'alert_receiver_works'])
    expect(sender.view()).toMatchObject({ sent: 1, failed: 3, dropped: 1, failures: 0, waiting: 0 })
  })

  test('waits as long as it is asked to, at most an hour', async () => {
    const { is, pass, alerts, answer } = world()
    answer.sent = failed('HTTP 429', { retryAfterMs: 600_000 })
    is([deadLetters])
    await pass(12_000)
    await pass(590_000)
    expect(alerts).toHaveLength(1)
    answer.sent = failed('HTTP 429', { retryAfterMs: 1e12 })
    await pass(20_000)
    expect(alerts).toHaveLength(2)
    await pass(hourMs + 10_000)
    expect(alerts).toHaveLength(3)
  })

  test('for a day has one alert waiting, whatever happens meanwhile', async () => {
    const { is, pass, said, answer, sender } = world()
    answer.sent = failed('refused')
    for (let minute = 0; minute < 200; minute += 1) {
      is(minute % 2 === 0 ? [deadLetters] : [full])
      await pass(20_000)
    }
    expect(sender.view().waiting).toBe(1)
    expect(JSON.stringify(sender.state()).length).toBeLessThan(500)
    answer.sent = sentWell
    await pass(900_000)
    expect(said().at(-1)).toMatch(/^raised SPOOL_FULL, \+\d+$/)
  })

  test('that never ends a try is left, and tried again', async () => {
    const { is, pass, alerts, sender } = world({ send: () => new Promise(() => undefined) })
    is([deadLetters])
    await pass(10_000 + 10_000 + 3000 + 2000)
    expect(sender.view()).toMatchObject({ failed: 1, lastFailure: 'It took longer than 10 s' })
    await pass(6000)
    expect(alerts).toHaveLength(2)
  })

  test.each([
    [true, ['raised DEAD_LETTERS', 'cleared DEAD_LETTERS']],
    [false, ['raised DEAD_LETTERS']],
  ])('and may have got the alert (%s) is sent its end, else nothing', async (mayHaveArrived, expected) => {
    const { is, pass, said, answer } = world()
    answer.sent = failed('no answer', { mayHaveArrived })
    is([deadLetters])
    await pass(11_000)
    answer.sent = sentWell
    is([])
    await pass(60_000)
    expect(said()).toEqual(expected)
  })

  test('that throws has failed', async () => {
    const { is, pass, sender } = world({ send: () => Promise.reject(new Error('a fault')) })
    is([deadLetters])
    await pass(12_000)
    expect(sender.view().lastFailure).toContain('a fault')
  })
})

describe('a condition that comes and goes for hours', () => {
  test('gives at most `max_per_hour` alerts an hour, then one with the number of the others', async () => {
    const { clock, is, pass, alerts, said, sender } = world({ settings: { perHour: 6 } })
    const times: number[] = []
    for (let round = 0; round < 240; round += 1) {
      is(round % 2 === 0 ? [deadLetters] : [])
      const before = alerts.length
      await pass(60_000)
      times.push(...alerts.slice(before).map(() => clock.monotonic()))
    }
    for (const at of times)
      expect(times.filter((other) => other >= at && other < at + hourMs).length).toBeLessThanOrEqual(6)
    expect(alerts.length).toBeGreaterThan(10)
    const changes = alerts.reduce((sum, one) => sum + one.changes.length, 0)
    expect(sender.view().dropped).toBeGreaterThan(100)
    expect(2 * sender.view().dropped + changes).toBeGreaterThan(230)
    expect(said().some((text) => /\+\d\d/.test(text))).toBe(true)
  })

  test('does not keep another one back', async () => {
    const one = world({ settings: { perHour: 6 } })
    await one.flap(20)
    one.is([full])
    await one.pass(12_000)
    expect(one.said().at(-1)).toMatch(/^raised SPOOL_FULL/)
  })

  test('with thousands of others gives no more alerts, and keeps little', async () => {
    const { is, pass, alerts, sender } = world()
    for (let round = 0; round < 150; round += 1) {
      is(Array.from({ length: 64 }, (_, one) => condition('BATCH_STUCK', { key: `batch-${round}-${one}` })))
      await pass(6000)
    }
    expect(alerts.length).toBeLessThanOrEqual(8)
    expect(sender.state().reported.length).toBeLessThanOrEqual(128)
    expect(sender.view().dropped).toBeGreaterThan(5000)
  })
})

describe('after a restart', () => {
  async function restarted(conditions: OpenCondition[], after: OpenCondition[], ms: number) {
    const first = world()
    first.is(conditions)
    await first.pass(12_000)
    const second = world({ stored: first.sender.state() })
    second.is(after)
    await second.pass(ms)
    return { ...second, said: second.said() }
  }

  test.each([
    ['nothing is sent twice', [deadLetters], 300_000, []],
    ['what is not raised again is cleared after two minutes', [], 140_000, ['cleared DEAD_LETTERS']],
  ])('%s', async (_, after, ms, expected) => {
    expect((await restarted([deadLetters], after, ms)).said).toEqual(expected)
  })

  test('a condition that is raised again within two minutes was never cleared', async () => {
    const { is, pass, alerts } = await restarted([deadLetters], [], 110_000)
    is([deadLetters])
    await pass(300_000)
    expect(alerts).toEqual([])
  })

  test('nothing is cleared while the gateway is not ready', async () => {
    const { is, pass, said, alerts } = await restarted([deadLetters], [], 0)
    is([], { isComplete: false })
    await pass(hourMs)
    expect(said).toEqual([])
    is([], { isComplete: true })
    await pass(140_000)
    expect(alerts.map(({ changes }) => changes[0]?.kind)).toEqual(['cleared'])
  })

  test('an alert whose outcome is not known is sent again under its id, and cleared where it is over', async () => {
    const first = world({ send: () => new Promise(() => undefined) })
    first.is([deadLetters])
    await first.pass(12_000)
    expect(first.alerts.map(({ id }) => id)).toEqual(['id-1'])
    // A kill takes what is in memory: the disk has what was saved before the first byte left.
    const stored = first.saves.at(-1)!
    const [again, over] = [world({ stored }), world({ stored })]
    again.is([deadLetters])
    await again.pass(12_000)
    expect(again.alerts.map(({ id }) => id)).toEqual(['id-1'])
    over.is([])
    await over.pass(140_000)
    expect(over.said()).toEqual(['cleared DEAD_LETTERS'])
  })

  test('the limit of the hour still holds', async () => {
    const first = world({ settings: { perHour: 3 } })
    for (const conditions of [[deadLetters], [], [deadLetters]]) {
      first.is(conditions)
      await first.pass(12_000)
    }
    expect(first.alerts.filter(({ heldBack }) => heldBack === null)).toHaveLength(2)
    const second = world({ settings: { perHour: 3 }, stored: first.sender.state() })
    second.is([])
    await second.pass(300_000)
    expect(second.alerts).toEqual([])
  })
})

describe('where there are more conditions than are kept', () => {
  test('one that is missing from the list is not cleared', async () => {
    const { is, pass, said } = world()
    is([deadLetters, full])
    await pass(12_000)
    is([full], { isComplete: false })
    await pass(hourMs)
    is([deadLetters, full], { isComplete: true })
    await pass(hourMs)
    expect(said()).toHaveLength(1)
  })
})

describe('at the limit of the hour', () => {
  const flood = Array.from({ length: 5 }, (_, n) => condition(`C_${n}`))

  async function limited() {
    const made = world({ settings: { perHour: 3 } })
    for (let n = 1; n <= 5; n += 1) {
      made.is(flood.slice(0, n))
      await made.pass(12_000)
    }
    return made
  }

  test('one alert says how many changes wait, and until when', async () => {
    const { alerts, clock, sender, pass, said } = await limited()
    expect(said()).toEqual(['raised C_0', 'raised C_1', 'raised C_2', ''])
    const { heldBack, headline } = alerts[3]!
    expect(heldBack).toMatchObject({ changes: 1 })
    expect(headline).toMatch(/^Limit of alerts reached: 1 change waits until 2/)
    expect(sender.view().heldBack).toMatchObject({ changes: 2 })
    await pass(heldBack!.untilAt - clock.now() + 2000)
    expect(said().at(-1)).toBe('raised C_3, raised C_4')
    expect(sender.view().heldBack).toBeNull()
  })

  test('what is critical is sent all the same', async () => {
    const { is, pass, said } = await limited()
    is([...flood, full])
    await pass(12_000)
    expect(said().at(-1)).toContain('raised SPOOL_FULL')
  })

  test('a flood of critical conditions has its limit, too', async () => {
    const { is, pass, alerts } = await limited()
    for (let n = 0; n < 20; n += 1) {
      is([...flood, condition(`K_${n}`, { severity: 'critical' })])
      await pass(60_000)
    }
    expect(alerts.length).toBeLessThan(7)
  })
})

describe('a condition of several devices', () => {
  test('is sent again when one more has it, not when one has it no more', async () => {
    const { is, pass, said } = world()
    for (const causes of [['truck-1'], ['truck-1', 'truck-2'], ['truck-2'], ['truck-2', 'truck-1']]) {
      is([condition('DEVICE_SILENT', { causes })])
      await pass(12_000)
    }
    expect(said()).toEqual(['raised DEVICE_SILENT', 'changed DEVICE_SILENT'])
  })
})

describe('a condition that a person knows of', () => {
  test('is not repeated, and is sent where it gets worse, where more have it, and when it is over', async () => {
    const { is, pass, said } = world({ settings: { repeatMs: hourMs } })
    const known = { untilAt: Number.MAX_SAFE_INTEGER }
    const silent = (causes: string[], more: Partial<OpenCondition> = {}) =>
      condition('DEVICE_SILENT', { causes, severity: 'warning', ...more })
    is([silent(['truck-1'])])
    await pass(12_000)
    is([silent(['truck-1'], { known })])
    await pass(3 * hourMs)
    expect(said()).toEqual(['raised DEVICE_SILENT'])
    const later = [
      [silent(['truck-1', 'truck-2'], { known })],
      [silent(['truck-1', 'truck-2'], { known, severity: 'error' })],
      [],
    ]
    for (const conditions of later) {
      is(conditions)
      await pass(12_000)
    }
    expect(said().slice(1)).toEqual([
      'changed DEVICE_SILENT',
      'worsened DEVICE_SILENT',
      'cleared DEVICE_SILENT',
    ])
  })
})

describe('the summary of the day', () => {
  test('comes once a day at its time, with all that is open', async () => {
    const { clock, is, pass, alerts } = world({ settings: { digestAt: 7 * 60 } })
    is([condition('DEVICE_SILENT', { causes: ['truck-1'] })])
    for (let hour = 0; hour < 48; hour += 1) await pass(hourMs)
    const digests = alerts.filter(({ digest }) => digest !== null)
    expect(digests).toHaveLength(2)
    for (const { createdAt, digest } of digests) {
      expect(new Date(createdAt).getHours()).toBe(7)
      expect(digest).toMatchObject([{ code: 'DEVICE_SILENT', causes: ['truck-1'] }])
    }
    expect(clock.now()).toBeGreaterThan(digests[1]!.createdAt)
  })
})

describe('a step of the clock', () => {
  test.each([-400 * 24 * hourMs, -hourMs])('of %d ms changes no wait and no repeat', async (stepMs) => {
    const { clock, is, pass, said } = world({ settings: { repeatMs: hourMs } })
    is([deadLetters])
    await pass(12_000)
    clock.stepWall(stepMs)
    is([deadLetters, full])
    await pass(12_000)
    expect(said()).toEqual(['raised DEAD_LETTERS', 'raised SPOOL_FULL'])
    await pass(hourMs + 60_000)
    expect(said().slice(2).join(', ')).toContain('repeated DEAD_LETTERS')
  })

  test('back does not keep the limit of the hour for longer than an hour', async () => {
    const one = world({ settings: { perHour: 3 } })
    const sent = () => one.alerts.filter(({ heldBack }) => heldBack === null)
    await one.flap(6)
    expect(sent()).toHaveLength(2)
    one.clock.stepWall(-400 * 24 * hourMs)
    await one.flap(62)
    expect(sent().length).toBeGreaterThan(2)
  })

  test('forward repeats once, and no limit of the past stays', async () => {
    const { clock, is, pass, said } = world()
    is([deadLetters])
    await pass(12_000)
    clock.stepWall(400 * 24 * hourMs)
    await pass(60_000)
    clock.stepWall(-400 * 24 * hourMs)
    await pass(60_000)
    expect(said()).toEqual(['raised DEAD_LETTERS', 'repeated DEAD_LETTERS'])
  })
})

describe('other settings', () => {
  test('with the same target keep what the receiver knows; what it does not get any more is not cleared', async () => {
    const { is, pass, said, sender, settings } = world()
    is([deadLetters, stale])
    await pass(12_000)
    sender.use({ ...settings, filter: { from: 'error', only: null, except: [] } }, 'settings')
    await pass(300_000)
    is([])
    await pass(12_000)
    expect(said()).toEqual(['raised DEAD_LETTERS, raised MAPPING_STALE', 'cleared DEAD_LETTERS'])
  })

  test('that are the same do not shorten the wait after a failed try', async () => {
    const { is, pass, alerts, sender, settings, answer } = world()
    is([deadLetters])
    answer.sent = failed('HTTP 500', { retryAfterMs: 600_000 })
    await pass(12_000)
    sender.use({ ...settings }, 'nothing')
    await pass(60_000)
    expect(alerts).toHaveLength(1)
    sender.use({ ...settings }, 'settings')
    await pass(2000)
    expect(alerts).toHaveLength(2)
  })

  test('with another target begin anew, and end the condition of the old one', async () => {
    const { is, pass, said, sender, settings, answer, events } = world()
    is([deadLetters])
    answer.sent = failed('HTTP 404')
    await pass(12_000)
    answer.sent = sentWell
    sender.use(settings, 'target')
    await pass(12_000)
    expect(said()).toEqual(['raised DEAD_LETTERS', 'raised DEAD_LETTERS'])
    expect(events.map(({ kind }) => kind)).toEqual(['alert_failed', 'alert_receiver_removed', 'alert_sent'])
  })
})
