import { describe, expect, test } from 'vitest'
import { createDeviceMonitor } from '../../src/app/device-monitor/device-monitor.ts'
import type { SilentDevices } from '../../src/app/traffic-watch/silent-devices.ts'
import type { KnownBy } from '../../src/domain/arrival.ts'
import type { StateCode } from '../../src/domain/condition-state.ts'
import type { Mapping } from '../../src/mapping/mapping.ts'
import { clientView, deviceRecords } from '../support/device-records-world.ts'
import { openMapperOf, messageOf, truckSource } from '../support/mapping-world.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'

const client = clientView('client-1', { state: 'lost', willCame: true })
const minute = 60_000

type Options = { by?: KnownBy | null; silences?: SilentDevices | null; families?: object }

/** Devices of one source. `families`: of its odometer, which then needs a model. */
function world({ by = null, silences = null, families }: Options = {}) {
  const clock = createFakeClock()
  const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'km', unit: 'km' }
  const source = families
    ? truckSource(
        { signals: [{ ...odometer, families: Object.keys(families) }] },
        { families, warn_without_model: 'odometer' },
      )
    : truckSource({ signals: [odometer], speed: { path: 'speed', unit: 'km/h' } })
  const records = deviceRecords(clock)
  const mapper = openMapperOf([source], { notes: records.notes })
  const mapping: Mapping = {
    open: () => mapper,
    openLive: () => mapper,
    explainer: () => {
      throw new Error('not asked')
    },
    rowOf: () => undefined,
    providerOf: () => null,
    listed: () => [],
    listedCount: 0,
    admits: () => true,
  }
  const look = createDeviceMonitor({
    clock,
    ourTime: { now: clock.now, view: () => ({ by, offsetMs: 0, isDisputed: false }), comparedToDevices() {} },
    records,
    active: () => ({ mapper, mapping, topics: () => [] }),
  })
  look.start(
    {
      find: (clientId) => (clientId === 'client-1' ? client : null),
      findAddress: () => null,
      withoutDevice: () => [],
      findUser: () => null,
      isUser: () => false,
      waitOf: () => null,
      isClosed: () => false,
    },
    silences,
  )
  const send = (device: string, content: object = {}) => {
    const arrivedAt = clock.now()
    const message = { ts: arrivedAt, lat: 52, lon: 13, ...content }
    mapper.map(messageOf(message, { topic: `telemetry/v1/${device}`, arrivedAt }))
  }
  return {
    clock,
    look,
    mapper,
    send,
    /** A message of each of `count` devices, whose clocks are off by `skewMs`. */
    publish(count: number, skewMs: (n: number) => number) {
      for (let n = 0; n < count; n += 1)
        send(`truck-${n}`, { ts: clock.now() - skewMs(n), lon: 13 + n / 1000 })
    },
    /** A message of each device a minute. */
    async pass(minutes: number, contents: Record<string, object>) {
      for (let n = 0; n < minutes; n += 1) {
        for (const [device, content] of Object.entries(contents)) send(device, content)
        await clock.advance(minute)
      }
    },
    codes: () => look.states().map(({ code }) => code),
    ofCode: (code: StateCode) => look.states().filter((state) => state.code === code),
  }
}

test('a client whose id is the name of no device is found by it', () => {
  const { look } = world()
  const view = look.device('client-1')
  expect(view).toMatchObject({ kind: 'client', state: 'never_sent', client: { clientId: 'client-1' } })
  expect(view?.why).toMatch(
    /^No device has this name, and a client has\. Its connection was lost .* \(will\): client "client-1", from .*/,
  )
  expect(look.device('client-2')).toBeNull()
})

