// device-monitor.ts: checks at intervals what is known about the devices: whether most clocks differ from
// ours, which devices have no model, send what cannot be, map to nothing or repeat, which clocks are worst,
// how many are silent. For conditions, /status and /devices; never on the hot path, and in slices, so that a
// large fleet does not block the event loop.

import { setImmediate as turn } from 'node:timers/promises'
import { every, type CancelTimer, type Clock } from '../../std/clock.ts'
import type { OurTime } from '../../domain/arrival.ts'
import { noDevices } from '../../domain/device-state.ts'
import type { State } from '../../domain/condition-state.ts'
import type { DeviceRecords, Standing } from '../../device-records/device-records.ts'
import type { DeviceTotals, DeviceView } from '../../ops/ops.ts'
import { createUnmappedDevices } from './unmapped-devices.ts'
import { createHourOffsets } from './hour-offsets.ts'
import type { GatewayTime } from '../our-time.ts'
import { createDeviceViews, type FoundClients, type ViewDeps } from './device-views.ts'
import type { SilentDevices } from '../traffic-watch/silent-devices.ts'

export { createDeviceMessages } from './device-messages.ts'

export type DeviceMonitor = {
  /** `clients`: those of the broker. `silences`: is given each device at each look. */
  start(clients: FoundClients, silences: SilentDevices | null): void
  /** Another mapping is in force. */
  mappingChanged(): void
  device(key: string): DeviceView | null
  devices(): AsyncIterable<readonly DeviceView[]>
  /** At the last check: the worst clocks, and how many devices are listed and silent. */
  worstClocks(): readonly DeviceView[]
  totals(): DeviceTotals
  /** At the last check. */
  states(): readonly State[]
  stop(): void
}

type Deps = {
  clock: Clock
  ourTime: Pick<OurTime, 'now'> & Pick<GatewayTime, 'view' | 'comparedToDevices'>
  records: DeviceRecords
  active: ViewDeps['active']
}

const checkEveryMs = 10_000
/** Between two looks at a large fleet that persons or monitors cause. */
const lookMinMs = 1000
const restoreWaitMs = 120_000
const sliceDevices = 1000
/** A view costs more than a look: 250 hold the loop for 1 to 3 ms. */
const sliceViews = 250
const skewedMax = 5
/** Less comes from the delay of messages and from clocks that are set from time to time. */
const skewMinMs = 60_000

type LookTotals = Pick<DeviceTotals, 'total' | 'seen' | 'states' | 'checkedAt' | 'listed'>

const noTotals: LookTotals = { total: 0, seen: 0, states: noDevices(), checkedAt: null, listed: 0 }

