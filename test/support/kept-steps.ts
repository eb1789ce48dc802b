// kept-steps.ts: messages that are kept whole, what an operator and a new mapping do with them, and what must be sent then,
// as the steps of step-cases.ts, over kept-world.ts.
//
// A message is written as its kind and number: `at 5` is a position of the past, `ahead 5` one of a clock that is a day
// ahead, `unset 5` one of a clock that was never set, `present 5` one of now for a clock that is an hour ahead of ours, and
// `nextDay 5` the same a day later, `untimed 5` one whose time has another name, `odd 5` one that only an expression
// reads. Anything else is sent as it is.

import { expect } from 'vitest'
import type { ShelfName } from '../../src/domain/kept-store.ts'
import { envelopeOf } from '../../src/domain/message.ts'
import { createClockVerdicts, type ClockVerdicts } from '../../src/ingest/quarantine/clock-verdicts.ts'
import {
  createQuarantineDecisions,
  type QuarantineDecisions,
} from '../../src/ingest/quarantine/quarantine-decisions.ts'
import type { RemapRequest } from '../../src/ingest/remap/dead-letter-remap.ts'
import { systemClock } from '../../src/std/clock.ts'
import { eventually } from './eventually.ts'
import { openKeptWorld, position, topicOf, type KeptOptions, type KeptWorld } from './kept-world.ts'
import { messageOf, truckSource } from './mapping-world.ts'
import { collect, ended, keptIn } from './open-spool.ts'
import { ourTimeOf } from './our-time.ts'

/** A source as it is, or that of trucks with other fields (`map`) and other options. */
type SourceText = { name: string } | { map?: Record<string, unknown>; options?: Record<string, unknown> }
type Options = Omit<KeptOptions, 'sources' | 'path'> & { sources?: SourceText[] }
/** `boot`: the name of the boot in which verdicts look, if it is another one. */
type Given = (Options & { boot?: string }) | undefined

type World = {
  k: KeptWorld
  given: Given
  decisions: QuarantineDecisions
  verdicts: ClockVerdicts
  changing: Promise<void>
}

const dayMs = 86_400_000
const hourMs = 3_600_000
/** To the second, so that a message that is sent twice is the same. */
const startMs = Math.floor(Date.now() / 1000) * 1000
const stamped = (ts: number) => (n: number) => ({ ...position(n), ts: ts + n })
const kinds: Record<string, (n: number) => { ts: number } | object> = {
  at: position,
  ahead: (n) => ({ ...position(n), ts: startMs + dayMs + n * 1000 }),
  unset: (n) => ({ ...position(n), ts: n * 1000 }),
  present: stamped(startMs + hourMs),
  nextDay: stamped(startMs + 25 * hourMs),
  untimed: (n) => ({ time: position(n).ts, lat: position(n).lat, lon: 13.4 }),
  odd: (n) => ({ t: position(n).ts, p: [position(n).lat, 13.4] }),
}

function contentOf(message: unknown): unknown {
  const [, kind = '', n = ''] = /^(\w+) (\d+)$/.exec(String(message)) ?? []
  return kinds[kind]?.(Number(n)) ?? message
}

function timeOf(message: string): number {
  const { ts, time, t } = contentOf(message) as Record<string, number>
  return ts ?? time ?? t!
}

const sourcesOf = ({ sources, ...options }: Options): KeptOptions => ({
  ...options,
  ...(sources !== undefined && {
    sources: sources.map((source) => ('name' in source ? source : truckSource(source.map, source.options))),
  }),
})

async function open(one: World, path?: string): Promise<void> {
  const { boot, ...options } = one.given ?? {}
  const k = await openKeptWorld({ ...sourcesOf(options), ...(path !== undefined && { path }) })
  const emit: Parameters<typeof createClockVerdicts>[0]['emit'] = (event) => void k.events.push(event)
  const deps = { spool: k.world.spool, clock: systemClock, ourTime: k.ourTime, emit, mapping: k.mapping }
  const bootTime = boot === undefined ? {} : { ourTime: ourTimeOf(() => hourMs, systemClock, boot) }
  one.k = k
  one.decisions = createQuarantineDecisions(deps)
  one.verdicts = createClockVerdicts({ ...deps, ...bootTime })
}

