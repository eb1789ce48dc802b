// mapper.ts: maps a message. It finds the source of the topic (routing/), decodes the bytes (encodings/)
// and hands the value to the records (message-records.ts), which read the record at hand (record-mapper.ts)
// and keep what must wait (state/).
//
//   topic -> route -> bytes -> value -> records -> payloads, or parts of what is collected
//
// One mapper maps one message at a time, synchronously: the record context and the reading are used again for
// each record. A decoder with memory sees every message before anything is said about the device: the births
// of an unlisted Sparkplug node explain what listed devices send.

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import { createClockCheck, type ClockPolicy } from '../devices/clock-check.ts'
import type { CommonSkew, DeviceClock } from '../devices/device-clocks.ts'
import type { DeviceTable } from '../devices/device-table.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { takeLimitReached } from '../expression/expression.ts'
import { createSuspectDevices, type SuspectDevices } from '../plausibility/suspect-devices.ts'
import { createWithheldCounts, type WithheldCounts } from '../plausibility/withheld-counts.ts'
import type { LostFields } from '../lost-fields/lost-fields.ts'
import type { CounterReset } from '../memory/counter-memory.ts'
import { createMemory, type Memory } from '../memory/memory.ts'
import type { StateChanges } from '../state/state-changes.ts'
import { createMappingState } from '../state/state.ts'
import type { Decoded, DeviceNotes, MapResult, StatefulDecoded } from '../types.ts'
import { resultForDevice } from './admission.ts'
import { longestWindowMs, type CompiledSource } from './compiled-source.ts'
import { ignored, rejected } from './map-result.ts'
import { createDeviceNoting } from './device-noting.ts'
import { countersBySource, type MapperCounters } from './mapper-counters.ts'
import { createMemoryWrites } from './memory-writes.ts'
import { createMessageRecords } from './message-records.ts'
import { createRecordContext } from './record-context.ts'
import { createRecordMapper } from './record-mapper.ts'
import { createRecordMemory, hasMemory, memorySourceOf } from './record-memory.ts'
import { createRouting, type Route } from '../routing/routing.ts'
import { chooseSource, withOthers, type OnDeclined } from '../routing/source-choice.ts'
import { noSourceText, takenTopics } from '../taken-topics.ts'
import { isStateful, stateSourceOf } from './state-source.ts'

export type Mapper = {
  /** Total. Without `live` (a kept message is mapped again) decoders remember nothing of it. */
  map(message: Message, live?: boolean): MapResult
  /** The identity that may publish to a topic, null for anyone; null where no source restricts its topics. */
  readonly ownerOf: ((topic: string) => string | null) | null
  /** Adds the last `part` to the state: once, and before the next message. */
  apply(): StateChanges
  /**
   * The last message is kept as a whole, whatever its result: it is mapped again later, and what its records
   * noted for later ones is undone. Before the next message.
   */
  keptWhole(): void
  /** Closes the records whose window is over; null where there are none. */
  tick(nowMs: EpochMs): StateChanges | null
  /** Null where nothing waits. */
  nextTickAt(): EpochMs | null
  /** Messages that wait to become payloads with others. */
  openParts(): number
  /** How long a message waits for others at most, while ticks come. */
  readonly openMsMax: number
  /** Forgets the durable memory and starts from these entries of the spool. */
  restore(entries: Iterable<readonly [key: string, value: Buffer]>): void
  /** The open records as entries of the spool, for a mapper that takes over; without decoder memory. */
  entries(): Iterable<[key: string, value: Buffer]>
  /** Whether the device table has the device, so that its quarantined messages may be released. */
  isListed(device: string): boolean
  deviceClock(device: string): DeviceClock | null
  /** What was left out for the device, or sent although it is not plausible, since start. */
  withheldOf: WithheldCounts['ofDevice']
  deviceClocks(): Iterable<[device: string, clock: DeviceClock]>
  ownTimeCorrected(): void
  /** Not null when our own clock is probably wrong: most devices are off by about as much. */
  commonClockSkew(nowMs: EpochMs): CommonSkew | null
  suspects: SuspectDevices['suspects']
  counters(): MapperCounters
  forget: Memory['forget']
}

