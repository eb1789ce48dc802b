// What is known of devices by their messages and the answers of the service, in memory and on the disk over restarts.

import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { recordRange } from '../../src/device-records/device-record-codec.ts'
import type { DeviceRecords } from '../../src/device-records/device-records.ts'
import type { ProviderName } from '../../src/domain/ids.ts'
import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import type { NotedDevice } from '../../src/mapping/mapping.ts'
import { openLevelStore, type Store } from '../../src/storage/storage.ts'
import { deviceRecords, notedDevices } from '../support/device-records-world.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock, type FakeClock } from '../support/fake-clock.ts'
import { newFolder } from '../support/folders.ts'
import { encodeEntries, uuidNamed } from '../support/ledger-world.ts'
import { messageOf } from '../support/mapping-world.ts'
import { stepCases, withTimes } from '../support/step-cases.ts'

type Given = { devicesMax?: number; disk?: boolean; started?: boolean; aheadMs?: number } | undefined

type World = {
  clock: FakeClock
  /** Of the clock of the records. */
  aheadMs: number
  store: Store | null
  isDiskThere: boolean
  records: DeviceRecords
  entryOf: ReturnType<typeof notedDevices>
  /** As after an end of the process. */
  begin(): void
}

async function start({ devicesMax, disk = false, started = true, aheadMs = 0 }: Given = {}): Promise<World> {
  const clock = createFakeClock()
  const store = disk ? await openLevelStore(join(await newFolder(), 'records')) : null
  if (store !== null) onTestFinished(() => store.close())
  const world = { clock, aheadMs, store, isDiskThere: true } as World
  world.begin = () => {
    const own = { ...clock, now: () => clock.now() + world.aheadMs }
    world.records = deviceRecords(own, {
      ...(devicesMax !== undefined && { devicesMax }),
      store: { use: async (work) => (store !== null && world.isDiskThere ? work(store) : null) },
    })
    world.entryOf = notedDevices()
  }
  world.begin()
  if (started) world.records.start()
  return world
}

/**
 * `{n}` in the name counts up from 0. `arrivedIn`: from now. `along`: another device, with each so many of them. `as`: it is
 * another one from now on.
 */
type Sent = {
  device: string
  times?: number
  everyMs?: number
  arrivedIn?: number
  along?: [device: string, each: number]
  as?: Partial<NotedDevice>
} & Partial<NotedDevice>

async function send(world: World, sent: string | Sent): Promise<void> {
  const { device, times = 1, everyMs = 0, arrivedIn = 0, along, as, ...more } = asSent(sent)
  for (let n = 0; n < times; n += 1) {
    const entry = world.entryOf(device.replace('{n}', `${n}`), more)
    const arrivedAt = world.clock.now() + world.aheadMs + arrivedIn
    world.records.notes.begin(messageOf({}, { arrivedAt }))
    world.records.notes.heard(as === undefined ? entry : { ...entry, ...as })
    if (along !== undefined && n % along[1] === 0) await send(world, along[0])
    if (everyMs > 0) await world.clock.advance(everyMs)
  }
}

const asSent = (sent: string | Sent): Sent => (typeof sent === 'string' ? { device: sent } : sent)

async function storedRecords({ store }: World): Promise<number> {
  let count = 0
  for await (const page of store!.pages(recordRange)) count += page.length
  return count
}

async function inRounds({ clock }: World, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await eventually(() => clock.pending() === 1)
    await clock.advance(10_000)
  }
}

type Restart = { awayMs: number; hours: number[]; lastHour: number }

type Payload = [key: string, became: 'stored' | 'duplicate', duplicateRule?: 'always' | 'resend']

