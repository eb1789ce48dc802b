import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RecordsStore } from '../../src/device-records/device-records.ts'
import { defaultProvider, type ProviderName } from '../../src/domain/ids.ts'
import type { Message } from '../../src/domain/message.ts'
import type { NotedDevice } from '../../src/mapping/mapping.ts'
import { recordRange } from '../../src/device-records/device-record-codec.ts'
import { deviceRecords, notedDevices } from '../support/device-records-world.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { uuidNamed, encodeEntries } from '../support/ledger-world.ts'
import { messageOf } from '../support/mapping-world.ts'
import { newFolder } from '../support/folders.ts'
import { eventually } from '../support/eventually.ts'
import { openLevelStore } from '../../src/storage/storage.ts'

const minute = 60_000

type Options = { devicesMax?: number; store?: RecordsStore; clock?: ReturnType<typeof createFakeClock> }

function world({ clock = createFakeClock(), ...options }: Options = {}) {
  const records = deviceRecords(clock, options)
  const entryOf = notedDevices()
  const send = (entry: NotedDevice, more: Partial<Message> = {}) => {
    records.notes.begin(messageOf({}, { arrivedAt: clock.now(), ...more }))
    records.notes.heard(entry)
  }
  const view = (device: string) => records.find(device)[0]
  return { clock, records, entryOf, send, view }
}

describe('the rhythm', () => {
  test('a device that sends each minute is silent after ten minutes without a message', async () => {
    const { clock, records, entryOf, send, view } = world()
    records.start()
    for (let n = 0; n < 20; n += 1) {
      send(entryOf('truck-1'))
      await clock.advance(minute)
    }
    expect(view('truck-1')).toMatchObject({ medianGapMs: minute, silentSince: null, messages: 20 })
    const lastAt = clock.now() - minute
    await clock.advance(9 * minute)
    expect(view('truck-1')?.silentSince).toBeNull()
    await clock.advance(1)
    expect(view('truck-1')?.silentSince).toBe(lastAt)
    send(entryOf('truck-1'))
    expect(view('truck-1')?.silentSince).toBeNull()
  })

  test('a backlog that comes at once does not change the rhythm', async () => {
    const { clock, entryOf, send, view } = world()
    for (let n = 0; n < 10; n += 1) {
      send(entryOf('truck-1'))
      await clock.advance(minute)
    }
    for (let n = 0; n < 500; n += 1) {
      send(entryOf('truck-1'))
      await clock.advance(2)
    }
    expect(view('truck-1')?.medianGapMs).toBe(minute)
  })

  test('one message is no rhythm: its device is silent after a day', async () => {
    const { clock, entryOf, send, view } = world()
    send(entryOf('truck-1'))
    await clock.advance(23 * 60 * minute)
    expect(view('truck-1')).toMatchObject({ medianGapMs: null, silentSince: null })
    await clock.advance(61 * minute)
    expect(view('truck-1')?.silentSince).not.toBeNull()
  })

  test('a device is not silent where the clock is set back by a second after its message', async () => {
    const { records, clock, entryOf, send, view } = world()
    records.start()
    await clock.advance(48 * 60 * minute)
    send(entryOf('truck-1'), { arrivedAt: clock.now() + 1000 })
    expect(view('truck-1')).toMatchObject({ lastSeen: clock.now() + 1000, silentSince: null })
  })

  test('a message with a list of records counts once', () => {
    const { records, entryOf, send, view } = world()
    send(entryOf('truck-1'))
    records.notes.heard(entryOf('truck-1'))
    records.notes.heard(entryOf('truck-2'))
    expect([view('truck-1')?.messages, view('truck-2')?.messages]).toEqual([1, 1])
  })

  test('the messages of the last hour follow the clock', async () => {
    const { clock, entryOf, send, view } = world()
    for (let n = 0; n < 120; n += 1) {
      send(entryOf('truck-1'))
      // All of a device that sends for less than an hour.
      const { messages = 0, messagesPerHour } = view('truck-1') ?? {}
      expect(n < 60 ? messagesPerHour : messages).toBe(n + 1)
      await clock.advance(minute)
    }
    expect(view('truck-1')?.messagesPerHour).toBeGreaterThan(55)
    expect(view('truck-1')?.messagesPerHour).toBeLessThan(65)
    await clock.advance(3 * 60 * minute)
    expect(view('truck-1')?.messagesPerHour).toBe(0)
  })

  test('each of the last 24 hours has its messages, also of a device that paused or whose clock was set', async () => {
    const { records, clock, entryOf, send } = world()
    const hours = () => records.messagesByHour('truck-1')
    const counts = (...last: number[]) => [...Array<number>(24 - last.length).fill(0), ...last]
    expect(hours()).toBeNull()
    await clock.advance(60 * minute - (clock.now() % (60 * minute)))
    send(entryOf('truck-1'))
    send(entryOf('truck-1'))
    expect(hours()).toEqual(counts(2))
    await clock.advance(60 * minute)
    expect(hours()).toEqual(counts(2, 0))
    await clock.advance(120 * minute)
    for (let n = 0; n < 5; n += 1) send(entryOf('truck-1'))
    expect(hours()).toEqual(counts(2, 0, 0, 5))
    await clock.advance(60 * minute)
    send(entryOf('truck-1'))
    expect(hours()).toEqual(counts(2, 0, 0, 5, 1))
    await clock.advance(20 * 60 * minute)
    expect(hours()).toEqual([0, 0, 5, 1, ...Array<number>(20).fill(0)])
    send(entryOf('truck-1'))
    expect(hours()).toEqual([0, 0, 5, 1, ...Array<number>(19).fill(0), 1])
    await clock.advance(25 * 60 * minute)
    expect(hours()).toEqual(counts())
    send(entryOf('truck-1'))
    expect(hours()).toEqual(counts(1))
    // A day with a message in each hour, and a pause: its hours had other messages the day before.
    for (let hour = 0; hour < 24; hour += 1) {
      await clock.advance(60 * minute)
      send(entryOf('truck-1'))
    }
    await clock.advance(5 * 60 * minute)
    send(entryOf('truck-1'))
    expect(hours()).toEqual([...Array<number>(19).fill(1), 0, 0, 0, 0, 1])
  })
})

