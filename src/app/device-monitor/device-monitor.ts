// device-monitor.ts: checks at intervals what is known about the devices: whether most clocks differ from
// ours, which devices have no model, send what cannot be, map to nothing or repeat, which clocks are worst,
// how many are silent. For events, /status and /devices; never on the hot path, and in slices, so that a
// large fleet does not block the event loop.

import { setImmediate as turn } from 'node:timers/promises'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { OurTime } from '../../domain/arrival.ts'
import { noDevices } from '../../domain/device-state.ts'
import type { Emit } from '../../domain/event.ts'
import type { DeviceRecords } from '../../device-records/device-records.ts'
import type { DeviceTotals, DeviceView } from '../../ops/ops.ts'
import { createUnmappedDevices } from './unmapped-devices.ts'
import { createHourOffsets } from './hour-offsets.ts'
import { createRepeatingDevices } from './repeating-devices.ts'
import type { GatewayTime } from '../our-time.ts'
import { createDeviceViews, mutedUntil, type FoundClients, type ViewDeps } from './device-views.ts'
import type { SilentDevices } from '../traffic-watch/silent-devices.ts'
import { createStateCounts, type CountedStates } from './state-counts.ts'

export { createDeviceMessages } from './device-messages.ts'

export type DeviceMonitor = {
  /** `clients`: those of the broker. `silences`: is given each device at each look. */
  start(clients: FoundClients, silences: SilentDevices | null): void
  /** Another mapping is in force: the events about models begin again. */
  mappingChanged(): void
  device(key: string): DeviceView | null
  devices(): AsyncIterable<readonly DeviceView[]>
  /** At the last check: the worst clocks, and how many devices are listed and silent. */
  worstClocks(): readonly DeviceView[]
  totals(): DeviceTotals
  stop(): void
}

type Deps = {
  clock: Clock
  ourTime: Pick<OurTime, 'now'> & Pick<GatewayTime, 'view' | 'comparedToDevices'>
  emit: Emit
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

type LookTotals = CountedStates & Pick<DeviceTotals, 'checkedAt' | 'listed'>

const noTotals: LookTotals = { total: 0, seen: 0, states: noDevices(), checkedAt: null, listed: 0 }

export function createDeviceMonitor({ clock, ourTime, emit, records, active }: Deps): DeviceMonitor {
  let cancel: CancelTimer = () => {}
  let suspect = false
  let worst: readonly DeviceView[] = []
  /** Devices without a model in the last event, by source. */
  const reported = new Map<string, number>()
  /** What the last events said, by source. */
  const swappedIn = new Map<string, number>()
  const withheldIn = new Map<string, string>()
  let totals = noTotals
  let clients: FoundClients | null = null
  let silences: SilentDevices | null = null
  const views = createDeviceViews({ clock, ourTime, active, records, clients: () => clients })
  const states = createStateCounts({ records, clients: () => clients })
  const unmapped = createUnmappedDevices({ emit, now: clock.now })
  const repeating = createRepeatingDevices({ emit })
  const hourOffsets = createHourOffsets({ emit, now: clock.now })
  const startedMs = clock.monotonic()
  let walking = false
  let stopped = false
  return {
    start(found, watched) {
      clients = found
      silences = watched
      // Else /status would say for the first seconds that no device is listed.
      void look()
      schedule()
    },
    mappingChanged,
    device: views.device,
    devices,
    totals() {
      lookAgain()
      return { ...records.counters(), ...totals }
    },
    worstClocks: () => worst,
    stop,
  }

  function schedule(): void {
    cancel = clock.after(checkEveryMs, () => {
      check()
      schedule()
    })
  }

  function check(): void {
    checkOwnClock()
    checkModels()
    checkSuspects()
    // Never rejects: it only reads what is in memory.
    if (!walking) void look()
  }

  function checkOwnClock(): void {
    const { by, isDisputed } = ourTime.view()
    const common = active().mapper.commonClockSkew(ourTime.now())
    if (common !== null) ourTime.comparedToDevices(common.skewMs)
    // Where the service confirms our time, devices that are late together bring a backlog.
    const isConfirmed = by === 'devices' || (by === 'service' && !isDisputed)
    const alike = isConfirmed ? null : common
    if (alike !== null) emit({ kind: 'clock_suspect', ...alike })
    else if (suspect) emit({ kind: 'clock_trusted' })
    suspect = alike !== null
  }

  function checkModels(): void {
    for (const [source, { devices, what }] of active().mapper.counters().withoutModel) {
      if (reported.get(source) === devices) continue
      reported.set(source, devices)
      emit({ kind: 'model_unknown', source, devices, what })
    }
  }

  function checkSuspects(): void {
    const { swapped, withheld } = active().mapper.suspects(ourTime.now())
    for (const source of swappedIn.keys()) if (!swapped.has(source)) endSwapped(source)
    for (const source of withheldIn.keys()) if (!withheld.has(source)) endWithheld(source)
    for (const [source, found] of swapped) {
      if (swappedIn.get(source) === found.devices) continue
      swappedIn.set(source, found.devices)
      emit({ kind: 'positions_swapped', source, ...found })
    }
    for (const [source, found] of withheld) {
      const shown = `${found.devices}|${found.device}|${found.field}`
      if (withheldIn.get(source) === shown) continue
      withheldIn.set(source, shown)
      emit({ kind: 'values_withheld', source, ...found })
    }
  }

  function endSwapped(source: string): void {
    swappedIn.delete(source)
    emit({ kind: 'positions_swapped', source, device: '', devices: 0 })
  }

  function endWithheld(source: string): void {
    withheldIn.delete(source)
    emit({
      kind: 'values_withheld',
      source,
      device: '',
      field: '',
      reason: '',
      withheld: 0,
      records: 0,
      devices: 0,
    })
  }

  function mappingChanged(): void {
    for (const source of swappedIn.keys()) endSwapped(source)
    for (const source of withheldIn.keys()) endWithheld(source)
    for (const source of reported.keys()) emit({ kind: 'model_unknown', source, devices: 0, what: '' })
    reported.clear()
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
    hourOffsets.begin()
    for (const [device, deviceClock] of mapper.deviceClocks()) {
      const { skewMs } = deviceClock
      hourOffsets.add(device, deviceClock)
      records.noteSkew(device, skewMs)
      if (Math.abs(skewMs) >= skewMinMs) bad.push([device, skewMs])
      if (bad.length > sliceDevices) bad = worstOf(bad)
      if (++count % sliceDevices === 0) await turn()
      if (stopped) return
    }
    hourOffsets.end()
    unmapped.begin()
    repeating.begin()
    states.begin()
    const watched = areRecordsRead() ? silences : null
    watched?.begin(mapping.listedCount > 0)
    for (const standing of records.standings()) {
      unmapped.add(standing)
      repeating.add(standing)
      states.add(standing)
      const until = mutedUntil(standing.mutedUntil, mapping.rowOf(standing.device))
      watched?.add(until === standing.mutedUntil ? standing : { ...standing, mutedUntil: until })
      if (++count % sliceDevices === 0) await turn()
      if (stopped) return
    }
    unmapped.end()
    repeating.end()
    watched?.end()
    for (const _ of states.countOthers(mapping)) {
      if (++count % sliceDevices === 0) await turn()
      if (stopped) return
    }
    worst = worstOf(bad).flatMap(([device]) => views.device(device) ?? [])
    totals = { ...states.now, listed: mapping.listedCount, checkedAt: clock.now() }
    walking = false
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