stepCases(import.meta.filename, start, {
  send,
  sendAll: async (world: World, all: (string | Sent)[]) => {
    for (const one of all) await send(world, one)
  },
  /** A further record of the last message. */
  alsoHeard: ({ records, entryOf }: World, device: string) => records.notes.heard(entryOf(device)),
  read: ({ records, entryOf }: World, device: string) => records.notes.read(entryOf(device), false),
  readWithPosition: ({ records, entryOf }: World, device: string) =>
    records.notes.read(entryOf(device), true),
  readPosition: ({ records, entryOf, clock }: World, device: string) =>
    records.notes.readPosition(entryOf(device), clock.now(), true, { latitude: 1, longitude: 2 }),
  lost: ({ records, entryOf }: World, [device, reason]: [string, string]) =>
    records.notes.lost(entryOf(device), reason === 'FUTURE' ? 'quarantined' : 'dead', 'trucks', reason),
  mappedLater: ({ records }: World, device: string) => records.mappedLater(device),
  /** The payloads of each message of truck-1, as often as `times` says; `{n}` counts up and begins again at `cycle`. */
  receive: async (
    world: World,
    {
      messages,
      times = 1,
      everyMs = 2000,
      cycle = Infinity,
    }: { messages: Payload[][]; times?: number; everyMs?: number; cycle?: number },
  ) => {
    const { device, provider } = world.entryOf('truck-1')
    for (let n = 0; n < times; n += 1)
      for (const payloads of messages) {
        await send(world, 'truck-1')
        for (const [key, became, duplicateRule = 'always'] of payloads) {
          const windowKey = key.replace('{n}', `${n % cycle}`)
          world.records.notes.payload({ device, provider, windowKey, duplicateRule }, became)
        }
        await world.clock.advance(everyMs)
      }
  },
  settled: (
    { records, clock }: World,
    {
      of,
      provider = 'default',
      requestId,
      payloads = 'all delivered',
    }: {
      of: string[]
      provider?: string
      requestId: string
      payloads?: 'all delivered' | PayloadSettlement[]
    },
  ) =>
    records.notes.settled({
      provider: provider as ProviderName,
      at: clock.now(),
      entries: encodeEntries(of.map((device) => ({ payloadId: uuidNamed(device), deviceTime: 1, device }))),
      requestId,
      settlements: payloads,
    }),
  pass: ({ clock }: World, ms: number) => clock.advance(ms),
  toFullHour: ({ clock }: World) => clock.advance(3_600_000 - (clock.now() % 3_600_000)),
  clockSet: (world: World, byMs: number) => {
    world.records.clockStepped(byMs)
    world.aheadMs += byMs
  },
  start: ({ records }: World) => records.start(),
  stop: ({ records }: World) => records.stop(new AbortController().signal),
  /** The process has ended, and the next one has not read the disk. */
  next: (world: World) => {
    world.begin()
    world.records.start()
  },
  disk: (world: World, state: 'there' | 'gone') => void (world.isDiskThere = state === 'there'),
  /** Rounds of ten seconds; each is planned when the one before is on the disk. */
  rounds: inRounds,
  /** A message before each. */
  sendInRounds: async (world: World, { device, rounds }: { device: string; rounds: number }) => {
    for (let n = 0; n < rounds; n += 1) {
      await send(world, device)
      await inRounds(world, 1)
    }
  },
  isRestored: ({ records }: World) => eventually(() => records.counters().restored),
  isWritten: ({ records }: World, written: number) =>
    eventually(() => records.counters().written === written),
  isIdle: ({ clock }: World) => eventually(() => clock.pending() === 1),
  damageRecord: ({ store }: World) =>
    store!.write([{ type: 'put', key: Buffer.from([0x20, 0x41]), value: Buffer.from('{') }], {
      sync: false,
    }),
  forget: async ({ records }: World, [device, removed]: [string, number | null]) =>
    expect(await records.forget(device)).toBe(removed),
  mute: async ({ records }: World, [device, at]: [string, number]) =>
    expect(await records.mute(device, { at, isLength: false })).toBe(1),
  view: (world: World, expected: Record<string, object>) => {
    for (const [device, of] of Object.entries(expected))
      expect(world.records.find(device)[0], device).toMatchObject(withTimes(of, world.clock.now()) as object)
  },
  noView: ({ records }: World, device: string) => expect(records.find(device)).toEqual([]),
  devices: ({ records }: World, names: string[]) =>
    expect([...records.views()].map(({ device }) => device)).toEqual(names),
  /** Of the last 24; those before the ones that are given have none. */
  hours: ({ records }: World, last: number[] | null) =>
    expect(records.messagesByHour('truck-1')).toEqual(
      last && [...Array<number>(24 - last.length).fill(0), ...last],
    ),
  /** Between two processes, and what the second one knows. */
  away: ({ clock }: World, { awayMs }: Restart) => clock.advance(awayMs),
  knows: ({ records }: World, { hours, lastHour }: Restart) => {
    expect(records.messagesByHour('truck-1')?.slice(-hours.length)).toEqual(hours)
    expect(records.find('truck-1')[0]?.messagesPerHour).toBe(lastHour)
  },
  standing: ({ records }: World, expected: object) =>
    expect([...records.standings()]).toMatchObject([expected]),
  counters: ({ records }: World, expected: object) => expect(records.counters()).toMatchObject(expected),
  between: ({ records }: World, [name, least, most]: ['written' | 'evicted', number, number]) => {
    expect(records.counters()[name]).toBeGreaterThanOrEqual(least)
    expect(records.counters()[name]).toBeLessThanOrEqual(most)
  },
  onDisk: async (world: World, count: number) => expect(await storedRecords(world)).toBe(count),
})