describe('the last message', () => {
  test('is no loss where a record of it was read, before or after the others', () => {
    const { records, entryOf, send, view } = world()
    const truck = entryOf('truck-1')
    send(truck)
    records.notes.read(truck, false)
    records.notes.lost(truck, 'dead', 'trucks', 'NOT_JSON')
    expect(view('truck-1')).toMatchObject({ loss: null, losses: [{ count: 1 }] })
    send(truck)
    records.notes.lost(truck, 'dead', 'trucks', 'NOT_JSON')
    expect(view('truck-1')?.loss).toMatchObject({ count: 2 })
    records.notes.read(truck, false)
    expect(view('truck-1')).toMatchObject({ loss: null, losses: [{ count: 2 }] })
  })

  test('is no loss where it was kept and became a payload later, at the time at which it came', async () => {
    const { records, clock, entryOf, send, view } = world()
    send(entryOf('truck-1'))
    records.notes.lost(entryOf('truck-1'), 'quarantined', 'trucks', 'FUTURE')
    expect(view('truck-1')?.lastMappedAt).toBeNull()
    await clock.advance(minute)
    records.mappedLater('truck-1')
    expect(view('truck-1')).toMatchObject({ loss: null, lastMappedAt: clock.now() - minute })
  })

  test('has its own reason, and each reason is counted once', () => {
    const { records, entryOf, send, view } = world()
    for (const reason of ['NOT_JSON', 'FUTURE', 'NOT_JSON']) {
      send(entryOf('truck-1'))
      records.notes.lost(entryOf('truck-1'), 'dead', 'trucks', reason)
      expect(view('truck-1')?.loss).toMatchObject({ reason })
    }
    expect(view('truck-1')?.losses.map(({ reason, count }) => [reason, count])).toEqual([
      ['FUTURE', 1],
      ['NOT_JSON', 2],
    ])
  })
})

