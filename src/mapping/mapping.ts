// mapping.ts: the door of the mapping. From a message to payloads.
//
// Promises
//   Total      map() answers for every message whatever, of any bytes and any topic; it never throws.
//   Pure       the same message under the same config and device table gives the same payloads with the same ids,
//              today and after a restart; only the caches remember, and they change no answer.
//   Honest     a value is converted exactly or not at all, a place or time is never guessed, clamped or patched. What
//              must be right (position, time, device) refuses the message when it is wrong; what may be missing
//              (speed, heading, motion, a signal) is left out and counted.
//   Loud       a message ends as payloads, as ignored with a reason that the config stated, or as unmappable with a
//              reason, a sentence and the key under which a resend of it is known. There is no fourth way.
//
// How
//   The config is compiled once into closures (config.ts, compile.ts). For a message, in this order:
//
//     topic -> source, captures      one tree of all patterns (topic.ts), remembered per topic (cache.ts)
//     bytes -> value                 json.ts; here decoders of other encodings have their place
//     each                           the record inside, or a list of records: one payload each, all or none
//     when                           ignored where it does not hold
//     device -> what is known of it  device.ts, registry.ts, remembered per device
//     time, position, signals        time.ts, gps.ts, signals.ts over path.ts, value.ts, units.ts, decimal.ts
//     name -> ids -> JSON text       identity.ts, source.ts: one hash, one text, nothing parsed or written twice
//
//   Per message there is no regular expression, no promise, no log line. A refused message may cost more: its
//   sentence is made for a person.
//
// What can go wrong, and what then happens
//   the config is wrong      compileSources reports every problem with its place; nothing is compiled halfway
//   the table is wrong       loadDevices rejects with every bad row
//   a flood of new topics    the cache keeps what is in use and forgets the rest; the answer is worked out again

import { readFile } from 'node:fs/promises'
import { GatewayError } from '../std/fault.ts'
import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Message } from '../domain/message.ts'
import { quote } from '../std/quote.ts'
import type { Attempt, UnmappableReason } from './attempt.ts'
import { createCache, type CacheCounters } from './cache.ts'
import { compileSources } from './compile.ts'
import type { MappingConfig } from './config.ts'
import { loadDevices, noDevices, type DeviceTable } from './devices.ts'
import { messageKeyOf } from './identity.ts'
import { createRegistry } from './registry.ts'
import { deviceOf, mapRecord, type CompiledSource, type Route } from './source.ts'
import { capturesIn, compileTopics } from './topic.ts'

export { unmappableReasons } from './attempt.ts'
export { loadDevices }

export type MapResult =
  | { kind: 'payloads'; source: string; payloads: readonly MappedPayload[] }
  /** Deliberately nothing: a condition did not hold. `reason` is one of a bounded set of texts. */
  | { kind: 'ignored'; source: string; reason: string }
  /**
   * It becomes a dead letter. `reason` is a stable upper-case word (`NO_SOURCE`, `NOT_JSON`, ...), `detail`
   * a sentence. `windowKey` names this very message (client, topic, bytes), so that a resend with DUP is a
   * copy.
   */
  | {
      kind: 'unmappable'
      source: string | null
      device: string | null
      reason: string
      detail: string
      windowKey: string
    }

export type MapperCounters = {
  topics: CacheCounters
  devices: CacheCounters
  /** Fields that were left out since start, keyed `source|field|why`. */
  omitted: ReadonlyMap<string, number>
}

export type Mapper = {
  /** Pure but for the caches; total: throws for no message whatever. */
  map(message: Message): MapResult
}

/** A mapper that says what it remembers and what it left out. */
export type CountingMapper = Mapper & { counters(): MapperCounters }

/**
 * A mapper from the loaded config. Rejects with DEVICES_INVALID, or CONFIG_INVALID where nobody checked it.
 */
export async function openMapper(
  config: MappingConfig,
  providers: readonly ProviderName[] = [defaultProvider],
): Promise<CountingMapper> {
  const { sources, problems } = compileSources(config)
  if (problems.length > 0) {
    const lines = problems.map(({ path, message }) => `${path.join('.')} ${message}`)
    throw new GatewayError('CONFIG_INVALID', {
      what: 'The sources of the config cannot be compiled.',
      why: lines.join('\n'),
      act: 'Run `check` for their lines and columns.',
    })
  }
  const { file } = config.devices
  const devices =
    file === undefined
      ? noDevices
      : await loadDevices({ readFile: (path) => readFile(path) }, { path: file, providers })
  return createMapper({ devices }, { sources })
}

/**
 * Topics and devices that are remembered; beyond, the longest unused half is worked out again when it comes.
 */
const topicsMax = 65_536
const devicesMax = 65_536

/** A longer topic is matched each time: 64 KiB of topic times the bound above would be 4 GiB. */
const cachedTopicLengthMax = 256

/** Payloads that one message may make. */
const recordsMax = 1000

const noRoute = { source: null }

