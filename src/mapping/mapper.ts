// mapper.ts: maps a message. It finds the source of the topic (routing/), decodes the bytes (encodings/) and
// hands the value on: its records are read (read/), and what must wait is kept (state/).
//
//   topic -> route -> bytes -> value -> records -> readings -> payloads, or parts of what is collected
//
// One mapper maps one message at a time, synchronously. The result is a value: what is to be stored, and what
// is to be written of the memory. A decoder with memory sees every message before anything is said about the
// device: the births of an unlisted Sparkplug node explain what listed devices send.

import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import type { Message } from '../domain/message.ts'
import type { EpochMs } from '../std/clock.ts'
import { longestWindowMs, type SourcePlan } from './compile/source-plan.ts'
import {
  createClockCheck,
  createClockMemory,
  type ClockPolicy,
  type ClockMemory,
} from './devices/device-clocks.ts'
import type { DeviceTable } from './devices/device-table.ts'
import type { DeviceEntry } from './devices/devices.ts'
import { undoPrevious } from './filters/remembered-values.ts'
import type { LostFields } from './lost-fields/lost-fields.ts'
import type { CounterReset } from './memory/counter-memory.ts'
import { createMemory } from './memory/memory.ts'
import { createSuspectDevices, nextMemory, type SuspectMemory } from './plausibility/suspect-devices.ts'
import { createWithheldCounts } from './plausibility/withheld-counts.ts'
import { createCollectedReader } from './read/read.ts'
import { ignored, rejected, rejectedAs, unlisted } from './read/map-result.ts'
import { mapRecords, type MessageRecordsDeps, type OfMessage } from './read/message-records.ts'
import { noteEnd, type MessageAt } from './read/reading.ts'
import { createRouting, type Route, type SourceRuntime } from './routing/routing.ts'
import { chooseSource, withOthers, type OnDeclined } from './routing/source-choice.ts'
import { createMappingState } from './state/state.ts'
import { noSourceText, takenTopics } from './taken-topics.ts'
import type {
  Decoded,
  DeviceNotes,
  MapResult,
  StateChanges,
  StatefulDecoded,
  StatefulDecoder,
  UnsentPart,
} from './types.ts'

export type Mapper = ReturnType<typeof createMapper>

/** What a mapper knows of the devices. */
export type MapperKnown = {
  clocks: ClockMemory
  suspects: SuspectMemory
  runtimes: readonly SourceRuntime[]
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
  /**
   * What the mapper before this one knew, and the sources that are as they were: what was found of their
   * devices holds.
   */
  before?: { known: MapperKnown; sameSources: ReadonlySet<string> } | null
}

export type MapperOptions = {
  sources: readonly SourcePlan[]
  providers?: readonly ProviderName[]
  clocks?: ClockPolicy
  /** As in createRouting. */
  unnamedFrom?: string | null
  /** For an explanation: what hears of sources that do not take a message, and of each reading. */
  onDeclined?: OnDeclined | null
  onReading?: MessageRecordsDeps['onReading']
}

const noCaptures: readonly string[] = []

const lenient: ClockPolicy = { futureMaxMs: 300_000, onFuture: 'accept' }

