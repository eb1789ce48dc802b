import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startTrafficWatch } from '../../../src/app/traffic-watch/traffic-watch.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { isQuietAt, silenceSchema } from '../../../src/ops/silence-config.ts'
import type { ProviderView } from '../../../src/delivery/types.ts'
import type { LaneView } from '../../../src/spool/spool.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { ingestCounters, lane, provider } from '../../support/ops-world.ts'

const second = 1000
const minute = 60 * second
const working = { quiet_hours: '', quiet_days: [] }

async function world(silence: object = working, folder?: string) {
  const spoolPath = folder ?? (await mkdtemp(join(tmpdir(), 'gateway-traffic-')))
  const clock = createFakeClock()
  const events: GatewayEvent[] = []
  let counters = ingestCounters()
  let takesIn = true
  let lanes: LaneView[] = []
  let providers: ProviderView[] = []
  const watch = await startTrafficWatch(
    {
      clock,
      emit: (event) => void events.push(event),
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
    kinds: () => events.map(({ kind }) => kind),
    last: () => events.at(-1),
  }
}

describe('a gateway without messages', () => {
  test('is reported ten minutes after its first start, and once a minute after that', async () => {
    const { clock, kinds, last } = await world()
    await clock.advance(10 * minute)
    expect(kinds()).toEqual([])
    await clock.advance(5 * second)
    expect(last()).toMatchObject({ kind: 'devices_silent', sinceAt: null, basis: 'new', first: true })
    await clock.advance(3 * minute)
    expect(kinds()).toHaveLength(4)
    expect(last()).toMatchObject({ first: false })
  })

  test('is reported after ten usual gaps, within one check, and cleared by the next message', async () => {
    const { clock, kinds, last, messages } = await world()
    await messages(20, 10 * second)
    const lastAt = clock.now() - 10 * second
    await clock.advance(75 * second)
    expect(kinds()).toEqual([])
    await clock.advance(30 * second)
    expect(last()).toMatchObject({ kind: 'devices_silent', sinceAt: lastAt, basis: 'median', quiet: false })
    await messages(1, 5 * second)
    expect(kinds()).toEqual(['devices_silent', 'devices_sending'])
  })

  test('knows after a restart when the last message came, and gives devices time to connect', async () => {
    const before = await world()
    await before.messages(20, 10 * second)
    const lastAt = before.clock.now() - 10 * second
    await before.watch.stop()
    const after = await world(working, before.spoolPath)
    await after.clock.advance(80 * second)
    expect(after.kinds()).toEqual([])
    await after.clock.advance(30 * second)
    expect(after.last()).toMatchObject({ kind: 'devices_silent', sinceAt: lastAt, basis: 'median' })
  })

  test('is not reported while the gateway itself takes nothing in: that pause is not learned, and it counts from then on', async () => {
    const { clock, kinds, last, messages, setTakesIn } = await world()
    const pause = async () => {
      setTakesIn(false)
      await clock.advance(30 * minute)
      setTakesIn(true)
    }
    await messages(20, 10 * second)
    await pause()
    await messages(20, 10 * second)
    const lastAt = clock.now() - 10 * second
    await pause()
    await clock.advance(80 * second)
    expect(kinds()).toEqual([])
    await clock.advance(30 * second)
    expect(last()).toMatchObject({ kind: 'devices_silent', sinceAt: lastAt, basis: 'median' })
    expect(kinds()).toEqual(['devices_silent'])
  })

  test('follows the setting, and `off`', async () => {
    const set = await world({ ...working, after: '30s' })
    await set.clock.advance(35 * second)
    expect(set.last()).toMatchObject({ kind: 'devices_silent', basis: 'setting', limitMs: 30_000 })
    const off = await world({ ...working, after: 'off' })
    await off.clock.advance(60 * minute)
    expect(off.kinds()).toEqual([])
  })

  test('starts with a damaged history file, and writes it again', async () => {
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

  test('is expected at night and at weekends by default', () => {
    const isQuiet = (day: number, hour: number, minutes = 0) =>
      isQuietAt(silenceSchema.parse(undefined), new Date(2026, 5, day, hour, minutes))
    // A Tuesday, its night, and the weekend.
    expect([isQuiet(2, 12), isQuiet(2, 21, 59), isQuiet(3, 6)]).toEqual([false, false, false])
    expect([isQuiet(2, 22), isQuiet(3, 5, 59), isQuiet(6, 12), isQuiet(7, 12)]).toEqual(Array(4).fill(true))
  })

  test.each(['22:00', '22:00-6:00', '24:00-06:00', '22-06'])('quiet_hours %s is refused', (quiet_hours) => {
    expect(silenceSchema.safeParse({ quiet_hours }).success).toBe(false)
  })
})

describe('messages that become nothing', () => {
  test('are reported with the reasons, once, and cleared by the next payload', async () => {
    const { clock, count, kinds, last, messages } = await world()
    await messages(5, second)
    let n = 0
    const useless = async (seconds: number) => {
      for (const until = n + seconds / 5; n < until;) {
        n += 1
        count({
          received: 5 + 6 * n,
          ignored: 5 * n,
          dead: n,
          ignoredByReason: [{ source: 'trucks', reason: 'no fix', count: 5 * n }],
          deadByReason: [{ source: 'trucks', reason: 'NOT_JSON', count: n }],
        })
        await clock.advance(5 * second)
      }
    }
    await useless(55)
    expect(kinds()).toEqual([])
    await useless(25)
    expect(kinds()).toEqual(['nothing_mapped'])
    expect(last()).toMatchObject({
      kind: 'nothing_mapped',
      messages: 72,
      reasons: '60 ignored, trucks: no fix; 12 dead letters, trucks: NOT_JSON',
    })
    await messages(1, 5 * second)
    expect(kinds()).toEqual(['nothing_mapped', 'nothing_mapped_ended'])
  })

  test('are reported where each is a duplicate, and not where new ones come in between', async () => {
    const { clock, count, kinds, last, messages } = await world()
    const receive = async (times: number, mappedOf: (n: number) => number) => {
      for (let n = 1; n <= times; n += 1) {
        count({ received: 5 + 2 * n, duplicates: 2 * n, mapped: mappedOf(n) })
        await clock.advance(5 * second)
      }
    }
    await receive(30, (n) => n)
    expect(kinds()).toEqual([])
    count({ mapped: 31, duplicates: 0 })
    await clock.advance(5 * second)
    await receive(13, () => 31)
    expect(kinds()).toEqual(['nothing_mapped'])
    expect(last()).toMatchObject({
      messages: 24,
      duplicates: 24,
      reasons: '24 duplicates of earlier messages',
    })
    await messages(1, 5 * second)
    expect(kinds()).toEqual(['nothing_mapped', 'nothing_mapped_ended'])
  })

  test('are no fault while others become payloads, or are few', async () => {
    const { clock, count, kinds, messages } = await world()
    count({ received: 15, ignored: 15 })
    await clock.advance(5 * minute)
    count({ received: 1000, ignored: 999 })
    for (let n = 0; n < 30; n += 1) await messages(1, 4 * second)
    expect(kinds()).toEqual([])
  })
})

describe('a backlog that grows', () => {
  test('is reported after two minutes with the numbers, again each minute, and cleared when it shrinks', async () => {
    const { clock, waits, kinds, last } = await world()
    const startedAt = clock.now()
    let payloads = 0
    const pass = async (seconds: number, perCheck: number) => {
      for (let s = 0; s < seconds; s += 5) {
        payloads += perCheck
        waits({
          lanes: [lane(1, { pending: payloads, oldestAt: startedAt })],
          providers: [provider('default', { lastAcceptedAt: clock.now(), ratePerS: 10 })],
        })
        await clock.advance(5 * second)
      }
    }
    await pass(115, 50)
    expect(kinds()).toEqual([])
    await pass(10, 50)
    expect(last()).toMatchObject({ kind: 'backlog_grows', grownBy: 600, oldestAt: startedAt, first: true })
    await pass(120, 50)
    expect(kinds()).toHaveLength(3)
    expect(last()).toMatchObject({ first: false })
    await pass(70, -1)
    expect(last()).toMatchObject({ kind: 'backlog_grows', payloads: 0 })
    const count = kinds().length
    await pass(120, -1)
    expect(kinds()).toHaveLength(count)
  })

  test.each<[string, Parameters<typeof lane>[1], Parameters<typeof provider>[1]]>([
    ['nothing is accepted', {}, { lastAcceptedAt: null }],
    ['the service is not available', {}, { endpoint: 'unavailable' }],
    ['only held batches wait', { pending: 0, sealed: 5, heldPayloads: 5 }, {}],
    ['only retries wait', { role: { kind: 'retry', schedule: 'default', step: 1 } }, {}],
    ['payloads are young', { oldestAt: Number.MAX_SAFE_INTEGER }, {}],
  ])('is not reported where %s', async (_, more, view) => {
    const { clock, waits, kinds } = await world()
    const startedAt = clock.now()
    for (let n = 1; n < 60; n += 1) {
      waits({
        lanes: [lane(1, { pending: 10 * n, oldestAt: startedAt, ...more })],
        providers: [provider('default', { lastAcceptedAt: clock.now(), ...view })],
      })
      await clock.advance(5 * second)
    }
    expect(kinds()).toEqual([])
  })
})