export function createMapper(
  { devices }: { devices: DeviceTable },
  { sources }: { sources: readonly CompiledSource[] },
): CountingMapper {
  const matchTopic = compileTopics(sources.map(({ pattern }) => pattern))
  const entriesMax = Math.max(1024, Math.floor(devicesMax / Math.max(1, sources.length)))
  const registries = sources.map(({ registry }) => createRegistry({ devices }, { ...registry, entriesMax }))
  const routes = createCache<Route | typeof noRoute>(topicsMax)
  const omitted = new Map<string, number>()
  let reason: UnmappableReason = 'NO_SOURCE'
  let detail = ''
  const attempt: Attempt = {
    refuse(why, sentence) {
      reason = why
      detail = sentence
      return null
    },
    omit(key) {
      omitted.set(key, (omitted.get(key) ?? 0) + 1)
      return undefined
    },
  }
  return { map, counters }

  function map(message: Message): MapResult {
    const route = routes.get(message.topic) ?? findRoute(message.topic)
    const { source } = route
    if (source === null) {
      attempt.refuse('NO_SOURCE', `No source takes the topic ${quote(message.topic, 120)}.`)
      return unmappable(message, null, null)
    }
    if (message.retain && source.retained === 'ignore') return ignored(source, 'retained')
    if (route.entry?.ignored) return ignored(source, 'unknown device')
    const decoded = source.decode(message.bytes)
    if (decoded.kind === 'empty') return ignored(source, 'empty')
    if (decoded.kind === 'refused') {
      attempt.refuse(decoded.reason, decoded.detail)
      return unmappable(message, source, route.entry?.device ?? null)
    }
    const root = decoded.value
    const chosen = source.each ? source.each(root, root) : root
    if (Array.isArray(chosen) && source.each) return mapList(route, chosen, root, message)
    return mapOne(route, chosen, root, message)
  }

  function mapOne(route: Route, record: unknown, root: unknown, message: Message): MapResult {
    const { source } = route
    if (!isObject(record)) {
      attempt.refuse('NOT_AN_OBJECT', notAnObject(source, record))
      return unmappable(message, source, route.entry?.device ?? null)
    }
    if (source.when && !source.when.holds(record, root, route.captures))
      return ignored(source, source.when.reason)
    const entry = deviceOf(route, record, root, message, attempt)
    if (entry === null) return unmappable(message, source, null)
    if (entry.ignored) return ignored(source, 'unknown device')
    const part = { record, root, message, index: 0, namesBefore: null }
    const payload = mapRecord(source, entry, part, attempt)
    if (payload === null) return unmappable(message, source, entry.device)
    return { kind: 'payloads', source: source.name, payloads: [payload] }
  }

  /**
   * All or none: what became payloads could not be told from what did not once the message is acknowledged.
   */
  function mapList(route: Route, records: readonly unknown[], root: unknown, message: Message): MapResult {
    const { source } = route
    if (records.length > recordsMax) {
      attempt.refuse('TOO_MANY', `The list has ${records.length} records; ${recordsMax} is the most.`)
      return unmappable(message, source, route.entry?.device ?? null)
    }
    const payloads: MappedPayload[] = []
    const namesBefore = new Set<string>()
    let skipped = 'no records'
    for (const [index, record] of records.entries()) {
      if (!isObject(record)) {
        attempt.refuse('NOT_AN_OBJECT', notAnObject(source, record))
        return unmappableRecord(route, index, message, null)
      }
      if (source.when && !source.when.holds(record, root, route.captures)) {
        skipped = source.when.reason
        continue
      }
      const entry = deviceOf(route, record, root, message, attempt)
      if (entry === null) return unmappableRecord(route, index, message, null)
      if (entry.ignored) {
        skipped = 'unknown device'
        continue
      }
      const payload = mapRecord(source, entry, { record, root, message, index, namesBefore }, attempt)
      if (payload === null) return unmappableRecord(route, index, message, entry.device)
      payloads.push(payload)
    }
    return payloads.length === 0
      ? ignored(source, skipped)
      : { kind: 'payloads', source: source.name, payloads }
  }

  function findRoute(topic: string): Route | typeof noRoute {
    const route = makeRoute(topic)
    if (topic.length <= cachedTopicLengthMax) routes.set(topic, route)
    return route
  }

  function makeRoute(topic: string): Route | typeof noRoute {
    const index = matchTopic(topic)
    const source = sources[index]
    const registry = registries[index]
    if (!source || !registry) return noRoute
    const captures = capturesIn(source.pattern, topic)
    const name = source.device.kind === 'topic' ? source.device.name(captures) : ''
    const isNamed = name !== '' && name.length <= cachedTopicLengthMax
    return { source, registry, captures, entry: isNamed ? registry.entryOf(name) : null }
  }

  function unmappableRecord(route: Route, index: number, message: Message, device: string | null): MapResult {
    detail = `Record ${index + 1} of the message: ${detail}`
    return unmappable(message, route.source, device ?? route.entry?.device ?? null)
  }

  function unmappable(message: Message, source: CompiledSource | null, device: string | null): MapResult {
    const windowKey = messageKeyOf(message)
    return { kind: 'unmappable', source: source?.name ?? null, device, reason, detail, windowKey }
  }

  function counters(): MapperCounters {
    const all = registries.map((registry) => registry.counters())
    const sum = (of: (each: CacheCounters) => number) => all.reduce((total, each) => total + of(each), 0)
    const devices = {
      entries: sum(({ entries }) => entries),
      misses: sum(({ misses }) => misses),
      evictions: sum(({ evictions }) => evictions),
    }
    return { topics: routes.counters(), devices, omitted }
  }
}

function ignored(source: CompiledSource, reason: string): MapResult {
  return { kind: 'ignored', source: source.name, reason }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function notAnObject({ each }: CompiledSource, value: unknown): string {
  const found = Array.isArray(value) ? 'a list' : value === undefined ? 'nothing' : 'a single value'
  return each
    ? `What \`each\` selects is ${found}, not an object with fields.`
    : `The message is ${found}, not an object with fields.`
}
