// When a receiver gets an alert, and what is in it: with a clock that the test moves.

import { expect, test } from 'vitest'
import { bodyOf } from '../../src/alerts/alert-body.ts'
import { createAlertSender, type SenderSettings } from '../../src/alerts/alert-sender.ts'
import type { SenderState } from '../../src/alerts/alert-state.ts'
import type { Alert, OpenCondition, Sent, Situation } from '../../src/alerts/types.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { condition } from '../support/alert-world.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'
import { stepCases } from '../support/step-cases.ts'

const hourMs = 3_600_000
const sentWell: Sent = { kind: 'sent', detail: 'HTTP 200', warning: null }

type Failed = Extract<Sent, { kind: 'failed' }>
type Given = { settings?: Partial<SenderSettings>; sending?: 'hangs' | 'throws' } | undefined

/** A receiver, as `given` says, with what it knew before. */
function world({ settings: more = {}, sending }: NonNullable<Given>, stored: SenderState | null) {
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
    endOf: () => null,
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
      async send(alert) {
        alerts.push(alert)
        if (sending === 'throws') throw new Error('a fault')
        return sending === 'hangs' ? new Promise(() => undefined) : answer.sent
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
    stored,
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
    async pass(ms: number, stepMs = 1000) {
      for (let past = 0; past < ms; past += stepMs) {
        await clock.advance(Math.min(stepMs, ms - past))
        sender.look(situation)
        await turn()
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

const severities: Record<string, OpenCondition['severity']> = {
  SPOOL_FULL: 'critical',
  MAPPING_STALE: 'warning',
}

/** A name, or a condition with other fields. */
type Written = string | (Partial<OpenCondition> & { code: string })

function conditionOf(written: Written): OpenCondition {
  const { code, ...more } = typeof written === 'string' ? { code: written } : written
  return condition(code, { severity: severities[code] ?? 'error', ...more })
}

const flood = Array.from({ length: 5 }, (_, n) => condition(`C_${n}`))

/** A restart puts another one in its place. */
function start(given: Given) {
  return { given: given ?? {}, of: world(given ?? {}, null) }
}

type Started = ReturnType<typeof start>

stepCases(import.meta.filename, start, {
  is: ({ of }: Started, conditions: Written[]) => of.is(conditions.map(conditionOf), { isComplete: true }),
  /** There are more conditions than these, or the gateway is not ready. */
  isIncomplete: ({ of }: Started, conditions: Written[]) =>
    of.is(conditions.map(conditionOf), { isComplete: false }),
  pass: ({ of }: Started, ms: number) => of.pass(ms),
  /** Each of these lists of conditions for a while. */
  follow: async ({ of }: Started, [ms, ...lists]: [number, ...Written[][]]) => {
    for (const list of lists) {
      of.is(list.map(conditionOf))
      await of.pass(ms)
    }
  },
  /** One list after the other, so often. */
  alternate: async ({ of }: Started, [times, ms, ...lists]: [number, number, ...Written[][]]) => {
    for (let n = 0; n < times; n += 1) {
      of.is(lists[n % lists.length]!.map(conditionOf))
      await of.pass(ms)
    }
  },
  answers: ({ of }: Started, fails: Partial<Failed> | 'well') => {
    const failed = {
      kind: 'failed',
      act: 'Nothing.',
      retryAfterMs: null,
      mayHaveArrived: false,
      why: 'no',
    } as const
    of.answer.sent = fails === 'well' ? sentWell : { ...failed, ...fails }
  },
  use: ({ of }: Started, [how, more]: ['settings' | 'target' | 'nothing', Partial<SenderSettings>?]) =>
    of.sender.use({ ...of.settings, ...more }, how),
  stepClock: ({ of }: Started, ms: number) => of.clock.stepWall(ms),
  restart: (one: Started) => void (one.of = world(one.given, one.of.sender.state())),
  /** The disk has what was saved before the first byte left. */
  kill: (one: Started) => void (one.of = world({}, one.of.saves.at(-1)!)),
  said: ({ of }: Started, expected: string[]) => expect(of.said()).toEqual(expected),
  saidLast: ({ of }: Started, expected: string) => expect(of.said().slice(-1)).toEqual([expected]),
  alerts: ({ of }: Started, expected: object[]) => expect(of.alerts).toMatchObject(expected),
  bodyLast: ({ of }: Started, expected: object) => expect(bodyOf(of.alerts.at(-1)!)).toMatchObject(expected),
  /** The names of its fields. */
  firstChange: ({ of }: Started, names: string[]) =>
    expect(Object.keys(of.alerts[0]!.changes[0]!).toSorted()).toEqual(names.toSorted()),
  clearedLater: ({ of }: Started, code: string) => {
    const { clearedAt, since } = of.alerts.at(-1)!.changes.find((one) => one.code === code)!
    expect(clearedAt).toBeGreaterThan(since)
  },
  saidFrom: ({ of }: Started, [from, expected]: [number, string]) =>
    expect(of.said().slice(from).join(', ')).toEqual(expected),
  floodOfCritical: async ({ of }: Started, rounds: number) => {
    for (let n = 0; n < rounds; n += 1) {
      of.is([...flood, condition(`K_${n}`, { severity: 'critical' })])
      await of.pass(60_000)
    }
  },
  countBelow: ({ of }: Started, most: number) => expect(of.alerts.length).toBeLessThan(most),
  count: ({ of }: Started, count: number) => expect(of.alerts).toHaveLength(count),
  /** Without those that say that the limit is reached. */
  countWithin: ({ of }: Started, [least, most]: [number, number]) => {
    const { length } = of.alerts.filter(({ heldBack }) => heldBack === null)
    expect(length).toBeGreaterThanOrEqual(least)
    expect(length).toBeLessThanOrEqual(most)
  },
  view: ({ of }: Started, expected: object) => expect(of.sender.view()).toMatchObject(expected),
  events: ({ of }: Started, expected: object[]) => expect(of.events).toMatchObject(expected),
  stateBelow: ({ of }: Started, bytes: number) =>
    expect(JSON.stringify(of.sender.state()).length).toBeLessThan(bytes),
})

test('a condition that comes and goes for hours gives at most `max_per_hour` alerts an hour, then one with the number of the others', async () => {
  const of = world({ settings: { perHour: 6 } }, null)
  const times: number[] = []
  for (let round = 0; round < 240; round += 1) {
    of.is(round % 2 === 0 ? [condition('DEAD_LETTERS')] : [])
    const before = of.alerts.length
    await of.pass(60_000)
    times.push(...of.alerts.slice(before).map(() => of.clock.monotonic()))
  }
  for (const at of times)
    expect(times.filter((other) => other >= at && other < at + hourMs).length).toBeLessThanOrEqual(6)
  expect(of.alerts.length).toBeGreaterThan(10)
  const changes = of.alerts.reduce((sum, one) => sum + one.changes.length, 0)
  expect(of.sender.view().dropped).toBeGreaterThan(100)
  expect(2 * of.sender.view().dropped + changes).toBeGreaterThan(230)
  expect(of.said().some((text) => /\+\d\d/.test(text))).toBe(true)
})

test('thousands of conditions give no more alerts, and little is kept', async () => {
  const { is, pass, alerts, sender } = world({}, null)
  for (let round = 0; round < 150; round += 1) {
    is(Array.from({ length: 64 }, (_, one) => condition('BATCH_STUCK', { key: `batch-${round}-${one}` })))
    await pass(6000)
  }
  expect(alerts.length).toBeLessThanOrEqual(8)
  expect(sender.state().reported.length).toBeLessThanOrEqual(128)
  expect(sender.view().dropped).toBeGreaterThan(5000)
})

test('at the limit of the hour one alert says how many changes wait, and until when', async () => {
  const { is, alerts, clock, sender, pass, said } = world({ settings: { perHour: 3 } }, null)
  for (let n = 1; n <= 5; n += 1) {
    is(flood.slice(0, n))
    await pass(12_000)
  }
  expect(said()).toEqual(['raised C_0', 'raised C_1', 'raised C_2', ''])
  const { heldBack, headline } = alerts[3]!
  expect(heldBack).toMatchObject({ changes: 1 })
  expect(headline).toMatch(/^Limit of alerts reached: 1 change waits until about 2.*: raised error C_3$/)
  expect(sender.view().heldBack).toMatchObject({ changes: 2 })
  await pass(heldBack!.untilAt - clock.now() + 2000)
  expect(said().at(-1)).toBe('raised C_3, raised C_4')
  expect(sender.view().heldBack).toBeNull()
})

test('the summary of the day comes once a day at its time, with all that is open', async () => {
  const { clock, is, pass, alerts } = world({ settings: { digestAt: 7 * 60 } }, null)
  is([condition('DEVICE_SILENT', { causes: ['truck-1'] })])
  await pass(48 * hourMs, 60_000)
  const digests = alerts.filter(({ digest }) => digest !== null)
  expect(digests).toHaveLength(2)
  for (const { createdAt, digest } of digests) {
    expect(new Date(createdAt).getHours()).toBe(7)
    expect(digest).toMatchObject([{ code: 'DEVICE_SILENT', causes: ['truck-1'] }])
  }
  expect(clock.now()).toBeGreaterThan(digests[1]!.createdAt)
})