describe('clocks', () => {
  test('that all differ by the same amount are CLOCK_SUSPECT, until they do not', async () => {
    const { clock, ofCode, publish } = world()
    publish(10, () => -3_600_000)
    await clock.advance(10_000)
    expect(ofCode('CLOCK_SUSPECT')).toMatchObject([{ devices: 10, judged: 10 }])
    for (let count = 0; count < 20; count += 1) publish(10, () => 0)
    await clock.advance(10_000)
    expect(ofCode('CLOCK_SUSPECT')).toEqual([])
  })

  test.each<[string, Options, (n: number) => number]>([
    ['bring a backlog, where the service confirms our time', { by: 'service' }, () => 3_600_000],
    ['that differ by different amounts are a fault of the devices', {}, (n) => n * 3_600_000],
  ])('%s', async (_, options, skewMs) => {
    const { clock, codes, publish } = world(options)
    publish(10, skewMs)
    await clock.advance(10_000)
    expect(codes()).not.toContain('CLOCK_SUSPECT')
  })

  test('each device is shown with the client that sent its last message', () => {
    const { look, publish } = world()
    publish(1, () => 0)
    expect(look.device('truck-0')).toMatchObject({ client: { clientId: 'client-1', state: 'lost' } })
  })

  test('the worst are listed, and each device can be looked up', async () => {
    const { clock, look, publish } = world()
    publish(2500, (n) => (n % 100 === 0 ? n * 1000 : 0))
    await clock.advance(10_000)
    for (let count = 0; count < 5; count += 1) await turn()
    expect(look.worstClocks().map(({ device }) => device)).toEqual(
      [2400, 2300, 2200, 2100, 2000].map((n) => `truck-${n}`),
    )
    expect(look.device('truck-2400')).toMatchObject({ skewMs: 2_400_000, listed: false, messages: 1 })
    expect(look.device('nobody')).toBeNull()
    const sizes: number[] = []
    for await (const slice of look.devices()) sizes.push(slice.length)
    expect(sizes).toEqual([...Array.from({ length: 10 }, () => 250), 0])
  })
})

test('devices without a model are counted for each source', async () => {
  const { clock, ofCode, publish } = world({ families: { truck: ['FMC6*'] } })
  publish(3, () => 0)
  await clock.advance(30_000)
  expect(ofCode('MODEL_UNKNOWN')).toEqual([
    { code: 'MODEL_UNKNOWN', source: 'trucks', devices: 3, what: 'odometer' },
  ])
})

describe('values that cannot be', () => {
  test('are a state when most of a device are so for 15 minutes, until they are not', async () => {
    const { pass, ofCode } = world()
    await pass(14, { bad: { speed: 999_999 }, 'half bad': { speed: 300 }, good: { speed: 50 } })
    expect(ofCode('VALUES_WITHHELD')).toEqual([])
    await pass(3, { bad: { speed: 999_999 }, 'half bad': { speed: 30 }, good: { speed: 50 } })
    expect(ofCode('VALUES_WITHHELD')).toMatchObject([
      { source: 'trucks', devices: 2, device: 'bad', field: 'speed', reason: 'above maximum' },
    ])
    await pass(40, { bad: { speed: 60 }, 'half bad': { speed: 30 }, good: { speed: 50 } })
    expect(ofCode('VALUES_WITHHELD')).toEqual([])
  })

  test('are usual where they are few, and need ten records or a day', async () => {
    const { pass, ofCode, send, clock } = world()
    for (let n = 0; n < 20; n += 1) {
      await pass(1, { truck: { speed: 999_999 } })
      await pass(2, { truck: { speed: 60 } })
    }
    expect(ofCode('VALUES_WITHHELD')).toEqual([])
    for (let n = 0; n < 5; n += 1) {
      send('rare', { speed: 999_999 })
      await clock.advance(300 * minute)
    }
    expect(ofCode('VALUES_WITHHELD')).toMatchObject([{ device: 'rare', devices: 1, withheld: 5, records: 5 }])
  })

  test('are no placeholders', async () => {
    const { pass, ofCode } = world()
    await pass(20, { truck: { km: 4_294_967_295 } })
    expect(ofCode('VALUES_WITHHELD')).toEqual([])
  })

  test('are a state when latitude and longitude look swapped, until they do not', async () => {
    const { pass, ofCode, mapper } = world()
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    await pass(1, Object.fromEntries(names.map((name) => [name, {}])))
    await pass(1, { other: { lat: 13, lon: 52 }, another: { lat: 13.1, lon: 52.1 } })
    expect(ofCode('POSITIONS_SWAPPED')).toEqual([
      { code: 'POSITIONS_SWAPPED', source: 'trucks', device: 'other', devices: 2 },
    ])
    expect(mapper.counters().watched).toMatchObject({ swapped: 2, fleet: 8, beyond: 0 })
    await pass(16, { other: {}, another: {} })
    expect(ofCode('POSITIONS_SWAPPED')).toEqual([])
  })
})

test('silence is judged when the records are read, or cannot be for two minutes', async () => {
  const looks: number[] = []
  const silences: SilentDevices = {
    begin: () => void looks.push(looks.length),
    add: () => undefined,
    end: () => undefined,
    states: () => [],
    record: () => ({ parts: [], pauses: [], newestAt: null }),
  }
  const { clock } = world({ silences })
  await clock.advance(110_000)
  expect(looks).toEqual([])
  await clock.advance(20_000)
  expect(looks.length).toBeGreaterThan(0)
})
