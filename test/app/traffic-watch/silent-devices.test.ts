import { describe, expect, test } from 'vitest'
import { createSilentDevices, type SilentRecord } from '../../../src/app/traffic-watch/silent-devices.ts'
import type { Standing } from '../../../src/device-records/device-records.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { EventOf, GatewayEvent } from '../../../src/domain/event.ts'
import { isSilent, silentAfter } from '../../../src/device-records/rhythm.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const start = Date.UTC(2026, 0, 5, 6)

type Truck = Partial<Standing> & { device: string; address?: string; gapMs?: number }

/** Trucks that send every `gapMs` until they do not. */
function world(
  after: 'auto' | 'off' | number = 'auto',
  stored: SilentRecord | null = null,
  hasTable = false,
) {
  let now = start
  const events: GatewayEvent[] = []
  const trucks = new Map<string, Truck & { lastSeen: number | null }>()
  const closed = new Set<string>()
  const silent = createSilentDevices(
    {
      now: () => now,
      emit: (event) => void events.push(event),
      addressOf: ({ device }) => trucks.get(device)?.address ?? null,
      closed: () => closed,
    },
    { after: () => after, stored },
  )
  const standingOf = (truck: Truck & { lastSeen: number | null }): Standing => {
    const { lastSeen, gapMs = 30 * second } = truck
    const afterMs = silentAfter(gapMs)
    const times = { now, listeningSince: 0, afterMs }
    return {
      provider: defaultProvider,
      assetId: truck.device,
      sender: null,
      firstSeen: start - 30 * day,
      lastMappedAt: lastSeen,
      accepted: null,
      refused: null,
      skewMs: null,
      positionArrivedAt: null,
      medianGapMs: gapMs,
      mutedUntil: null,
      from: null,
      source: 'trucks',
      isListed: true,
      isSilent: lastSeen !== null && isSilent(lastSeen, times),
      longestPauseMs: 0,
      loss: null,
      isRepeating: false,
      ...truck,
    }
  }
  const look = () => {
    silent.begin(hasTable)
    for (const truck of trucks.values()) silent.add(standingOf(truck))
    silent.end()
  }
  return {
    events,
    closed,
    silent,
    add: (...more: Truck[]) => {
      for (const one of more) trucks.set(one.device, { lastSeen: now, ...one })
    },
    change: (device: string, more: Partial<Truck>) => Object.assign(trucks.get(device)!, more),
    /** The others are silent. */
    pass(ms: number, sends: (truck: Truck) => boolean) {
      const end = now + ms
      const step = Math.max(10 * second, ms / 200)
      while (now < end) {
        now = Math.min(end, now + step)
        for (const truck of trucks.values()) if (sends(truck)) truck.lastSeen = now
        look()
      }
    },
    lastOf: <Kind extends 'device_silent' | 'fleet_part_silent'>(kind: Kind) =>
      events.findLast((event) => event.kind === kind) as EventOf<Kind> | undefined,
  }
}

const south = ({ device }: Truck) => device.startsWith('south')
const but =
  (name: string) =>
  ({ device }: Truck) =>
    device !== name

const named = (count: number, more: Partial<Truck> = {}, prefix = 'truck') =>
  Array.from({ length: count }, (_, n) => ({ device: `${prefix}-${n}`, ...more }))

describe('a truck that falls silent while others send', () => {
  test.each([
    ['after 24 hours', 'truck-1', {}, 23, 2],
    [
      'after three times its longest pause, as of a weekend',
      'weekday',
      { longestPauseMs: 60 * hour },
      179,
      3,
    ],
  ])('is named %s, and not before', (_, device, more, quietHours, moreHours) => {
    const { add, pass, lastOf } = world()
    add(...named(3), { device, ...more })
    pass(quietHours * hour, but(device))
    expect(lastOf('device_silent')).toBeUndefined()
    pass(moreHours * hour, but(device))
    expect(lastOf('device_silent')).toMatchObject({ total: 1, devices: [{ device, lastAt: start }] })
  })

  test('is not named while it is known for less than 14 days, unless the setting says when', () => {
    for (const [after, total] of [
      ['auto', undefined],
      [hour, 1],
    ] as const) {
      const { add, pass, lastOf } = world(after)
      add(...named(3), { device: 'new', firstSeen: start - 5 * day })
      pass(2 * day, but('new'))
      expect(lastOf('device_silent')?.total).toBe(total)
    }
  })

  test('is named where it sent too few messages for a rhythm', () => {
    const { add, pass, lastOf } = world(hour)
    add(...named(3), { device: 'new', medianGapMs: null, isSilent: false })
    pass(2 * hour, but('new'))
    expect(lastOf('device_silent')?.devices.map(({ device }) => device)).toEqual(['new'])
  })

  test('is named no more when it sends again', () => {
    const { add, pass, lastOf } = world(hour)
    add(...named(3))
    pass(2 * hour, but('truck-1'))
    expect(lastOf('device_silent')?.total).toBe(1)
    pass(minute, () => true)
    expect(lastOf('device_silent')?.total).toBe(0)
  })

  test('is not named where it is muted, where it is not listed, or where its bridge is not connected', () => {
    const { add, pass, lastOf, closed, change } = world(hour)
    closed.add('cloud')
    add(...named(3), { device: 'workshop', mutedUntil: start + day }, { device: 'far', from: 'cloud' })
    pass(5 * hour, ({ device }) => device.startsWith('truck'))
    expect(lastOf('device_silent')).toBeUndefined()
    closed.clear()
    change('workshop', { mutedUntil: start + 5 * hour })
    pass(minute, ({ device }) => device.startsWith('truck'))
    expect(lastOf('device_silent')?.devices.map(({ device }) => device)).toEqual(['workshop', 'far'])
  })

  test('is not named where the device table does not list it', () => {
    const { add, pass, events } = world(hour, null, true)
    add(...named(3), { device: 'stranger', isListed: false })
    pass(5 * hour, ({ device }) => device.startsWith('truck'))
    expect(events).toEqual([])
  })

  test('is not named while all are silent', () => {
    const { add, pass, events } = world(hour)
    add(...named(8))
    pass(3 * day, () => false)
    expect(events).toEqual([])
  })
})

