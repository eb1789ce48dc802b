// mapper-view.ts: a mapper as the rest of the house sees it.

import type { Message } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { CacheCounters } from '../bounded-cache.ts'
import type { SparkplugCounters } from '../sparkplug/sparkplug.ts'
import type { MapResult } from './map-result.ts'
import type { StateChanges } from '../state/state-changes.ts'
import type { CommonSkew, DeviceClock } from '../devices/device-clocks.ts'
import type { StateCounters } from '../state/state.ts'

export type MapperCounters = {
  topics: CacheCounters
  devices: CacheCounters
  /** Fields that were left out since start, keyed `source|field|why`. */
  omitted: ReadonlyMap<string, number>
  /** Devices of no family of models, by source, with what is left out for them. */
  withoutModel: ReadonlyMap<string, { devices: number; what: string }>
  state: StateCounters
  sparkplug: ReadonlyMap<string, SparkplugCounters>
  clocks: {
    devices: number
    evictions: number
    future: number
    unset: number
    old: number
    restamped: number
  }
}

export type Mapper = {
  /**
   * Total: throws for no message whatever. Without `live` (a message that was kept and is mapped once more) nothing
   * is remembered of it by decoders.
   */
  map(message: Message, live?: boolean): MapResult
  /** The same with what its expression gave, for a message that was deferred. */
  mapDecoded(message: Message, source: string, value: unknown): MapResult
  /** What an expression is evaluated over; or what becomes of a message that has nothing of the kind. */
  decoded(
    message: Message,
    source: string,
  ): { kind: 'value'; value: unknown } | { kind: 'ended'; result: MapResult }
  /** Sources with an expression, by name. */
  readonly expressions: ReadonlyMap<string, string>
  /** Does what the last `part` was about; once, and before the next message. */
  apply(): StateChanges
  /** Closes what is over; null where nothing is. */
  tick(nowMs: EpochMs): StateChanges | null
  /** Null where nothing waits. */
  nextTickAt(): EpochMs | null
  /** Messages that wait to become payloads with others. */
  openParts(): number
  /** Forgets all that is durable and starts from what was kept. */
  restore(entries: Iterable<readonly [key: string, value: Buffer]>): void
  /** What is collected now, as it is kept: for a mapper that takes over. Sparkplug's births are not in it. */
  entries(): Iterable<[key: string, value: Buffer]>
  /** Whether the device table has the device, so that what was kept of it may go. */
  isListed(device: string): boolean
  deviceClock(device: string): DeviceClock | null
  deviceClocks(): Iterable<[device: string, clock: DeviceClock]>
  /** Not null when it is rather our clock that is wrong. */
  commonClockSkew(nowMs: EpochMs): CommonSkew | null
  counters(): MapperCounters
}