describe('at the bound', () => {
  test('invented names replace each other, and neither a listed device nor one that sends', () => {
    const { records, entryOf, send, view } = world({ devicesMax: 100 })
    for (let n = 0; n < 50; n += 1) send(entryOf(`truck-${n}`, { listed: true }))
    for (let n = 0; n < 10; n += 1) send(entryOf('busy'))
    for (let n = 0; n < 5000; n += 1) {
      send(entryOf(`invented-${n}`))
      if (n % 20 === 0) send(entryOf('busy'))
    }
    for (let n = 0; n < 50; n += 1) expect(view(`truck-${n}`)?.messages).toBe(1)
    expect(view('busy')?.messages).toBe(260)
    expect(records.counters()).toMatchObject({ devices: 100 })
    expect(records.counters().evicted).toBeGreaterThan(4000)
  })

  test('without a row for it, an unlisted device has no record and is counted', () => {
    const { records, entryOf, send, view } = world({ devicesMax: 100 })
    for (let n = 0; n < 100; n += 1) send(entryOf(`truck-${n}`, { listed: true }))
    send(entryOf('other'))
    expect(view('other')).toBeUndefined()
    expect(records.counters()).toMatchObject({ devices: 100, evicted: 0, notRecorded: 1 })
    send(entryOf('truck-100', { listed: true }))
    expect(view('truck-100')?.messages).toBe(1)
    expect(records.counters()).toMatchObject({ devices: 100, evicted: 1 })
  })
})

describe('answers of the service', () => {
  test('are noted for each device of a batch, also for payloads that name the asset', () => {
    const { clock, records, entryOf, send, view } = world()
    send(entryOf('truck-1'))
    send(entryOf('truck-2', { assetId: 'TRK-2' }))
    const named = (device: string) => ({ payloadId: uuidNamed(device), deviceTime: 1, device })
    const entries = encodeEntries([named('truck-1'), named('TRK-2'), named('nobody')])
    const batch = { provider: defaultProvider, at: clock.now(), entries }
    records.notes.settled({ ...batch, requestId: 'r-1', settlements: 'all delivered' })
    expect(view('truck-1')?.accepted).toEqual({ at: clock.now(), requestId: 'r-1' })
    expect(view('truck-2')?.accepted).toEqual({ at: clock.now(), requestId: 'r-1' })
    records.notes.settled({
      ...batch,
      requestId: 'r-2',
      settlements: [
        { kind: 'delivered' },
        { kind: 'dead', reason: 'Validation', detail: 'no asset', failure: null },
        { kind: 'delivered' },
      ],
    })
    expect(view('truck-1')).toMatchObject({ accepted: { requestId: 'r-2' }, refused: null })
    expect(view('truck-2')).toMatchObject({
      accepted: { requestId: 'r-1' },
      refused: { requestId: 'r-2', outcome: 'dead', reason: 'Validation', detail: 'no asset' },
    })
    records.notes.settled({
      ...batch,
      provider: 'other' as ProviderName,
      requestId: 'r-3',
      settlements: 'all delivered',
    })
    expect(view('truck-1')?.accepted?.requestId).toBe('r-2')
  })
})

test('the usual time between two positions is known after a restart', async () => {
  const store = await openLevelStore(join(await newFolder(), 'records'))
  onTestFinished(() => store.close())
  const use: RecordsStore['use'] = (work) => work(store)
  const first = world({ store: { use } })
  first.records.start()
  const truck = first.entryOf('truck-1')
  for (let n = 0; n < 3; n += 1) {
    first.send(truck)
    first.records.notes.read(truck, true)
    await first.clock.advance(10 * minute)
  }
  first.send(truck)
  first.records.notes.readPosition(truck, first.clock.now(), true, { latitude: 1, longitude: 2 })
  expect(first.view('truck-1')).toMatchObject({ blindMs: 0, blindUsualMs: 20 * minute })
  await first.records.stop(new AbortController().signal)

  const second = world({ store: { use }, clock: first.clock })
  second.records.start()
  await eventually(() => second.records.counters().restored)
  expect(second.view('truck-1')).toMatchObject({ blindMs: 0, blindUsualMs: 20 * minute })
})

