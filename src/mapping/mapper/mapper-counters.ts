// mapper-counters.ts: what a mapper counts.

import type { CacheCounters } from '../bounded-cache.ts'
import type { DeviceClocks } from '../devices/device-clocks.ts'
import type { MemoryCounters } from '../memory/memory.ts'
import type { SuspectDevices } from '../plausibility/suspect-devices.ts'
import type { StateCounters } from '../state/state.ts'
import type { StatefulDecoder } from '../types.ts'

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