export type MapperDeps = {
  devices: DeviceTable
  /** True time minus ours; null while unknown. For messages that do not say it themselves (`arrival`). */
  clockOffsetMs?: () => number | null
  /** A reading that jumps or falls counts from now on (memory/counter-memory.ts). */
  counterReset?: (reset: CounterReset) => void
  /** Receives what is seen of messages that arrive, and of no others. */
  notes?: DeviceNotes | null
  /** Messages that arrive are noted in it. */
  lostFields?: Pick<LostFields, 'watch' | 'view'> | null | undefined
}

export type MapperOptions = {
  sources: readonly CompiledSource[]
  providers?: readonly ProviderName[]
  clocks?: ClockPolicy
  /** As in createRouting. */
  unnamedFrom?: string | null
  /** For an explanation. */
  onDeclined?: OnDeclined | null
}

const lenient: ClockPolicy = { futureMaxMs: 300_000, onFuture: 'accept' }

export function createMapper(
  {
    devices,
    clockOffsetMs = () => null,
    counterReset = () => undefined,
    notes = null,
    lostFields = null,
  }: MapperDeps,
  {
    sources,
    providers = [defaultProvider],
    clocks = lenient,
    unnamedFrom = null,
    onDeclined = null,
  }: MapperOptions,
): Mapper {
  const clockCheck = createClockCheck(clocks)
  const taken = takenTopics(sources)
  const routing = createRouting({ devices }, { sources, providers, unnamedFrom })
  const withheld = createWithheldCounts()
  const watched = createSuspectDevices()
  const context = createRecordContext(withheld, watched)
  const noting = createDeviceNoting(context, notes)
  const memory = createMemory(sources.filter(hasMemory).map(memorySourceOf))
  const recordMemory = createRecordMemory({ memory, context, watched, counterReset })
  const writes = createMemoryWrites(memory, recordMemory)
  const fieldWatch = notes === null ? null : (lostFields?.watch(sources) ?? null)
  const fieldView = fieldWatch ?? lostFields?.view ?? null
  const recordMapper = createRecordMapper({ context, ...clockCheck, memory: recordMemory, fieldWatch })
  const state = createMappingState(
    routing.runtimes
      .filter(isStateful)
      .map((runtime) => stateSourceOf(runtime, context, { recordMapper, memory: recordMemory })),
  )
  const records = createMessageRecords({
    context,
    recordMapper,
    state,
    clockOffsetMs,
    isUnlisted,
    fieldView,
  })
  return {
    map: mapRemembering,
    ownerOf: sources.some(({ identity }) => identity !== null) ? ownerOf : null,
    apply: () => writes.ofChanges(state.apply()),
    keptWhole: recordMemory.undoLast,
    tick,
    nextTickAt: () => (memory.hasCleanup() ? 0 : state.nextTickAt()),
    openParts: () => state.counters().messages,
    openMsMax: longestWindowMs(sources),
    restore,
    entries,
    isListed: (device) => devices.find(device) !== undefined,
    deviceClock: clockCheck.clocks.view,
    deviceClocks: clockCheck.clocks.views,
    ownTimeCorrected: clockCheck.clocks.ownTimeCorrected,
    withheldOf: withheld.ofDevice,
    commonClockSkew: clockCheck.clocks.commonSkew,
    suspects: watched.suspects,
    counters,
    forget: memory.forget,
  }

  function mapRemembering(message: Message, live = true): MapResult {
    takeLimitReached()
    context.live = live
    context.isTimed = false
    noting.begin(message, live)
    const result = noting.ended(marked(map(message, live)))
    context.live = true
    return writes.ofResult(result)
  }

  function marked(result: MapResult): MapResult {
    if (result.kind === 'unmappable') result.unlisted ??= isUnlisted(result.source, result.device)
    return result
  }

  /** Without a table every device counts as listed. */
  function isUnlisted(source: string | null, device: string | null): boolean {
    if (source === null) return true
    return devices.size > 0 && (device === null || devices.find(device) === undefined)
  }

  function map(message: Message, live: boolean): MapResult {
    const route = routing.routeOf(message.topic, message.from)
    if (route.runtime === null) return withoutSource(message)
    if (route.next === null) return mapBy(route, null, message, live)
    const choice = chooseSource(route, message, live, onDeclined)
    return withOthers(mapBy(choice.route, choice.decoded, message, live), choice)
  }

  function withoutSource(message: Message): MapResult {
    if (message.will === true) return { kind: 'ignored', source: '', reason: 'will' }
    const kept = state.mapKept(message)
    if (kept !== null) return kept
    context.refuse('NO_SOURCE', noSourceText(message, taken))
    return ended(message, null, null)
  }

  /** `known`: the message as it was decoded already; null where it was not. */
  function mapBy(route: Route, known: StatefulDecoded | null, message: Message, live: boolean): MapResult {
    const { source } = route.runtime
    if (message.will === true && source.wills !== 'take') return ignored(source, 'will')
    if (route.excluded) return ignored(source, 'excluded topic')
    if (message.retain && source.retained === 'ignore') return ignored(source, 'retained')
    if (route.entry !== null) noting.heard(route.entry)
    if (route.decode !== null) {
      const decoded = known ?? route.decode(message.bytes, message.arrivedAt, live)
      const { writes: changes, rebirth } = decoded
      return { ...mapBytes(route, decoded, message), writes: changes, rebirth }
    }
    const result = resultForDevice(route.entry, message, source)
    if (result !== null) return result
    if (
      source.coalesce?.nameOfTopic &&
      !source.coalesce.names.has(source.coalesce.nameOfTopic(route.captures))
    )
      return ignored(source, 'not wanted')
    if (known !== null) return mapBytes(route, known, message)
    return mapBytes(route, decodeOf(route, message), message)
  }

  function ownerOf(topic: string): string | null {
    const route = routing.routeOf(topic, null)
    return route.runtime === null ? null : route.owner
  }

  function tick(nowMs: EpochMs): StateChanges | null {
    if (nowMs < Number.POSITIVE_INFINITY) context.latest.at = nowMs
    return writes.ofTick(state.tick(nowMs))
  }

  function* entries(): Generator<[string, Buffer]> {
    yield* state.entries()
    yield* memory.entries()
  }

  function decodeOf({ runtime: { decode } }: Route, { bytes }: Message): Decoded {
    return decode === null ? { kind: 'empty' } : decode(bytes)
  }

  function mapBytes(route: Route, decoded: Decoded, message: Message): MapResult {
    const { source } = route.runtime
    switch (decoded.kind) {
      case 'value':
        context.device = route.entry?.device ?? ''
        context.entry = null
        context.badByteAt = decoded.badByteAt ?? 0
        context.broken = decoded.broken ?? null
        if (decoded.omitted) for (const key of decoded.omitted) context.omit(`${source.name}|${key}`)
        return noted(records.mapValue(route, decoded.value, message), message)
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

  /** A record of several messages has no sender when it closes. */
  function noted(result: MapResult, { sender }: Message): MapResult {
    if (result.kind === 'part')
      for (const { entry } of result.records) clockCheck.clocks.sentBy(entry.device, sender)
    return result
  }

  function restore(entries: Iterable<readonly [key: string, value: Buffer]>): void {
    const all = [...entries]
    state.restore(all)
    memory.restore(all)
    for (const { decoder } of routing.runtimes) decoder?.restore(all)
  }

  function ended(message: Message, source: CompiledSource | null, entry: DeviceEntry | null): MapResult {
    return rejected(context.rejection, message, source, entry)
  }

  function counters(): MapperCounters {
    const clocks = { ...clockCheck.clocks.counters(), restamped: clockCheck.restampedCount() }
    return {
      ...routing.counters(),
      omitted: withheld.omitted,
      flagged: withheld.flagged,
      ...countersBySource(routing.runtimes),
      clocks,
      state: state.counters(),
      memory: memory.counters(),
      watched: watched.counters(),
    }
  }
}
