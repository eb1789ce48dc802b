import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createDeviceRecords, type RecordsStore } from '../../src/device-records/device-records.ts'
import { defaultProvider, type ProviderName } from '../../src/domain/ids.ts'
import type { Message } from '../../src/domain/message.ts'
import type { NotedDevice } from '../../src/mapping/mapping.ts'
import { recordRange } from '../../src/device-records/device-record-codec.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { uuidNamed, encodeEntries } from '../support/ledger-world.ts'
import { messageOf } from '../support/mapping-world.ts'
import { newFolder } from '../support/folders.ts'
import { eventually } from '../support/eventually.ts'
import { openLevelStore } from '../../src/storage/storage.ts'

const minute = 60_000

function world(
  options: { devicesMax?: number; store?: RecordsStore; clock?: ReturnType<typeof createFakeClock> } = {},
) {
  const clock = options.clock ?? createFakeClock()
  const records = createDeviceRecords(
    {
      clock,
      store: options.store ?? { use: async () => null },
      providers: [defaultProvider],
      withheldOf: () => [],
      knownTime: () => clock.now(),
      isDiskLow: () => false,
    },
    {
      devicesMax: options.devicesMax ?? 1000,
      messagesBytesMax: 1024 ** 2,
      retentionMs: 90 * 86_400_000,
      everyMs: 10_000,
      recordsPerRound: 500,
      newPerRound: 2000,
      roundsToWait: 6,
    },
  )
  const entries = new Map<string, NotedDevice>()
  const entryOf = (device: string, more: Partial<NotedDevice> = {}): NotedDevice => {
    const known = entries.get(device)
    if (known !== undefined) return known
    const entry = {
      device,
      provider: defaultProvider,
      assetId: device,
      listed: false,
      withhold: null,
      note: null,
      ...more,
    }
    entries.set(device, entry)
    return entry
  }
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
      await clock.advance(minute)
    }
    expect(view('truck-1')?.messagesPerHour).toBeGreaterThan(55)
    expect(view('truck-1')?.messagesPerHour).toBeLessThan(65)
    await clock.advance(3 * 60 * minute)
    expect(view('truck-1')?.messagesPerHour).toBe(0)
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

describe('on the disk', () => {
  const storeOf = async () => {
    const store = await openLevelStore(join(await newFolder(), 'records'))
    onTestFinished(() => store.close())
    let isOpen = true
    const use: RecordsStore['use'] = async (work) => (isOpen ? work(store) : null)
    return { store, use, setOpen: (open: boolean) => void (isOpen = open) }
  }

  test('messages that come before the records were read are added to them', async () => {
    const { use, setOpen } = await storeOf()
    const first = world({ store: { use } })
    first.records.start()
    for (let n = 0; n < 3; n += 1) first.send(first.entryOf('truck-1'))
    await first.records.stop(new AbortController().signal)

    setOpen(false)
    const second = world({ store: { use }, clock: first.clock })
    await first.clock.advance(5000)
    second.records.start()
    second.send(second.entryOf('truck-1'))
    expect(second.view('truck-1')).toMatchObject({ messages: 1 })
    expect(second.records.counters().restored).toBe(false)
    setOpen(true)
    await first.clock.advance(10_000)
    await eventually(() => second.records.counters().restored)
    expect(second.view('truck-1')).toMatchObject({
      messages: 4,
      firstSeen: first.view('truck-1')?.firstSeen,
      lastSeen: first.clock.now() - 10_000,
    })
  })

  test('a device that sends all the time is written once a minute, and a new one in the next round', async () => {
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

  test('a new device is written in the next round, also behind others that wait', async () => {
    const { use } = await storeOf()
    const { clock, records, entryOf, send } = world({ store: { use } })
    records.start()
    send(entryOf('truck-1'))
    await clock.advance(10_000)
    await eventually(() => records.counters().written === 1)
    send(entryOf('truck-1'))
    send(entryOf('truck-2'))
    await eventually(() => clock.pending() === 1)
    await clock.advance(10_000)
    await eventually(() => records.counters().written === 2)
    expect(records.counters().waiting).toBe(1)
  })

  test('a device that made room for another one, or was forgotten, is not on the disk', async () => {
    const { use, store } = await storeOf()
    const { clock, records, entryOf, send } = world({ store: { use }, devicesMax: 100 })
    records.start()
    await eventually(() => records.counters().restored)
    for (let n = 0; n < 100; n += 1) send(entryOf(`truck-${n}`))
    await eventually(() => clock.pending() === 1)
    await clock.advance(10_000)
    await eventually(() => records.counters().waiting === 0)
    for (let n = 0; n < 5000; n += 1) send(entryOf(`invented-${n}`))
    expect(records.forget('invented-4999')).toBe(1)
    await records.stop(new AbortController().signal)
    let stored = 0
    for await (const page of store.pages(recordRange)) stored += page.length
    expect(stored).toBe(records.counters().devices)
    expect(stored).toBe(99)
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