export async function startKept(given: Given): Promise<World> {
  const one = { given, changing: Promise.resolve() } as unknown as World
  await open(one)
  return one
}

type Many = { of: string | string[]; from?: number; count: number; kind?: string }

async function publishMany({ k }: World, { of, from = 0, count, kind = 'at' }: Many): Promise<void> {
  const devices = [of].flat()
  const numbers = Array.from({ length: count }, (_, index) => from + index)
  await Promise.all(
    numbers.map((n) => k.publish(topicOf(devices[n % devices.length]!), contentOf(`${kind} ${n}`))),
  )
}

/** A record as three values; `n` is its speed. */
function publishRecord({ k }: World, n: number): Promise<unknown> {
  const values = Object.entries({ latitude: 50 + (n % 1000) / 100, longitude: 8, speed: n })
  return Promise.all(values.map(([metric, value]) => k.publish(`vehicles/van-1/${metric}`, String(value))))
}

function publishBoth({ k }: World, n: number): Promise<unknown> {
  return k.publish('depot/all', { list: ['a', 'b'].map((id) => ({ ...position(n), id })) })
}

const runOf = ([kind, from, count]: [string, number, number]) =>
  Array.from({ length: count }, (_, index) => timeOf(`${kind} ${from + index}`))

type Selected = { device?: string | null; at?: number; reason?: string; result?: object; fails?: object }

/** `at`: the index of the only message that is chosen, among all that are kept. */
async function selectionOf({ k }: World, { device = null, at, reason }: Selected) {
  const ids: string[] = []
  for (const name of ['quarantine:default', 'clock:default'] as const)
    for (const { id } of await collect(k.world.spool.keptMessages(name, device, { limit: 1000 })))
      ids.push(id)
  return { device, ids: at === undefined ? [] : [ids[at]!], ...(reason !== undefined && { reason }) }
}

async function ends(work: Promise<unknown>, { result, fails }: Selected): Promise<void> {
  if (fails === undefined) expect(await work).toMatchObject(result ?? {})
  else await expect(work).rejects.toMatchObject(fails)
}

const signal = () => new AbortController().signal