describe('a part of the fleet that falls silent at once', () => {
  test('is named by the address that its devices have in common, and none of them alone', () => {
    const { add, pass, lastOf, events } = world(hour)
    add(...named(29, { address: '10.1.2.3' }, 'north'), ...named(31, { address: '10.9.9.9' }, 'south'))
    pass(2 * hour, south)
    expect(lastOf('fleet_part_silent')).toMatchObject({
      part: 'address',
      name: '10.1.2.3',
      devices: 29,
      of: 29,
      total: 60,
      lastAt: start,
    })
    expect(events.filter(({ kind }) => kind === 'device_silent')).toEqual([])
    expect(events.filter(({ kind }) => kind === 'fleet_part_silent')).toHaveLength(1)
  })

  test('is named within ten of their rhythms', () => {
    const { add, pass, lastOf } = world()
    add(...named(6, { address: '10.1.2.3' }, 'north'), ...named(6, {}, 'south'))
    pass(6 * minute, south)
    expect(lastOf('fleet_part_silent')?.devices).toBe(6)
  })

  test('is named where 19 of 20 have nothing in common', () => {
    const { add, pass, lastOf } = world()
    add(...Array.from({ length: 20 }, (_, n) => ({ device: `t-${n}`, address: `10.0.0.${n}` })))
    pass(hour, ({ device }) => device === 't-7')
    expect(lastOf('fleet_part_silent')).toMatchObject({ part: 'all', devices: 19, of: 20 })
  })

  test('is the largest one: two addresses of one outage are not named for themselves', () => {
    const { add, pass, events } = world()
    add(...named(10, { address: '10.0.0.1' }, 'a'), ...named(9, { address: '10.0.0.2' }, 'b'), {
      device: 'c',
    })
    pass(hour, ({ device }) => device === 'c')
    expect(events).toMatchObject([{ kind: 'fleet_part_silent', part: 'all', devices: 19, of: 20 }])
  })

  test('is none where most of those that have it in common send on', () => {
    const { add, pass, events } = world()
    add(...named(16, { address: '10.0.0.1' }, 'a'), ...named(3, {}, 'b'))
    pass(hour, ({ device }) => device.startsWith('b') || Number(device.slice(2)) >= 6)
    expect(events).toEqual([])
  })

  test('is over when half of its devices send again; the others are named alone later', () => {
    const { add, pass, lastOf } = world(2 * hour)
    add(...named(8, { address: '10.1.2.3' }, 'north'), ...named(8, {}, 'south'))
    pass(3 * hour, south)
    pass(minute, ({ device }) => !['north-0', 'north-1'].includes(device))
    expect(lastOf('fleet_part_silent')?.devices).toBe(0)
    expect(lastOf('device_silent')?.devices.map(({ device }) => device)).toEqual(['north-0', 'north-1'])
  })

  test('is still named after a restart', () => {
    const first = world()
    first.add(...named(8, { address: '10.1.2.3' }, 'north'), ...named(8, {}, 'south'))
    first.pass(hour, south)
    const stored = JSON.parse(JSON.stringify(first.silent.record())) as SilentRecord
    const { add, pass, lastOf } = world('auto', stored)
    add(...named(8, { address: '10.1.2.3' }, 'north').map((one) => ({ ...one, lastSeen: start - day })))
    add(...named(8, {}, 'south'))
    pass(minute, south)
    expect(lastOf('fleet_part_silent')).toMatchObject({ devices: 8, name: '10.1.2.3' })
  })
})

describe('a fleet that parks', () => {
  test('is no part that fell silent: its trucks stop one after the other', () => {
    const { add, pass, events } = world()
    add(...named(20, { address: '10.1.2.3' }, 'north'), ...named(3, {}, 'south'))
    for (let parked = 1; parked <= 20; parked += 1)
      pass(6 * minute, ({ device }) => device.startsWith('south') || Number(device.slice(6)) >= parked)
    pass(12 * hour, south)
    expect(events).toEqual([])
  })

  test('is none where its devices send seldom, and often pause as long', () => {
    const slow = { gapMs: 10 * minute, longestPauseMs: 14 * hour, address: '10.1.2.3' }
    const { add, pass, events } = world()
    add(...named(8, slow, 'north'), ...named(3, {}, 'south'))
    pass(12 * hour, south)
    expect(events).toEqual([])
  })
})
