import { expect } from 'vitest'
import { createSilentDevices, type SilentRecord } from '../../../src/app/traffic-watch/silent-devices.ts'
import type { Standing } from '../../../src/device-records/device-records.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { State, StateCode } from '../../../src/domain/condition-state.ts'
import { isSilent, silentAfter } from '../../../src/device-records/rhythm.ts'
import { stepCases } from '../../support/step-cases.ts'

const second = 1000
const day = 24 * 3600 * second
const startMs = Date.UTC(2026, 0, 5, 6)

type Given = { after?: 'auto' | number; hasTable?: boolean } | undefined
type Truck = Partial<Standing> & { device: string; address?: string; gapMs?: number }

/** Trucks that send every `gapMs` until they do not. */
function world(given: Given, stored: SilentRecord | null = null) {
  const { after = 'auto', hasTable = false } = given ?? {}
  let now = startMs
  const trucks = new Map<string, Truck & { lastSeen: number | null }>()
  const closed = new Set<string>()
  const silent = createSilentDevices(
    {
      now: () => now,
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
      firstSeen: startMs - 30 * day,
      lastMappedAt: lastSeen,
      accepted: null,
      refused: null,
      skewMs: null,
      positionArrivedAt: null,
      blindMs: 0,
      blindUsualMs: 0,
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
    closed,
    silent,
    add: (...more: Truck[]) => {
      for (const one of more) trucks.set(one.device, { lastSeen: now, ...one })
    },
    change: (device: string, more: Partial<Truck>) => Object.assign(trucks.get(device)!, more),
    /** The others are silent. */
    pass(ms: number, sends: (device: string) => boolean) {
      const end = now + ms
      // Within what the rhythm of a truck lets expect, or the fleet is silent between two steps.
      const step = Math.max(10 * second, Math.min(ms / 200, 290 * second))
      while (now < end) {
        now = Math.min(end, now + step)
        for (const truck of trucks.values()) if (sends(truck.device)) truck.lastSeen = now
        look()
      }
    },
    of: <Code extends StateCode>(code: Code) =>
      silent.states().filter((state): state is Extract<State, { code: Code }> => state.code === code),
  }
}

/** A restart puts another one in its place. */
const start = (given: Given) => ({ of: world(given) })

type Started = ReturnType<typeof start>
type Pass = { for: number; sends?: string; but?: string }

/** Times of the cases are relative to the start. */
function truckOf<Fields extends Partial<Truck>>(truck: Fields): Fields {
  const at = (ms: number | null | undefined) => (typeof ms === 'number' ? { ms: startMs + ms } : null)
  const [firstSeen, lastSeen, mutedUntil] = [truck.firstSeen, truck.lastSeen, truck.mutedUntil].map(at)
  return {
    ...truck,
    ...(firstSeen && { firstSeen: firstSeen.ms }),
    ...(lastSeen && { lastSeen: lastSeen.ms }),
    ...(mutedUntil && { mutedUntil: mutedUntil.ms }),
  }
}

stepCases(import.meta.filename, start, {
  add: ({ of }: Started, trucks: Truck | Truck[]) => of.add(...[trucks].flat().map(truckOf)),
  /** PREFIX-0 and on. `ownAddress`: each has one. */
  addNamed: (
    { of }: Started,
    [count, prefix, more]: [number, string, (Partial<Truck> & { ownAddress?: true })?],
  ) => {
    const { ownAddress = false, ...fields } = more ?? {}
    for (let n = 0; n < count; n += 1)
      of.add(truckOf({ device: `${prefix}-${n}`, ...fields, ...(ownAddress && { address: `10.0.0.${n}` }) }))
  },
  change: ({ of }: Started, { device, ...more }: Partial<Truck> & { device: string }) =>
    of.change(device, truckOf(more)),
  close: ({ of }: Started, bridge: string) => of.closed.add(bridge),
  openAll: ({ of }: Started) => of.closed.clear(),
  /** The others are silent. */
  pass: ({ of }: Started, { for: ms, sends = '', but }: Pass) =>
    of.pass(ms, (device) => (but === undefined ? new RegExp(sends).test(device) : device !== but)),
  nobodySends: ({ of }: Started, ms: number) => of.pass(ms, () => false),
  /** They stop one after the other, six minutes apart. */
  park: ({ of }: Started, [count, prefix]: [number, string]) => {
    for (let parked = 1; parked <= count; parked += 1)
      of.pass(360_000, (device) => {
        const [name, n] = device.split('-')
        return name !== prefix || Number(n) >= parked
      })
  },
  restart: (one: Started) => {
    const stored = JSON.parse(JSON.stringify(one.of.silent.record())) as SilentRecord
    one.of = world(undefined, stored)
  },
  silent: ({ of }: Started, names: string[]) =>
    expect(of.of('DEVICE_SILENT').flatMap(({ devices }) => devices.map(({ device }) => device))).toEqual(
      names,
    ),
  aloneSinceStart: ({ of }: Started) => expect(of.of('DEVICE_SILENT')[0]?.devices[0]?.lastAt).toBe(startMs),
  partSinceStart: ({ of }: Started) => expect(of.of('FLEET_PART_SILENT')[0]?.lastAt).toBe(startMs),
  part: ({ of }: Started, expected: object) => expect(of.of('FLEET_PART_SILENT')).toMatchObject([expected]),
  parts: ({ of }: Started, expected: object[]) => expect(of.of('FLEET_PART_SILENT')).toEqual(expected),
  holds: ({ of }: Started, expected: object[]) => expect(of.silent.states()).toMatchObject(expected),
})