export const keptWords = {
  publish: ({ k }: World, [device, ...messages]: string[]) =>
    Promise.all(messages.map((message) => k.publish(topicOf(device!), contentOf(message)))),
  publishTo: (
    { k }: World,
    [topic, message, more]: [string, unknown, Parameters<KeptWorld['publish']>[2]?],
  ) => k.publish(topic, contentOf(message), more),
  /** All at once; `of`: the devices, in turn. */
  publishMany,
  /** One after the other. */
  publishEach: async (one: World, { count, from = 0, ...many }: Many) => {
    for (let n = from; n < from + count; n += 1) await publishMany(one, { ...many, from: n, count: 1 })
  },
  /** Messages about the devices a and b; their acknowledgements are not waited for. */
  both: (one: World, [from, count]: [number, number]) => {
    for (let n = from; n < from + count; n += 1) void publishBoth(one, n)
  },
  bothEach: async (one: World, [from, count]: [number, number]) => {
    for (let n = from; n < from + count; n += 1) await publishBoth(one, n)
  },
  publishRecords: (one: World, [from, count]: [number, number]) =>
    Promise.all(Array.from({ length: count }, (_, index) => publishRecord(one, from + index))),
  recordsOneByOne: async (one: World, [from, count]: [number, number]) => {
    for (let n = from; n < from + count; n += 1) await publishRecord(one, n)
  },
  /** Half of it before so many messages were released, half behind. */
  recordAcross: async ({ k }: World, [n, released]: [number, number]) => {
    void k.publish('vehicles/van-1/latitude', '50')
    await eventually(() => k.release.counters().released >= released)
    void k.publish('vehicles/van-1/longitude', '8')
    await k.publish('vehicles/van-1/speed', String(n))
  },
  /** A message as a version before 0.2 kept it. */
  keepOld: async ({ k: { world } }: World, messages: unknown[]) => {
    for (const message of messages) {
      const old = messageOf(contentOf(message), { topic: 'odd/van-1', arrivedAt: position(5000).ts })
      world.spool.keepMessage({
        shelf: 'deferred:odd',
        provider: null,
        device: null,
        reason: 'EXPRESSION',
        detail: 'It waits for its expression to be evaluated.',
        envelope: envelopeOf(old, 'odd'),
      })
      world.spool.endMessage(null)
    }
    expect(await ended(world.spool)).toBeNull()
  },
  keepOldMany: (one: World, count: number) =>
    keptWords.keepOld(
      one,
      Array.from({ length: count }, (_, n) => `odd ${n}`),
    ),
  /** Another mapping is in force, and what it releases is released. */
  change: async ({ k }: World, options: Options) => {
    await k.change(sourcesOf(options))
    await k.release.idle()
  },
  beginChange: (one: World, options: Options) => {
    one.changing = one.k.change(sourcesOf(options))
  },
  endChange: async ({ k, changing }: World) => {
    await changing
    await k.release.idle()
  },
  /** The change fails. */
  failChange: async ({ k }: World, options: Options) => {
    const other = await openKeptWorld(sourcesOf(options))
    k.release.beginSwap(other.mapping())
    k.release.endSwap(false)
    await k.release.idle()
  },
  restart: async (one: World, changes: Options | null) => {
    await one.verdicts.stop()
    await one.k.leave()
    one.given = { ...one.given, ...changes }
    await open(one, one.k.world.path)
  },
  startRelease: async ({ k }: World) => {
    k.release.start()
    await k.release.idle()
  },
  startDeferred: async ({ k }: World) => {
    k.deferred.start()
    await k.deferred.idle()
  },
  stopDeferred: ({ k }: World) => k.deferred.stop(),
  offset: ({ k }: World, ms: number | null) => k.setOffset(ms),
  /** Our time may be known now. */
  correct: async ({ verdicts }: World) => {
    verdicts.correct()
    await verdicts.idle()
  },
  release: async (one: World, { restamp = false, ...selected }: Selected & { restamp?: boolean }) =>
    ends(one.decisions.release(await selectionOf(one, selected), { restamp }, signal()), selected),
  drop: async (one: World, { dryRun = false, ...selected }: Selected & { dryRun?: boolean }) =>
    ends(one.decisions.drop(await selectionOf(one, selected), { dryRun }, signal()), selected),
  remap: async ({ k }: World, { result, ...request }: Partial<RemapRequest> & { result: object }) =>
    expect(await k.remap(request)).toMatchObject(result),

  // ---- what must be
  /** Times of what is sent, in order, of each device: messages, or runs of them as `[kind, from, count]`. */
  sent: async ({ k }: World, expected: Record<string, string[] | [string, number, number]>) => {
    const sent = await k.sent()
    const found = Object.groupBy(sent, ({ device }) => device)
    const times = Object.entries(found).map(([device, all]) => [device, all!.map(({ time }) => time)])
    const due = Object.entries(expected).map(([device, run]) => [
      device,
      typeof run[1] === 'number'
        ? runOf(run as [string, number, number])
        : (run as string[]).map((message) => timeOf(message)),
    ])
    expect(Object.fromEntries(times)).toEqual(Object.fromEntries(due))
  },
  /** What each of these devices has sent: times that ascend, 300 of them. */
  sentInOrder: async ({ k }: World, devices: string[]) => {
    const sent = await k.sent()
    for (const name of devices)
      expect(sent.filter(({ device }) => device === name).map(({ time }) => time)).toEqual(
        runOf(['at', 0, 300]),
      )
  },
  /** Runs of messages that devices sent in turn, as `[from, count]`, in the order of arrival. */
  sentAlternating: async (
    { k }: World,
    {
      devices,
      kind,
      runs,
      others,
    }: { devices: string[]; kind: string; runs: [number, number][]; others: number },
  ) => {
    const sent = await k.sent()
    const due = runs.flatMap(([from, count]) => Array.from({ length: count }, (_, index) => from + index))
    for (const [index, name] of devices.entries())
      expect(sent.filter(({ device }) => device === name).map(({ time }) => time)).toEqual(
        due.filter((n) => n % devices.length === index).map((n) => timeOf(`${kind} ${n}`)),
      )
    expect(sent).toHaveLength(due.length + others)
  },
  sentCount: async ({ k }: World, count: number) => expect(await k.sent()).toHaveLength(count),
  payloads: async ({ k }: World, expected: object[]) =>
    expect((await k.sent()).map(({ payload }) => payload)).toMatchObject(expected),
  /** Within ten seconds of now, and so much later. */
  sentNow: async ({ k }: World, { count, laterMs = 0 }: { count: number; laterMs?: number }) => {
    const sent = await k.sent()
    expect(sent).toHaveLength(count)
    for (const { time } of sent) expect(Math.abs(time - Date.now() - laterMs)).toBeLessThan(10_000)
  },
  /** Records of 0 to this number, each complete, and none is open. */
  speeds: async ({ k }: World, count: number) => {
    const speeds = (await k.sent()).map(({ payload }) => (payload['gps'] as { speed?: number }).speed)
    expect(speeds).toEqual(Array.from({ length: count }, (_, n) => n))
    expect(k.mapper().openParts()).toBe(0)
  },
  /** So many on each shelf. */
  kept: async ({ k }: World, expected: Record<string, number>) => {
    for (const [shelf, count] of Object.entries(expected))
      expect(await keptIn(k.world.spool, shelf as ShelfName), shelf).toHaveLength(count)
  },
  keptReasons: async ({ k }: World, [shelf, device, reasons]: [ShelfName, string, string[]]) =>
    expect(await k.keptReasons(shelf, device)).toEqual(reasons),
  /** The arrival of what is kept for its clock is that of the right clock. */
  keptArrivalLater: async ({ k }: World, ms: number) => {
    const [left] = await collect(k.world.spool.keptMessages('clock:default', null, { limit: 10 }))
    expect(left?.message).toMatchObject({ envelope: { arrival: { offsetMs: 0 } } })
    expect(Math.abs(left!.message.envelope.arrivedAt - Date.now() - ms)).toBeLessThan(60_000)
  },
  deadReasons: async ({ k }: World, reasons: string[]) => expect(await k.deadReasons()).toEqual(reasons),
  deadLetters: async ({ k }: World, expected: object[]) => {
    const letters = await collect(k.world.spool.deadLetters({ limit: 10 }))
    expect(letters.map(({ deadLetter }) => deadLetter)).toMatchObject(expected)
  },
  counters: ({ k, decisions, verdicts }: World, expected: Record<string, object>) =>
    expect({
      release: k.release.counters(),
      deferred: k.deferred.counters(),
      intake: k.intake.counters(),
      decisions: decisions.counters(),
      verdicts: verdicts.counters(),
    }).toMatchObject(expected),
  releasedBetween: ({ k }: World, [least, most]: [number, number]) => {
    expect(k.release.counters().released).toBeGreaterThan(least)
    expect(k.release.counters().released).toBeLessThan(most)
  },
  /** Each message that came was mapped or kept. */
  addsUp: ({ k }: World) => {
    const { received, mapped, quarantined } = k.intake.counters()
    expect(received).toBe(mapped + quarantined)
  },
  isReleasing: ({ k }: World, [device, isReleasing]: [string, boolean]) =>
    expect(k.release.isReleasing(device)).toBe(isReleasing),
  events: ({ k }: World, expected: Record<string, object[]>) => {
    for (const [kind, of] of Object.entries(expected))
      expect(
        [...k.events, ...k.world.events].filter((event, index, all) => {
          return event.kind === kind && all.indexOf(event) === index
        }),
        kind,
      ).toMatchObject(of)
  },
}
