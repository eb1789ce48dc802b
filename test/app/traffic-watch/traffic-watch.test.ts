import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startTrafficWatch } from '../../../src/app/traffic-watch/traffic-watch.ts'
import { isQuietAt, silenceSchema } from '../../../src/ops/silence-config.ts'
import type { ProviderView } from '../../../src/delivery/types.ts'
import type { LaneView } from '../../../src/spool/spool.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { ingestCounters, lane, provider } from '../../support/ops-world.ts'
import { stepCases } from '../../support/step-cases.ts'

const second = 1000
const working = { quiet_hours: '', quiet_days: [] }

async function world(silence: object = working, folder?: string) {
  const spoolPath = folder ?? (await mkdtemp(join(tmpdir(), 'gateway-traffic-')))
  const clock = createFakeClock()
  let counters = ingestCounters()
  let takesIn = true
  let lanes: LaneView[] = []
  let providers: ProviderView[] = []
  const watch = await startTrafficWatch(
    {
      clock,
      counters: () => counters,
      takesIn: () => takesIn,
      notListening: () => undefined,
      addressOf: () => null,
      closed: () => new Set(),
      lanes: () => lanes,
      providers: () => providers,
    },
    { spoolPath, silence: () => silenceSchema.parse(silence) },
  )
  onTestFinished(() => watch.stop())
  const count = (more: Partial<typeof counters>) => {
    counters = { ...counters, ...more }
  }
  return {
    spoolPath,
    clock,
    watch,
    count,
    setTakesIn: (isOpen: boolean) => (takesIn = isOpen),
    waits(more: { lanes: LaneView[]; providers: ProviderView[] }) {
      ;({ lanes, providers } = more)
    },
    /** Messages come, each mapped, one every `everyMs`. */
    async messages(times: number, everyMs: number) {
      for (let n = 0; n < times; n += 1) {
        count({
          received: counters.received + 1,
          mapped: counters.mapped + 1,
          lastMessageAt: clock.now(),
        })
        await clock.advance(everyMs)
      }
    },
    counters: () => counters,
  }
}

type Lane = Parameters<typeof lane>[1]
type Provider = Parameters<typeof provider>[1]

/** A restart puts another one in its place. */
async function start(given: { after?: string; afterSeconds?: number } | undefined) {
  const { after, afterSeconds } = given ?? {}
  const set = afterSeconds === undefined ? after : `${afterSeconds}s`
  const of = await world({ ...working, ...(set !== undefined && { after: set }) })
  return { of, lastAt: 0, startedAt: of.clock.now(), waiting: 0 }
}

type Started = Awaited<ReturnType<typeof start>>

stepCases(import.meta.filename, start, {
  messages: async (one: Started, [times, everyMs]: [number, number]) => {
    await one.of.messages(times, everyMs)
    one.lastAt = one.of.counters().lastMessageAt ?? 0
  },
  /** Five of six are ignored, and one is a dead letter, every 5 s. */
  useless: async ({ of }: Started, ms: number) => {
    for (let passed = 0; passed < ms; passed += 5000) {
      const { received, ignored, dead } = of.counters()
      of.count({
        received: received + 6,
        ignored: ignored + 5,
        dead: dead + 1,
        ignoredByReason: [{ source: 'trucks', reason: 'no fix', count: ignored + 5 }],
        deadByReason: [{ source: 'trucks', reason: 'NOT_JSON', count: dead + 1 }],
      })
      await of.clock.advance(5000)
    }
  },
  /** Two messages every 5 s, both known, and so many new ones beside them. */
  duplicates: async ({ of }: Started, [times, more]: [number, number]) => {
    for (let n = 0; n < times; n += 1) {
      const { received, duplicates, mapped } = of.counters()
      of.count({ received: received + 2 + more, duplicates: duplicates + 2, mapped: mapped + more })
      await of.clock.advance(5000)
    }
  },
  count: ({ of }: Started, counters: Parameters<Started['of']['count']>[0]) => of.count(counters),
  takesIn: ({ of }: Started, isOpen: boolean) => of.setTakesIn(isOpen),
  pass: ({ of }: Started, ms: number) => of.clock.advance(ms),
  restart: async (one: Started) => {
    await one.of.watch.stop()
    one.of = await world(working, one.of.spoolPath)
  },
  /** Payloads wait in a lane, more with each look. */
  backlog: async (
    one: Started,
    [ms, perCheck, ofLane = {}, ofProvider = {}]: [number, number, Lane?, Provider?],
  ) => {
    const { of } = one
    for (let passed = 0; passed < ms; passed += 5000) {
      one.waiting += perCheck
      of.waits({
        lanes: [lane(1, { pending: one.waiting, oldestAt: one.startedAt, ...ofLane })],
        providers: [provider('default', { lastAcceptedAt: of.clock.now(), ratePerS: 10, ...ofProvider })],
      })
      await of.clock.advance(5000)
      for (const _ of of.watch.states());
    }
  },
  holds: ({ of }: Started, expected: object[]) => {
    const states = [...of.watch.states()]
    expect(states.map(({ code }) => code)).toEqual(expected.map((one) => 'code' in one && one.code))
    expect(states).toMatchObject(expected)
  },
  /** It has the time of the last message. */
  sinceLast: ({ of, lastAt }: Started) => expect([...of.watch.states()]).toMatchObject([{ sinceAt: lastAt }]),
  oldestSinceStart: ({ of, startedAt }: Started) =>
    expect([...of.watch.states()]).toMatchObject([{ oldestAt: startedAt }]),
})

test('a gateway starts with a damaged history file, and writes it again', async () => {
  const { spoolPath, watch } = await world()
  await watch.stop()
  await writeFile(join(spoolPath, 'traffic.json'), '{"history":')
  const again = await world(working, spoolPath)
  await again.messages(3, second)
  await again.watch.stop()
  expect(JSON.parse(await readFile(join(spoolPath, 'traffic.json'), 'utf8'))).toMatchObject({
    lastAt: again.clock.now() - second,
  })
})

test('silence is expected at night and at weekends by default', () => {
  const isQuiet = (day: number, hour: number, minutes = 0) =>
    isQuietAt(silenceSchema.parse(undefined), new Date(2026, 5, day, hour, minutes))
  // A Tuesday, its night, and the weekend.
  expect([isQuiet(2, 12), isQuiet(2, 21, 59), isQuiet(3, 6)]).toEqual([false, false, false])
  expect([isQuiet(2, 22), isQuiet(3, 5, 59), isQuiet(6, 12), isQuiet(7, 12)]).toEqual(Array(4).fill(true))
})

test.each(['22:00', '22:00-6:00', '24:00-06:00', '22-06'])('quiet_hours %s is refused', (quiet_hours) => {
  expect(silenceSchema.safeParse({ quiet_hours }).success).toBe(false)
})