export function createDeviceMonitor({ clock, ourTime, records, active }: Deps): DeviceMonitor {
  let cancel: CancelTimer = () => {}
  let worst: readonly DeviceView[] = []
  /** By the mapper, and by the last look at all devices. */
  let ofMapper: readonly State[] = []
  let ofLook: readonly State[] = []
  let totals = noTotals
  let clients: FoundClients | null = null
  let silences: SilentDevices | null = null
  const views = createDeviceViews({ ourTime, active, records, clients: () => clients })
  const unmapped = createUnmappedDevices({ now: clock.now })
  const startedMs = clock.monotonic()
  let walking = false
  let stopped = false
  return {
    start(found, watched) {
      clients = found
      silences = watched
      // Else /status would say for the first seconds that no device is listed.
      void look()
      cancel = every(clock, checkEveryMs, check)
    },
    mappingChanged() {
      ofMapper = statesOfMapper()
      // Before a message of a device that has another provider now.
      if (!walking) void look()
    },
    states: () => [...ofMapper, ...ofLook],
    device: views.device,
    devices,
    totals() {
      lookAgain()
      return { ...records.counters(), ...totals }
    },
    worstClocks: () => worst,
    stop,
  }

  function check(): void {
    ofMapper = statesOfMapper()
    // Never rejects: it only reads what is in memory.
    if (!walking) void look()
  }

  function statesOfMapper(): readonly State[] {
    return [...ownClock(), ...models(), ...suspects()]
  }

  function* ownClock(): Generator<State> {
    const { by, isDisputed } = ourTime.view()
    const common = active().mapper.commonClockSkew(ourTime.now())
    if (common !== null) ourTime.comparedToDevices(common.skewMs)
    // Where the service confirms our time, devices that are late together bring a backlog.
    const isConfirmed = by === 'devices' || (by === 'service' && !isDisputed)
    if (common !== null && !isConfirmed) yield { code: 'CLOCK_SUSPECT', ...common }
  }

  function* models(): Generator<State> {
    for (const [source, found] of active().mapper.counters().withoutModel)
      yield { code: 'MODEL_UNKNOWN', source, ...found }
  }

  function* suspects(): Generator<State> {
    const { swapped, withheld } = active().mapper.suspects(ourTime.now())
    for (const [source, found] of swapped) yield { code: 'POSITIONS_SWAPPED', source, ...found }
    for (const [source, found] of withheld) yield { code: 'VALUES_WITHHELD', source, ...found }
  }

  /** A person asks: what the last look says may be old, and is shown beside counters of this moment. */
  function lookAgain(): void {
    if (clients === null || walking) return
    const agoMs = Math.abs(clock.now() - (totals.checkedAt ?? 0))
    // A small fleet is looked at before this returns.
    if (totals.total < sliceViews || agoMs >= lookMinMs) void look()
  }

  /**
   * Until then a device that is silent now has no record, and looks unknown. Records that cannot be read are
   * waited for only for a time.
   */
  function areRecordsRead(): boolean {
    return records.counters().restored || clock.monotonic() - startedMs >= restoreWaitMs
  }

  /** In slices: the worst clocks, how many devices have each state, and how many are listed. */
  async function look(): Promise<void> {
    walking = true
    const { mapper, mapping } = active()
    let bad: [device: string, skewMs: number][] = []
    let count = 0
    const hourOffsets = createHourOffsets(clock.now())
    const repeating = createRepeatingDevices()
    for (const [device, deviceClock] of mapper.deviceClocks()) {
      const { skewMs } = deviceClock
      hourOffsets.add(device, deviceClock)
      records.noteSkew(device, skewMs)
      if (Math.abs(skewMs) >= skewMinMs) bad.push([device, skewMs])
      if (bad.length > sliceDevices) bad = worstOf(bad)
      if (++count % sliceDevices === 0) await turn()
      if (stopped) return
    }
    unmapped.begin()
    const watched = areRecordsRead() ? silences : null
    watched?.begin(mapping.listedCount > 0)
    const counted = { total: 0, seen: 0, states: noDevices() }
    for (const { record, state, mutedUntil } of views.classified(standingsOf(mapping), mapping)) {
      counted.total += 1
      counted.states[state] += 1
      if (record !== null) {
        if (record.lastSeen !== null) counted.seen += 1
        unmapped.add(record)
        repeating.add(record)
        // The gateway holds it: its silence is not its own.
        if (state !== 'waiting')
          watched?.add(mutedUntil === record.mutedUntil ? record : { ...record, mutedUntil })
      }
      if (++count % sliceDevices === 0) await turn()
      if (stopped) return
    }
    ofLook = [...hourOffsets.states(), ...unmapped.states(), ...repeating.states()]
    watched?.end()
    worst = worstOf(bad).flatMap(([device]) => views.device(device) ?? [])
    totals = { ...counted, listed: mapping.listedCount, checkedAt: clock.now() }
    walking = false
  }

  /** Each under the provider that it has now. */
  function* standingsOf(mapping: ReturnType<Deps['active']>['mapping']): Generator<Standing> {
    for (const standing of records.standings())
      if (!records.moved(standing, mapping.providerOf(standing.device, standing.source))) yield standing
  }

  async function* devices(): AsyncGenerator<readonly DeviceView[]> {
    let slice: DeviceView[] = []
    const { mapping } = active()
    for (const view of views.all(mapping)) {
      slice.push(view)
      if (slice.length < sliceViews) continue
      yield slice
      slice = []
      await turn()
    }
    yield slice
  }

  function stop(): void {
    stopped = true
    cancel()
  }
}

function worstOf(clocks: readonly [device: string, skewMs: number][]): [string, number][] {
  return clocks.toSorted((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, skewedMax)
}

// Devices that send, and bring nothing new: each of their last messages is a duplicate.
// Silent devices do not count. Where every device of the gateway repeats, traffic-watch.ts says so, too.

const manyShare = 0.1

/** For one look over all devices. */
function createRepeatingDevices() {
  let [devices, sending, example] = [0, 0, '']
  return {
    add({ device, isSilent, isRepeating }: Standing): void {
      if (isSilent) return
      sending += 1
      if (!isRepeating) return
      devices += 1
      example ||= device
    },
    states(): State[] {
      const isMany = devices >= sending * manyShare
      return devices === 0 ? [] : [{ code: 'DEVICES_REPEATING', devices, sending, example, isMany }]
    },
  }
}