test('an answer of the service is noted at the device that has the asset now, also after a restart', async () => {
  const store = await openLevelStore(join(await newFolder(), 'records'))
  onTestFinished(() => store.close())
  const use: RecordsStore['use'] = (work) => work(store)
  const entries = encodeEntries([{ payloadId: uuidNamed('p'), deviceTime: 1, device: 'TRK-1' }])
  const settle = ({ records }: ReturnType<typeof world>, requestId: string) =>
    records.notes.settled({
      provider: defaultProvider,
      at: 1,
      entries,
      requestId,
      settlements: 'all delivered',
    })
  const first = world({ store: { use } })
  first.records.start()
  first.send(first.entryOf('old', { assetId: 'TRK-1' }))
  first.send(first.entryOf('new', { assetId: 'TRK-1' }))
  // The old unit is in another truck now.
  const old = { ...first.entryOf('old'), assetId: 'TRK-2', note: null }
  first.send(old)
  settle(first, 'r-1')
  expect([first.view('new')?.accepted?.requestId, first.view('old')?.accepted]).toEqual(['r-1', null])
  await first.records.stop(new AbortController().signal)

  const second = world({ store: { use } })
  second.records.start()
  await eventually(() => second.records.counters().restored)
  settle(second, 'r-2')
  expect(second.view('new')?.accepted?.requestId).toBe('r-2')
})

