// mapper.ts: the sources at work: finds the one that a message belongs to, decodes it, and hands it to its records
// (message-records.ts).

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import { createRecordContext, resultOf } from './record-context.ts'
import type { SparkplugCounters } from '../sparkplug/sparkplug.ts'
import type { DeviceTable } from '../devices/device-table.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { messageKeyOf } from '../identity.ts'
import { ignored, type MapResult } from './map-result.ts'
import type { Decoded } from '../encodings/lenient-json.ts'
import { createClockCheck, type ClockPolicy } from '../devices/clock-check.ts'
import type { Mapper, MapperCounters } from './mapper-view.ts'
import { createRouting, type Route } from './routing.ts'
import { resultForDevice } from './admission.ts'
import { createRecords } from './message-records.ts'
import { isStateful, stateSourceOf } from './state-source.ts'
import type { CompiledSource, Reading } from './record-mapper.ts'
import { createMappingState } from '../state/state.ts'

export type MapperDeps = {
  devices: DeviceTable
  /** What has to be added to the arrival to get the true time; null while our own time is unknown. */
  clockOffsetMs?: () => number | null
}

export type MapperOptions = {
  sources: readonly CompiledSource[]
  providers?: readonly ProviderName[]
  clocks?: ClockPolicy
}

const lenient: ClockPolicy = { futureMaxMs: 300_000, onFuture: 'accept' }

export function createMapper(
  { devices, clockOffsetMs = () => null }: MapperDeps,
  { sources, providers = [defaultProvider], clocks = lenient }: MapperOptions,
): Mapper {
  const clockCheck = createClockCheck({ clockOffsetMs }, clocks)
  const routing = createRouting({ devices, clockCheck }, { sources, providers })
  const omitted = new Map<string, number>()
  const context = createRecordContext(omitted)
  const reading: Reading = { time: Number.NaN, gps: '', signals: [], fields: '', moving: null }
  const stateful = createMappingState(
    routing.runtimes.filter(isStateful).map((runtime) => stateSourceOf(runtime, context, reading)),
  )
  const records = createRecords({ context, reading, stateful })
  const expressions = new Map<string, string>()
  for (const { name, jsonata } of sources) if (jsonata !== null) expressions.set(name, jsonata)
  return {
    map,
    mapDecoded,
    decoded,
    expressions,
    apply: stateful.apply,
    tick: stateful.tick,
    nextTickAt: stateful.nextTickAt,
    openParts: () => stateful.counters().messages,
    restore,
    entries: stateful.entries,
    isListed: (device) => devices.find(device) !== undefined,
    deviceClock: clockCheck.clocks.view,
    deviceClocks: clockCheck.clocks.views,
    commonClockSkew: clockCheck.clocks.commonSkew,
    counters,
  }

  function map(message: Message, live = true): MapResult {
    const route = routing.routeOf(message.topic)
    if (route.runtime === null) {
      const kept = stateful.mapKept(message)
      if (kept !== null) return kept
      context.refuse('NO_SOURCE', `No source takes the topic ${quote(message.topic, 120)}.`)
      return ended(message, null, null)
    }
    const { source, sparkplug } = route.runtime
    if (route.excluded) return ignored(source, 'excluded topic')
    if (message.retain && source.retained === 'ignore') return ignored(source, 'retained')
    if (sparkplug !== null) {
      // Before anything is said of the device: an unlisted node's births explain what listed devices send.
      const decoded = sparkplug.decode(message.bytes, route.sparkplugTopic, message.arrivedAt, live)
      const { writes, rebirth, incompletePositions = 0 } = decoded
      for (let left = incompletePositions; left > 0; left -= 1) context.omit(`${source.name}|position|half`)
      return { ...mapBytes(route, decoded, message), writes, rebirth }
    }
    const result = resultForDevice(route.entry, message, source)
    if (result !== null) return result
    if (
      source.coalesce?.nameOfTopic &&
      !source.coalesce.names.has(source.coalesce.nameOfTopic(route.captures))
    )
      return ignored(source, 'not wanted')
    if (source.jsonata !== null)
      return { kind: 'deferred', source: source.name, windowKey: messageKeyOf(message) }
    return mapBytes(route, decodeOf(source, message), message)
  }

  function decodeOf({ decode }: CompiledSource, { bytes }: Message): Decoded {
    return decode === null ? { kind: 'empty' } : decode(bytes)
  }

  function mapBytes(route: Route, decoded: Decoded, message: Message): MapResult {
    const { source } = route.runtime
    switch (decoded.kind) {
      case 'value':
        return records.mapValue(route, decoded.value, message)
      case 'empty':
        return ignored(source, 'empty')
      case 'ignored':
        return ignored(source, decoded.reason)
      case 'refused':
      default:
        context.refuse(decoded.reason, decoded.detail)
        return ended(message, source, route.entry)
    }
  }

  function mapDecoded(message: Message, name: string, value: unknown): MapResult {
    const route = routing.routeOf(message.topic)
    if (route.runtime === null || route.runtime.source.name !== name) return foreign(message, name)
    return records.mapEvaluated(route, value, message)
  }

  function decoded(message: Message, name: string): ReturnType<Mapper['decoded']> {
    const route = routing.routeOf(message.topic)
    if (route.runtime === null || route.runtime.source.name !== name)
      return { kind: 'ended', result: foreign(message, name) }
    const found = decodeOf(route.runtime.source, message)
    if (found.kind === 'value') return found
    return { kind: 'ended', result: mapBytes(route, found, message) }
  }

  function foreign(message: Message, name: string): MapResult {
    context.refuse('NO_SOURCE', `The source ${quote(name, 64)} does not take this topic any more.`)
    return ended(message, null, null)
  }

  function restore(entries: Iterable<readonly [key: string, value: Buffer]>): void {
    const all = [...entries]
    stateful.restore(all)
    for (const { sparkplug } of routing.runtimes) sparkplug?.restore(all)
  }

  function ended(message: Message, source: CompiledSource | null, entry: DeviceEntry | null): MapResult {
    return resultOf(context.rejection, message, source, entry)
  }

  function counters(): MapperCounters {
    const withoutModel = new Map<string, { devices: number; what: string }>()
    const sparkplug = new Map<string, SparkplugCounters>()
    for (const runtime of routing.runtimes) {
      const { name, withoutModel: what } = runtime.source
      const count = runtime.devices.counters().withoutFamily
      if (what !== null && count > 0) withoutModel.set(name, { devices: count, what })
      if (runtime.sparkplug) sparkplug.set(name, runtime.sparkplug.counters())
    }
    const clocks = { ...clockCheck.clocks.counters(), restamped: clockCheck.restampedCount() }
    return { ...routing.counters(), omitted, withoutModel, sparkplug, clocks, state: stateful.counters() }
  }
}