export function createMapper(
  {
    devices,
    clockOffsetMs = () => null,
    counterReset = () => undefined,
    notes = null,
    lostFields = null,
    before = null,
  }: MapperDeps,
  {
    sources,
    providers = [defaultProvider],
    clocks: policy = lenient,
    unnamedFrom = null,
    onDeclined = null,
    onReading = null,
  }: MapperOptions,
) {
  const clockMemory = before?.known.clocks ?? createClockMemory()
  const { clocks, checkTime, restampedCount } = createClockCheck(policy, clockMemory)
  const taken = takenTopics(sources)
  const routing = createRouting({ devices }, { sources, providers, unnamedFrom })
  const withheld = createWithheldCounts()
  const watched = createSuspectDevices(undefined, before === null ? undefined : suspectsFrom(before))
  const counts = { withheld, watched }
  const memory = createMemory(sources)
  const fieldWatch = notes === null ? null : (lostFields?.watch(sources) ?? null)
  const fieldView = fieldWatch ?? lostFields?.view ?? null
  const read = { memory, counterReset, checkTime, watched, fieldWatch }
  const collected = createCollectedReader({ counts, read, notes, onReading })
  const state = createMappingState(routing.runtimes, collected)
  const recordsDeps: MessageRecordsDeps = { counts, read, state, isUnlisted, fieldView, onReading }
  return {
    map,
    routeOf,
    ownerOf: sources.some(({ identity }) => identity !== null) ? ownerOf : null,
    tick,
    /** Null where nothing waits. */
    nextTickAt: () => (memory.hasCleanup() ? 0 : state.nextTickAt()),
    /** Messages that wait to become payloads with others. */
    openParts: () => state.counters().messages,
    /** How long a message waits for others at most, while ticks come. */
    openMsMax: longestWindowMs(sources),
    restore,
    entries,
    /** Whether the device table has the device, so that its quarantined messages may be released. */
    isListed: (device: string) => devices.find(device) !== undefined,
    deviceClock: clocks.view,
    deviceClocks: clocks.views,
    ownTimeCorrected: clocks.ownTimeCorrected,
    /** What was left out for the device, or sent although it is not plausible, since start. */
    withheldOf: withheld.ofDevice,
    /** Not null when our own clock is probably wrong: most devices are off by about as much. */
    commonClockSkew: clocks.commonSkew,
    suspects: watched.suspects,
    known: { clocks: clockMemory, suspects: watched.memory, runtimes: routing.runtimes },
    counters,
    forget: memory.forget,
  }

  /** Devices without a model count from the start, and those that must be looked at are watched on. */
  function suspectsFrom({ known, sameSources }: NonNullable<MapperDeps['before']>): SuspectMemory {
    const { windows, swappedIn } = known.suspects
    const entries = new Map<DeviceEntry, DeviceEntry>()
    for (const { source, devices } of known.runtimes) {
      const next = routing.runtimes.find((one) => one.source.name === source.name)
      if (next === undefined || !sameSources.has(source.name)) continue
      for (const { entry, provider } of devices.all()) {
        const isWithoutModel = source.withoutModel !== null && entry.family === 0
        if (isWithoutModel || windows.has(entry) || swappedIn.has(entry))
          entries.set(entry, next.devices.entryOf(entry.device, provider))
      }
    }
    return nextMemory(known.suspects, entries)
  }

  /** Total. Without `live` (a kept message is mapped again) decoders remember nothing of it. */
  function map(message: Message, live = true): MapResult {
    const { arrival } = message
    const at = {
      message,
      arrivedAt: message.arrivedAt,
      live,
      notes: live ? notes : null,
      offsetMs: arrival === undefined ? clockOffsetMs() : arrival.offsetMs,
      captures: noCaptures,
      root: undefined,
      others: null,
      flagged: null,
      owner: null,
      isLossNoted: false,
      noted: null,
    }
    at.notes?.begin(message)
    const result = mapRouted(at)
    if (result.kind === 'unmappable') result.unlisted ??= isUnlisted(result.source, result.device)
    noteEnd(at, result)
    return remembered(result, at)
  }

  /** What its records noted for later ones holds where it becomes payloads. */
  function remembered(result: MapResult, { noted }: MessageAt): MapResult {
    if (noted !== null) {
      if (result.kind === 'unmappable' || result.kind === 'quarantined') undoPrevious(noted)
      else result.undo = () => undoPrevious(noted)
    }
    if (result.kind === 'part') {
      const { apply } = result
      result.apply = () => withMemory(apply())
    }
    const writes = memory.takeWrites()
    if (writes !== null) result.writes = result.writes === undefined ? writes : [...result.writes, ...writes]
    return result
  }

  function withMemory(changes: StateChanges): StateChanges {
    const writes = memory.takeWrites()
    return writes === null ? changes : { ...changes, writes: [...changes.writes, ...writes] }
  }

  /** Without a table every device counts as listed. */
  function isUnlisted(source: string | null, device: string | null): boolean {
    if (source === null) return true
    return devices.size > 0 && (device === null || devices.find(device) === undefined)
  }

  function mapRouted(at: OfMessage): MapResult {
    const { message, live } = at
    const route = routing.routeOf(message.topic, message.from)
    if (route.runtime === null) return withoutSource(at)
    if (route.next === null) return mapBy(route, null, at)
    const choice = chooseSource(route, message, live, onDeclined)
    return withOthers(mapBy(choice.route, choice.decoded, at), choice)
  }

  function withoutSource(at: OfMessage): MapResult {
    const { message } = at
    if (message.will === true) return { kind: 'ignored', source: '', reason: 'will' }
    const kept = state.mapKept(message, at)
    if (kept !== null) return kept
    const detail = noSourceText(message, taken)
    return rejectedAs({ kind: 'refused', reason: 'NO_SOURCE', detail }, message, null, null)
  }

  /** `known`: the message as it was decoded already; null where it was not. */
  function mapBy(route: Route, known: StatefulDecoded | null, at: OfMessage): MapResult {
    const { message, live } = at
    const { source, decode } = route.runtime
    const { entry } = route
    if (message.will === true && source.wills !== 'take') return ignored(source, 'will')
    if (route.excluded) return ignored(source, 'excluded topic')
    if (message.retain && source.retained === 'ignore') return ignored(source, 'retained')
    if (entry !== null) {
      at.owner = entry
      at.notes?.heard(entry)
    }
    if (route.decode !== null) {
      const decoded = known ?? route.decode(message.bytes, message.arrivedAt, live)
      const { writes, rebirth } = decoded
      return { ...mapDecoded(route, decoded, at), writes, rebirth }
    }
    if (entry?.ignored) return ignored(source, 'unknown device')
    if (entry?.quarantined) return rejected(unlisted(entry, source), message, source, entry)
    const name = source.coalesce?.nameOfTopic?.(route.captures)
    if (name !== undefined && !source.coalesce!.names.has(name)) return ignored(source, 'not wanted')
    return mapDecoded(route, known ?? decode?.(message.bytes) ?? { kind: 'empty' }, at)
  }

  function mapDecoded(route: Route, decoded: Decoded, at: OfMessage): MapResult {
    const { source } = route.runtime
    switch (decoded.kind) {
      case 'value': {
        const device = route.entry?.device ?? ''
        if (decoded.omitted) for (const key of decoded.omitted) withheld.omit(device, `${source.name}|${key}`)
        if (decoded.flagged !== undefined) {
          at.flagged = decoded.flagged
          withheld.implausible(device, { key: `${source.name}|${decoded.flagged}`, isSent: true }, null)
        }
        const result = mapRecords(at, route, decoded, recordsDeps)
        // A record of several messages has no sender when it closes.
        if (result.kind === 'part')
          for (const { entry } of result.records) clocks.sentBy(entry.device, at.message.sender)
        return result
      }
      case 'empty':
        return ignored(source, 'empty')
      case 'ignored':
        return ignored(source, decoded.reason)
      case 'refused':
      default:
        return rejected(decoded, at.message, source, route.entry)
    }
  }

  /** The identity that may publish to a topic, null for anyone; null where no source restricts its topics. */
  function ownerOf(topic: string): string | null {
    const route = routing.routeOf(topic, null)
    return route.runtime === null ? null : route.owner
  }

  /** For an explanation: the route of the source with this name, or of the first one that has the topic. */
  function routeOf(message: Message, source: string | null): Route | null {
    const first = routing.routeOf(message.topic, message.from)
    const own = source === null ? null : routing.routeOfSource(source, message)
    return own ?? (first.runtime === null ? null : first)
  }

  /** Closes the records whose window is over, and deletes entries of sources that are gone; null for none. */
  function tick(nowMs: EpochMs): StateChanges | null {
    // A record of several messages is judged when it closes; without a time, by its arrival.
    const at = Number.isFinite(nowMs) ? nowMs : 0
    const closed = state.tick(nowMs, { at, offsetMs: clockOffsetMs() })
    const cleanup = memory.takeCleanup()
    if (closed === null && cleanup.length === 0) return null
    const changes = closed ?? { payloads: [], writes: [], closed: 0, unsent: [] }
    return withMemory({ ...changes, writes: [...changes.writes, ...cleanup] })
  }

  /** The open records as entries of the spool, for a mapper that takes over; without decoder memory. */
  function* entries(): Generator<[string, Buffer]> {
    yield* state.entries()
    yield* memory.entries()
  }

  /** Forgets the durable memory and starts from these entries of the spool. */
  function restore(stored: Iterable<readonly [key: string, value: Buffer]>): void {
    const all = [...stored]
    state.restore(all)
    memory.restore(all)
    for (const { decoder } of routing.runtimes) decoder?.restore(all)
  }

  function counters() {
    const withoutModel = new Map<string, { devices: number; what: string }>()
    const decoders = new Map<string, ReturnType<StatefulDecoder['counters']>>()
    for (const { source, devices: entries, decoder } of routing.runtimes) {
      const count = entries.counters().withoutFamily
      if (source.withoutModel !== null && count > 0)
        withoutModel.set(source.name, { devices: count, what: source.withoutModel })
      if (decoder) decoders.set(source.name, decoder.counters())
    }
    return {
      ...routing.counters(),
      /** Fields that were left out since start, keyed `source|field|why`. */
      omitted: withheld.omitted,
      /** Fields that were sent although they are not plausible, keyed likewise. */
      flagged: withheld.flagged,
      /** Devices of no family of models, by source, with what is left out for them. */
      withoutModel,
      /** Of decoders with memory, by source. */
      decoders,
      clocks: { ...clocks.counters(), restamped: restampedCount() },
      state: state.counters(),
      memory: memory.counters(),
      watched: watched.counters(),
    }
  }
}

/** What a message, or a record that closes, comes to. */
export type Outcome =
  Exclude<MapResult, { kind: 'part' }> | UnsentPart | (Pick<StateChanges, 'payloads'> & { kind: 'payloads' })

/** For those who store nothing: with what is collected at once. */
export function outcomesOf(result: MapResult): Outcome[] {
  const rest = (result.rest ?? []).flatMap(outcomesOf)
  return [...rest, ...(result.kind === 'part' ? outcomesOfChanges(result.apply()) : [result])]
}

export function outcomesOfChanges({ payloads, unsent }: StateChanges): Outcome[] {
  return [{ kind: 'payloads', payloads }, ...unsent]
}