describe('on the disk', () => {
  const storeOf = async () => {
    const store = await openLevelStore(join(await newFolder(), 'records'))
    onTestFinished(() => store.close())
    let isOpen = true
    const use: RecordsStore['use'] = async (work) => (isOpen ? work(store) : null)
    return { store, use, setOpen: (open: boolean) => void (isOpen = open) }
  }

  const keysIn = async (store: Awaited<ReturnType<typeof openLevelStore>>) => {
    const keys: Buffer[] = []
    for await (const page of store.pages(recordRange)) keys.push(...page.map(([key]) => key))
    return keys
  }

  test('messages that come before the records were read are added to them', async () => {
    const { use, setOpen } = await storeOf()
    const first = world({ store: { use } })
    first.records.start()
    for (const reason of ['NOT_JSON', 'FUTURE', 'PAST']) {
      first.send(first.entryOf('truck-1'))
      first.records.notes.lost(first.entryOf('truck-1'), 'dead', 'trucks', reason)
    }
    await first.records.stop(new AbortController().signal)

    setOpen(false)
    const second = world({ store: { use }, clock: first.clock })
    await first.clock.advance(5000)
    second.records.start()
    second.send(second.entryOf('truck-1'))
    second.records.notes.lost(second.entryOf('truck-1'), 'dead', 'trucks', 'FUTURE')
    expect(second.view('truck-1')).toMatchObject({ messages: 1 })
    expect(second.records.counters().restored).toBe(false)
    setOpen(true)
    await first.clock.advance(10_000)
    await eventually(() => second.records.counters().restored)
    expect(second.view('truck-1')).toMatchObject({
      messages: 4,
      firstSeen: first.view('truck-1')?.firstSeen,
      lastSeen: first.clock.now() - 10_000,
      loss: { reason: 'FUTURE', count: 2, lastAt: first.clock.now() - 10_000 },
      losses: [{ count: 1 }, { count: 1 }, { count: 2 }],
    })
  })

  test('a device that a clock heard days ahead is silent from the next start on, after its limit', async () => {
    const { use } = await storeOf()
    const clock = createFakeClock()
    const ahead = world({
      store: { use },
      clock: { ...clock, now: () => clock.now() + 20 * 24 * 60 * minute },
    })
    ahead.records.start()
    for (const name of ['truck-1', 'truck-2']) ahead.send(ahead.entryOf(name))
    await ahead.records.stop(new AbortController().signal)

    const { records, entryOf, send, view } = world({ store: { use }, clock })
    records.start()
    await eventually(() => records.counters().restored)
    const startMs = clock.now()
    expect(view('truck-1')).toMatchObject({ lastSeen: startMs, silentSince: null })
    await clock.advance(23 * 60 * minute)
    send(entryOf('truck-2'), { arrivedAt: clock.now() })
    expect(view('truck-2')).toMatchObject({ messages: 2, lastSeen: clock.now() })
    await clock.advance(61 * minute)
    expect([view('truck-1')?.silentSince, view('truck-2')?.silentSince]).toEqual([startMs, null])
  })

  test.each([
    ['in the same hour', 0, [3, 1, 5]],
    ['in the next one', 60 * minute, [3, 1, 2, 3]],
    ['hours later', 180 * minute, [3, 1, 2, 0, 0, 3]],
  ])('the messages of each hour go on after a restart %s', async (_, laterMs, last) => {
    const { use, setOpen } = await storeOf()
    const first = world({ store: { use } })
    const { clock } = first
    await clock.advance(60 * minute - (clock.now() % (60 * minute)))
    first.records.start()
    for (const count of [3, 1, 2]) {
      for (let n = 0; n < count; n += 1) first.send(first.entryOf('truck-1'))
      if (count !== 2) await clock.advance(60 * minute)
    }
    await first.records.stop(new AbortController().signal)

    setOpen(false)
    await clock.advance(laterMs)
    const second = world({ store: { use }, clock })
    second.records.start()
    for (let n = 0; n < 3; n += 1) second.send(second.entryOf('truck-1'))
    setOpen(true)
    await clock.advance(10_000)
    await eventually(() => second.records.counters().restored)
    expect(second.records.messagesByHour('truck-1')?.slice(-last.length)).toEqual(last)
    // And what it knows is written again.
    await second.records.stop(new AbortController().signal)
    const third = world({ store: { use }, clock })
    third.records.start()
    await eventually(() => third.records.counters().restored)
    expect(third.records.messagesByHour('truck-1')?.slice(-last.length)).toEqual(last)
  })

  test('a device that sends all the time is written once a minute, and a new one at once', async () => {
    const { use } = await storeOf()
    const { clock, records, entryOf, send } = world({ store: { use } })
    records.start()
    let early = 0
    for (let n = 0; n < 60; n += 1) {
      send(entryOf('truck-1'))
      await clock.advance(10_000)
      // The next round is planned when this one is on the disk.
      await eventually(() => clock.pending() === 1)
      if (n === 1) early = records.counters().written
    }
    expect(early).toBe(1)
    expect(records.counters().written).toBeGreaterThan(7)
    expect(records.counters().written).toBeLessThan(12)
  })

  test('a new device is written at once, 2000 in a round, and each again with the rest of its message', async () => {
    const { use } = await storeOf()
    const { clock, records, entryOf, send } = world({ store: { use } })
    records.start()
    await eventually(() => records.counters().restored && clock.pending() === 1)
    send(entryOf('truck-1'))
    await eventually(() => records.counters().written === 1)
    for (let n = 0; n < 2500; n += 1) send(entryOf(`invented-${n}`))
    await eventually(() => records.counters().written === 2000)
    await clock.advance(10_000)
    await eventually(() => records.counters().written === 2501)
    for (let round = 2; round <= 5; round += 1) {
      await eventually(() => clock.pending() === 1)
      await clock.advance(10_000)
    }
    expect(records.counters()).toMatchObject({ written: 2501, waiting: 2000 })
    await eventually(() => clock.pending() === 1)
    await clock.advance(10_000)
    await eventually(() => records.counters().written === 3001)
  })

  test('a device that made room for another one, or was forgotten, is not on the disk', async () => {
    const { use, store } = await storeOf()
    const { records, entryOf, send } = world({ store: { use }, devicesMax: 100 })
    records.start()
    await eventually(() => records.counters().restored)
    for (let n = 0; n < 100; n += 1) send(entryOf(`truck-${n}`))
    await eventually(() => records.counters().written === 100)
    for (let n = 0; n < 5000; n += 1) send(entryOf(`invented-${n}`))
    expect(await records.forget('invented-4999')).toBe(1)
    await records.stop(new AbortController().signal)
    let stored = 0
    for await (const page of store.pages(recordRange)) stored += page.length
    expect(stored).toBe(records.counters().devices)
    expect(stored).toBe(99)
  })

  test('a device that is forgotten before the records are read, or while they cannot be written, does not come back', async () => {
    const { use, store, setOpen } = await storeOf()
    const first = world({ store: { use } })
    first.records.start()
    for (const name of ['truck-1', 'truck-2']) first.send(first.entryOf(name))
    await first.records.stop(new AbortController().signal)

    const second = world({ store: { use } })
    second.records.start()
    expect(await second.records.forget('truck-1')).toBe(1)
    expect(second.view('truck-1')).toBeUndefined()
    setOpen(false)
    expect(await second.records.forget('truck-2')).toBeNull()
    expect(second.view('truck-2')).toBeDefined()
    // The process is killed: what was answered is on the disk.
    setOpen(true)
    const third = world({ store: { use } })
    third.records.start()
    await eventually(() => third.records.counters().restored)
    expect([...third.records.views()].map(({ device }) => device)).toEqual(['truck-2'])
    expect(await keysIn(store)).toHaveLength(1)
  })

  test('the mute of a device is on the disk when it is answered, also before the records are read', async () => {
    const { use } = await storeOf()
    const first = world({ store: { use } })
    first.records.start()
    first.send(first.entryOf('truck-1'))
    await first.records.stop(new AbortController().signal)
    const second = world({ store: { use } })
    second.records.start()
    expect(await second.records.mute('truck-1', { at: 2_000_000_000_000, isLength: false })).toBe(1)
    const third = world({ store: { use } })
    third.records.start()
    await eventually(() => third.records.counters().restored)
    expect(third.view('truck-1')?.mutedUntil).toBe(2_000_000_000_000)
  })

  test('removals wait while the records cannot be written', async () => {
    const { use, store, setOpen } = await storeOf()
    const { clock, records, entryOf, send } = world({ store: { use }, devicesMax: 100 })
    records.start()
    await eventually(() => records.counters().restored)
    for (let n = 0; n < 100; n += 1) send(entryOf(`truck-${n}`))
    await eventually(() => records.counters().written === 100)
    setOpen(false)
    for (let n = 0; n < 50; n += 1) send(entryOf(`later-${n}`, { listed: true }))
    await eventually(() => clock.pending() === 1)
    await clock.advance(10_000)
    await eventually(() => clock.pending() === 1)
    setOpen(true)
    await records.stop(new AbortController().signal)
    expect(await keysIn(store)).toHaveLength(records.counters().devices)
  })

  test.each([
    ['in the same hour', 0, 403],
    ['in the next one', 60 * minute, 4],
    ['hours later', 240 * minute, 1],
  ])('the messages of the last hour are true after a restart %s', async (_, laterMs, perHour) => {
    const { use, setOpen } = await storeOf()
    const first = world({ store: { use } })
    const { clock } = first
    await clock.advance(60 * minute - (clock.now() % (60 * minute)))
    first.records.start()
    for (const count of [400, 3]) {
      for (let n = 0; n < count; n += 1) first.send(first.entryOf('truck-1'))
      if (count !== 3) await clock.advance(60 * minute)
    }
    await first.records.stop(new AbortController().signal)
    setOpen(false)
    await clock.advance(laterMs)
    const second = world({ store: { use }, clock })
    second.records.start()
    second.send(second.entryOf('truck-1'))
    setOpen(true)
    await clock.advance(10_000)
    await eventually(() => second.records.counters().restored)
    expect(second.view('truck-1')?.messagesPerHour).toBe(perHour)
  })

  test('a record that cannot be read is counted, and the others are there', async () => {
    const { use, store } = await storeOf()
    const first = world({ store: { use } })
    first.records.start()
    first.send(first.entryOf('truck-1'))
    await first.records.stop(new AbortController().signal)
    const damaged = { type: 'put', key: Buffer.from([0x20, 0x41]), value: Buffer.from('{') } as const
    await store.write([damaged], { sync: false })
    const second = world({ store: { use } })
    second.records.start()
    await eventually(() => second.records.counters().restored)
    expect(second.records.counters()).toMatchObject({ unreadable: 1, devices: 1 })
  })
})

