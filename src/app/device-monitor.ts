// device-monitor.ts: checks at intervals what the mapping knows about its devices: whether most clocks
// differ from ours, which devices have no model or send what cannot be, which clocks are worst. For events,
// /status and /devices; never on the hot path, and in slices, so that a large fleet does not block the
// event loop.

import { setImmediate as turn } from 'node:timers/promises'
import type { CancelTimer, Clock } from '../std/clock.ts'
import type { OurTime } from '../domain/arrival.ts'
import type { Emit } from '../domain/event.ts'
import type { Ingest } from '../ingest/ingest.ts'
import type { Mapper, Mapping } from '../mapping/mapping.ts'
import type { DeviceView } from '../ops/ops.ts'

export type DeviceMonitor = {
  /** `clients`: those of the broker. */
  start(clients: Pick<Ingest['clients'], 'find'>): void
  /** Another mapping is in force: the events about models begin again. */
  mappingChanged(): void
  device(key: string): DeviceView | null
  devices(): AsyncIterable<readonly DeviceView[]>
  /** The worst clocks at the last check. */
  worstClocks(): readonly DeviceView[]
  stop(): void
}

type Deps = {
  clock: Clock
  ourTime: Pick<OurTime, 'now'>
  emit: Emit
  active: () => { mapper: Mapper; mapping: Mapping }
}

const checkEveryMs = 10_000
const sliceDevices = 1000
const skewedMax = 5
/** Less comes from the delay of messages and from clocks that are set from time to time. */
const skewMinMs = 60_000

export function createDeviceMonitor({ clock, ourTime, emit, active }: Deps): DeviceMonitor {
  let cancel: CancelTimer = () => {}
  let suspect = false
  let worst: readonly DeviceView[] = []
  /** Devices without a model in the last event, by source. */
  const reported = new Map<string, number>()
  /** What the last events said, by source. */
  const swappedIn = new Map<string, number>()
  const withheldIn = new Map<string, string>()
  let clients: Pick<Ingest['clients'], 'find'> | null = null
  let walking = false
  let stopped = false
  return {
    start(found) {
      clients = found
      schedule()
    },
    mappingChanged,
    device,
    devices,
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
    if (!walking) void findWorst()
  }

  function checkOwnClock(): void {
    const alike = active().mapper.commonClockSkew(ourTime.now())
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

  async function findWorst(): Promise<void> {
    walking = true
    let found: DeviceView[] = []
    for await (const slice of devices()) {
      if (stopped) return
      const bad = slice.filter(({ skewMs }) => Math.abs(skewMs) >= skewMinMs)
      found = [...found, ...bad].sort((a, b) => Math.abs(b.skewMs) - Math.abs(a.skewMs)).slice(0, skewedMax)
    }
    worst = found
    walking = false
  }

  async function* devices(): AsyncGenerator<readonly DeviceView[]> {
    let slice: DeviceView[] = []
    for (const [key, seen] of active().mapper.deviceClocks()) {
      slice.push(viewOf(key, seen))
      if (slice.length < sliceDevices) continue
      yield slice
      slice = []
      await turn()
    }
    yield slice
  }

  function device(key: string): DeviceView | null {
    const seen = active().mapper.deviceClock(key)
    return seen === null ? null : viewOf(key, seen)
  }

  function viewOf(key: string, seen: NonNullable<ReturnType<Mapper['deviceClock']>>): DeviceView {
    const row = active().mapping.rowOf(key)
    const { messages, lastSeen, skewMs, sender } = seen
    const listed = row !== undefined
    const client = sender === null ? null : (clients?.find(sender.clientId) ?? null)
    const withheld = active().mapper.withheldOf(key)
    return {
      device: key,
      assetId: row?.asset_id ?? null,
      listed,
      messages,
      lastSeen,
      skewMs,
      client,
      withheld,
    }
  }

  function stop(): void {
    stopped = true
    cancel()
  }
}
