// mapper.ts: the sources at work: finds the one that a message belongs to, and carries its records to payloads.

import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import type { Message } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import { quote } from '../std/quote.ts'
import { createAttempt, resultOf } from './ending.ts'
import type { SparkplugCounters } from './decoders/sparkplug.ts'
import type { DeviceTable } from './devices.ts'
import type { DeviceEntry } from './registry.ts'
import { messageKeyOf } from './identity.ts'
import { ignored, quarantined, unlisted, unmappable, type MapResult } from './map-result.ts'
import type { Decoded } from './json.ts'
import { createClockJudge, type ClockPolicy } from './judges.ts'
import type { Mapper, MapperCounters } from './mapper-view.ts'
import { createRouting, type Route } from './routing.ts'
import { admitted, fateOf } from './admission.ts'
import { remembers, stateSourceOf } from './remembering.ts'
import { halfOf, readRecord, writePayload, type CompiledSource, type Reading } from './source.ts'
import type { OwnHalf } from './state/source-state.ts'
import { createStateful, type OwnRecord, type Taken } from './state/stateful.ts'

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

/** Payloads that one message may make. */
const recordsMax = 1000

export function createMapper(
  { devices, clockOffsetMs = () => null }: MapperDeps,
  { sources, providers = [defaultProvider], clocks = lenient }: MapperOptions,
): Mapper {
  const judge = createClockJudge({ clockOffsetMs }, clocks)
  const routing = createRouting({ devices, judge }, { sources, providers })
  const omitted = new Map<string, number>()
  const attempt = createAttempt(omitted)
  const reading: Reading = { time: Number.NaN, gps: '', signals: [], fields: '', moving: null }
  const stateful = createStateful(
    routing.works.filter(remembers).map((work) => stateSourceOf(work, attempt, reading)),
  )
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
    knows: (device) => devices.find(device) !== undefined,
    deviceClock: judge.clocks.view,
    deviceClocks: judge.clocks.views,
    clocksAllAlike: judge.clocks.allAlike,
    counters,
  }

  function map(message: Message, live = true): MapResult {
    const route = routing.routeOf(message.topic)
    if (route.work === null) {
      const kept = stateful.mapKept(message)
      if (kept !== null) return kept
      attempt.refuse('NO_SOURCE', `No source takes the topic ${quote(message.topic, 120)}.`)
      return ended(message, null, null)
    }
    const { source, sparkplug } = route.work
    if (route.excluded) return ignored(source, 'excluded topic')
    if (message.retain && source.retained === 'ignore') return ignored(source, 'retained')
    if (sparkplug !== null) {
      // Before anything is said of the device: an unlisted node's births explain what listed devices send.
      const decoded = sparkplug.decode(message.bytes, route.sparkplugTopic, message.arrivedAt, live)
      const { writes, rebirth } = decoded
      return { ...mapBytes(route, decoded, message), writes, rebirth }
    }
    const fate = fateOf(route.entry, message, source)
    if (fate !== null) return fate
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
    const { source } = route.work
    switch (decoded.kind) {
      case 'value':
        return mapRoot(route, decoded.value, message)
      case 'empty':
        return ignored(source, 'empty')
      case 'ignored':
        return ignored(source, decoded.reason)
      case 'refused':
      default:
        attempt.refuse(decoded.reason, decoded.detail)
        return ended(message, source, route.entry)
    }
  }

  function mapRoot(route: Route, value: unknown, message: Message): MapResult {
    const { source } = route.work
    attempt.captures = route.captures
    // What is collected is unpacked when it is complete.
    const unpack = source.coalesce === null ? source.extract : null
    const root = unpack === null ? value : unpack(value, value, route.captures)
    const { each } = source
    if (each === null) return mapOne(route, root, root, message)
    if (each.kind === 'one') {
      const chosen = each.read(root, root)
      return Array.isArray(chosen)
        ? mapList(route, chosen, [], root, message)
        : mapOne(route, chosen, root, message)
    }
    const records = each.expand(root, recordsMax)
    const ups = records.map(({ up }) => up)
    return mapList(
      route,
      records.map(({ record }) => record),
      ups,
      root,
      message,
    )
  }

  function mapOne(route: Route, record: unknown, root: unknown, message: Message): MapResult {
    const { source, judges } = route.work
    const entry = admitted(route, record, root, undefined, message, attempt)
    if (entry === null) return ended(message, source, route.entry)
    const fate = fateOf(entry, message, source)
    if (fate !== null) return fate
    if (source.coalesce !== null)
      return taken(
        source,
        stateful.takeValues(source.name, message, [own(route, entry, record, root, undefined)]),
        message,
        entry,
      )
    if (!readRecord(source, entry, record, root, undefined, message.arrivedAt, judges, attempt, reading))
      return ended(message, source, entry)
    if (source.thin !== null || source.merge !== null) {
      const half = halfOf(source, entry, reading, message.arrivedAt)
      return taken(source, stateful.takeHalves(source.name, message, [{ entry, half }]), message, entry)
    }
    const payload = writePayload(source, entry, reading, message, 0, null)
    if (payload === null) return ignored(source, 'privacy')
    return { kind: 'payloads', source: source.name, payloads: [payload] }
  }

  /**
   * All or none: what became payloads could not be told from what did not once the message is acknowledged.
   */
  function mapList(
    route: Route,
    records: readonly unknown[],
    ups: readonly unknown[],
    root: unknown,
    message: Message,
  ): MapResult {
    const { source, judges } = route.work
    if (records.length > recordsMax) {
      attempt.refuse('TOO_MANY', `The list has more than ${recordsMax} records.`)
      return ended(message, source, route.entry)
    }
    const payloads: MappedPayload[] = []
    const values: OwnRecord[] = []
    const halves: OwnHalf[] = []
    const namesBefore = new Set<string>()
    let skipped = 'no records'
    for (const [index, record] of records.entries()) {
      const up = ups[index]
      const entry = admitted(route, record, root, up, message, attempt)
      if (entry?.ignored) {
        skipped = 'unknown device'
        continue
      }
      if (entry?.quarantined) return quarantined(message, source, entry, unlisted(entry))
      if (entry !== null && source.coalesce !== null) {
        values.push(own(route, entry, record, root, up))
        continue
      }
      const read =
        entry !== null &&
        readRecord(source, entry, record, root, up, message.arrivedAt, judges, attempt, reading)
      if (!read) {
        const { ending } = attempt
        if (ending.kind !== 'ignored') return endedRecord(message, source, entry ?? route.entry, index)
        skipped = ending.reason
        continue
      }
      if (source.thin !== null || source.merge !== null) {
        halves.push({ entry, half: halfOf(source, entry, reading, message.arrivedAt) })
        continue
      }
      const payload = writePayload(source, entry, reading, message, index, namesBefore)
      if (payload === null) skipped = 'privacy'
      else payloads.push(payload)
    }
    const entry = values[0]?.entry ?? halves[0]?.entry ?? null
    if (values.length > 0)
      return taken(source, stateful.takeValues(source.name, message, values), message, entry)
    if (halves.length > 0)
      return taken(source, stateful.takeHalves(source.name, message, halves), message, entry)
    return payloads.length === 0
      ? ignored(source, skipped)
      : { kind: 'payloads', source: source.name, payloads }
  }

  function taken(
    source: CompiledSource,
    result: Taken,
    message: Message,
    entry: DeviceEntry | null,
  ): MapResult {
    switch (result.kind) {
      case 'refused':
        return unmappable(message, source, entry, result.reason, result.detail)
      case 'ignored':
      case 'part':
      case 'payloads':
      default:
        return { ...result, source: source.name }
    }
  }

  function mapDecoded(message: Message, name: string, value: unknown): MapResult {
    const route = routing.routeOf(message.topic)
    if (route.work === null || route.work.source.name !== name) return foreign(message, name)
    if (Array.isArray(value) && route.work.source.each === null) return mapEvaluated(route, value, message)
    return mapRoot(route, value, message)
  }

  /** An expression may give a list of records by itself. */
  function mapEvaluated(route: Route, records: readonly unknown[], message: Message): MapResult {
    attempt.captures = route.captures
    return mapList(route, records, [], records, message)
  }

  function decoded(message: Message, name: string): ReturnType<Mapper['decoded']> {
    const route = routing.routeOf(message.topic)
    if (route.work === null || route.work.source.name !== name)
      return { kind: 'ended', result: foreign(message, name) }
    const found = decodeOf(route.work.source, message)
    if (found.kind === 'value') return found
    return { kind: 'ended', result: mapBytes(route, found, message) }
  }

  function foreign(message: Message, name: string): MapResult {
    attempt.refuse('NO_SOURCE', `The source ${quote(name, 64)} does not take this topic any more.`)
    return ended(message, null, null)
  }

  function restore(entries: Iterable<readonly [key: string, value: Buffer]>): void {
    const all = [...entries]
    stateful.restore(all)
    for (const { sparkplug } of routing.works) sparkplug?.restore(all)
  }

  function ended(message: Message, source: CompiledSource | null, entry: DeviceEntry | null): MapResult {
    return resultOf(attempt.ending, message, source, entry)
  }

  function endedRecord(
    message: Message,
    source: CompiledSource,
    entry: DeviceEntry | null,
    index: number,
  ): MapResult {
    const { ending } = attempt
    if (ending.kind !== 'ignored')
      attempt.ending = { ...ending, detail: `Record ${index + 1} of the message: ${ending.detail}` }
    return ended(message, source, entry)
  }

  function counters(): MapperCounters {
    const withoutModel = new Map<string, { devices: number; what: string }>()
    const sparkplug = new Map<string, SparkplugCounters>()
    for (const work of routing.works) {
      const { name, withoutModel: what } = work.source
      const count = work.registry.counters().withoutFamily
      if (what !== null && count > 0) withoutModel.set(name, { devices: count, what })
      if (work.sparkplug) sparkplug.set(name, work.sparkplug.counters())
    }
    const clocks = { ...judge.clocks.counters(), restamped: judge.restamped() }
    return { ...routing.counters(), omitted, withoutModel, sparkplug, clocks, state: stateful.counters() }
  }
}

function own(
  { captures }: Route,
  entry: DeviceEntry,
  record: unknown,
  root: unknown,
  up: unknown,
): OwnRecord {
  return { entry, captures, record, root, up }
}
