// mapper-counters.ts: what a mapper counts.

import type { CacheCounters } from './bounded-cache.ts'
import type { DeviceClocks } from './devices/device-clocks.ts'
import type { MemoryCounters } from './memory/memory.ts'
import type { SuspectDevices } from './plausibility/suspect-devices.ts'
import type { StateCounters } from './state/state.ts'
import type { StatefulDecoder } from './types.ts'
import type { SourceRuntime } from './routing/routing.ts'

export type MapperCounters = {
  topics: CacheCounters
  devices: CacheCounters
  /** Fields that were left out since start, keyed `source|field|why`. */
  omitted: ReadonlyMap<string, number>
  /** Fields that were sent although they are not plausible, keyed likewise. */
  flagged: ReadonlyMap<string, number>
  /** Devices of no family of models, by source, with what is left out for them. */
  withoutModel: ReadonlyMap<string, { devices: number; what: string }>
  state: StateCounters
  memory: MemoryCounters
  /** Of decoders with memory, by source. */
  decoders: ReadonlyMap<string, ReturnType<StatefulDecoder['counters']>>
  clocks: ReturnType<DeviceClocks['counters']> & { restamped: number }
  watched: ReturnType<SuspectDevices['counters']>
}

export function countersBySource(
  runtimes: readonly SourceRuntime[],
): Pick<MapperCounters, 'withoutModel' | 'decoders'> {
  const withoutModel = new Map<string, { devices: number; what: string }>()
  const decoders = new Map<string, ReturnType<StatefulDecoder['counters']>>()
  for (const { source, devices, decoder } of runtimes) {
    const { name, withoutModel: what } = source
    const count = devices.counters().withoutFamily
    if (what !== null && count > 0) withoutModel.set(name, { devices: count, what })
    if (decoder) decoders.set(name, decoder.counters())
  }
  return { withoutModel, decoders }
}