describe('a device that sends what came before', () => {
  const second = 1000
  type World = ReturnType<typeof world>

  /** A message with one payload each `everyMs`. */
  async function receive(
    { clock, records, entryOf, send }: World,
    messages: readonly { key: string; became: 'stored' | 'duplicate' }[],
    everyMs = 2 * second,
  ) {
    const { device, provider } = entryOf('truck-1')
    for (const { key, became } of messages) {
      send(entryOf('truck-1'))
      records.notes.payload({ device, provider, windowKey: key, duplicateRule: 'always' }, became)
      await clock.advance(everyMs)
    }
  }

  const times = (count: number, became: 'stored' | 'duplicate', keyOf: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => ({ key: keyOf(n), became }))

  const repeated = (count: number) => times(count, 'duplicate', () => 'a')

  test('repeats after a minute of 20 duplicates, since its last new message, until a new one comes', async () => {
    const one = world()
    const newAt = one.clock.now()
    await receive(one, [{ key: 'a', became: 'stored' }, ...repeated(30)])
    expect(one.view('truck-1')?.repeating).toBeNull()
    await receive(one, repeated(2))
    expect(one.view('truck-1')).toMatchObject({
      duplicates: 32,
      repeating: { messages: 32, newAt, isOneMessage: true },
    })
    // The dedup window forgets its key after ten minutes.
    await receive(one, [{ key: 'a', became: 'stored' }, ...repeated(1)])
    expect([...one.records.standings()]).toMatchObject([{ isRepeating: true }])
    await receive(one, [{ key: 'b', became: 'stored' }])
    expect([...one.records.standings()]).toMatchObject([{ isRepeating: false }])
  })

  test('does not repeat where it sends each message twice', async () => {
    const one = world()
    for (let n = 0; n < 100; n += 1)
      await receive(one, [
        { key: `a${n}`, became: 'stored' },
        { key: `a${n}`, became: 'duplicate' },
      ])
    expect(one.view('truck-1')).toMatchObject({ duplicates: 100, repeating: null })
  })

  test('does not repeat while a backlog comes again, and does where a few messages come for ever', async () => {
    const one = world()
    await receive(
      one,
      times(120, 'duplicate', (n) => `stored-${n}`),
    )
    expect(one.view('truck-1')?.repeating).toBeNull()
    await receive(
      one,
      times(40, 'duplicate', (n) => `stored-${n % 5}`),
    )
    expect(one.view('truck-1')?.repeating).toMatchObject({ messages: 160, newAt: null, isOneMessage: false })
  })

  test('repeats after a quarter of an hour where it sends rarely', async () => {
    const one = world()
    await receive(one, repeated(4), 4 * minute)
    expect(one.view('truck-1')?.repeating).toBeNull()
    await receive(one, repeated(2), 4 * minute)
    expect(one.view('truck-1')?.repeating).toMatchObject({ messages: 6, isOneMessage: true })
  })

  test('does not repeat where its messages have no time, or one of the records of each is new', async () => {
    const one = world()
    const { device, provider } = one.entryOf('truck-1')
    for (let n = 0; n < 60; n += 1) {
      one.send(one.entryOf('truck-1'))
      if (n < 30)
        one.records.notes.payload({ device, provider, windowKey: 'a', duplicateRule: 'resend' }, 'stored')
      else
        for (const [key, became] of [
          ['a', 'duplicate'],
          [`b${n}`, 'stored'],
        ] as const)
          one.records.notes.payload({ device, provider, windowKey: key, duplicateRule: 'always' }, became)
      await one.clock.advance(10 * second)
    }
    expect(one.view('truck-1')).toMatchObject({ duplicates: 30, repeating: null })
  })

  test('does not repeat any more where it sends something else', async () => {
    const one = world()
    await receive(one, repeated(40))
    expect(one.view('truck-1')?.repeating).not.toBeNull()
    for (let n = 0; n < 20; n += 1) {
      one.send(one.entryOf('truck-1'))
      await one.clock.advance(2 * second)
    }
    expect(one.view('truck-1')?.repeating).toBeNull()
  })
})
