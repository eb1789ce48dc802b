// device-monitor.ts: looks at what the mapping has learned of its devices, now and then: whether most clocks disagree with
// ours, which devices have no model, which clocks are worst. For events, /status and /devices; never on the way of a
// message, and in slices, so that a large fleet does not stop the loop.

import { setImmediate as turn } from 'node:timers/promises'
import type { CancelTimer, Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Mapper, Mapping } from '../mapping/mapping.ts'
import type { DeviceView } from '../ops/ops.ts'

export type DeviceMonitor = {
  start(): void
  /** Another mapping is in force: what is said of models begins anew. */
  mappingChanged(): void
  device(key: string): DeviceView | null
  devices(): AsyncIterable<readonly DeviceView[]>
  /** The worst clocks, as last looked. */
  worstClocks(): readonly DeviceView[]
  stop(): void
}

type Deps = { clock: Clock; emit: Emit; inForce: () => { mapper: Mapper; mapping: Mapping } }

const lookEveryMs = 10_000
const sliceDevices = 1000
const skewedMax = 5
/** What a message takes on its way, and a clock that is set now and then, are no news. */
const skewMinMs = 60_000

export function createDeviceMonitor({ clock, emit, inForce }: Deps): DeviceMonitor {
  let cancel: CancelTimer = () => {}
  let suspect = false
  let worst: readonly DeviceView[] = []
  /** Devices without a model that were told of, by source. */
  const told = new Map<string, number>()
  let walking = false
  let stopped = false
  return { start, mappingChanged: swapped, device, devices, worstClocks: () => worst, stop }

  function start(): void {
    cancel = clock.after(lookEveryMs, () => {
      look()
      start()
    })
  }

  function look(): void {
    lookAtOurs()
    lookAtModels()
    // Never rejects: it only reads what is in memory.
    if (!walking) void findWorst()
  }

  function lookAtOurs(): void {
    const alike = inForce().mapper.commonClockSkew(clock.now())
    if (alike !== null) emit({ kind: 'clock_suspect', ...alike })
    else if (suspect) emit({ kind: 'clock_trusted' })
    suspect = alike !== null
  }

  function lookAtModels(): void {
    for (const [source, { devices, what }] of inForce().mapper.counters().withoutModel) {
      if (told.get(source) === devices) continue
      told.set(source, devices)
      emit({ kind: 'model_unknown', source, devices, what })
    }
  }

  function swapped(): void {
    for (const source of told.keys()) emit({ kind: 'model_unknown', source, devices: 0, what: '' })
    told.clear()
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
    for (const [key, seen] of inForce().mapper.deviceClocks()) {
      slice.push(viewOf(key, seen))
      if (slice.length < sliceDevices) continue
      yield slice
      slice = []
      await turn()
    }
    yield slice
  }

  function device(key: string): DeviceView | null {
    const seen = inForce().mapper.deviceClock(key)
    return seen === null ? null : viewOf(key, seen)
  }

  function viewOf(key: string, seen: NonNullable<ReturnType<Mapper['deviceClock']>>): DeviceView {
    const row = inForce().mapping.rowOf(key)
    const { messages, lastSeen, skewMs } = seen
    const listed = row !== undefined
    return { device: key, assetId: row?.asset_id ?? null, listed, messages, lastSeen, skewMs }
  }

  function stop(): void {
    stopped = true
    cancel()
  }
}
