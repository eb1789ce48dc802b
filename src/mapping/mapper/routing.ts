// routing.ts: finds what the topic of a message determines: its source, the captures, and often the device.

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { bothOf, createCache, sumOf, type Cache, type CacheCounters } from '../bounded-cache.ts'
import { createSizedCache, type SizedCache } from '../sized-cache.ts'
import type { DeviceTable } from '../devices/device-table.ts'
import { createDeviceEntries, type DeviceEntries, type DeviceEntry } from '../devices/devices.ts'
import { capturesIn, compileTopics, type MatchTopic, type TopicPattern } from '../path/topic-pattern.ts'
import { createMotion, type Motion } from '../state/motion.ts'
import type { Decode, DecodeWithMemory, MapResult, StatefulDecoder } from '../types.ts'
import type { CompiledSource } from './compiled-source.ts'

/** A source with its memory, the durable memory of state/ excepted. */
export type SourceRuntime = {
  source: CompiledSource
  devices: DeviceEntries
  /** Whether the device moves, from its speed; null where the source does not derive that. */
  isMovingAt: Motion['movesAt'] | null
  /** Null where the encoding needs memory. */
  decode: Decode | null
  /** Set by the mapper; null where every message is parsed. */
  mapFast: MapFast | null
  decoder: StatefulDecoder | null
}

/** The result of a usual message; null, and nothing has changed, where the message is to be parsed. */
export type MapFast = (route: Route, message: Message) => MapResult | null

/** What is known of a topic. */
export type Route = {
  runtime: SourceRuntime
  captures: readonly string[]
  /** Its messages are ignored, whatever is in them. */
  excluded: boolean
  /** The identity whose topic it is; null where it may be that of anyone. */
  owner: string | null
  provider: ProviderName
  /** The device, where the topic alone names it. */
  entry: DeviceEntry | null
  /** Null where the encoding needs no memory. */
  decode: DecodeWithMemory | null
}

export type Routed = Route | { runtime: null }

export type Routing = {
  runtimes: readonly SourceRuntime[]
  /** `from`: the message source; undefined or null: see `unnamedFrom`. */
  routeOf(topic: string, from?: string | null): Routed
  counters(): { topics: CacheCounters; devices: CacheCounters }
}

/**
 * Of the topics and of the devices that are cached, in sum (sized-cache.ts). There is room for about 140,000
 * topics with names of usual length; the memory is taken when they are seen.
 */
const topicBytesMax = 48 * 1024 * 1024
const deviceBytesMax = 88 * 1024 * 1024
/** Topics without a source, and those of devices that are refused: a client can invent any number of them. */
const refusedTopicsMax = 4096

/** A route, its captures and its place in the cache, besides the topic itself. */
const routeBytes = 320

/** A longer topic is matched each time: a few of 64 KiB would take the room of a fleet. */
const cachedTopicLengthMax = 256

const noRoute = { runtime: null }

/** The topics of the sources that take messages of one message source. */
type Topics = {
  patterns: readonly { pattern: TopicPattern; index: number; order: readonly number[] | null }[]
  match: MatchTopic
  routes: SizedCache<Routed>
  refused: Cache<Routed>
}

type Options = {
  sources: readonly CompiledSource[]
  providers: readonly ProviderName[]
  /** The message source of messages that name none; null: it is not known, and any source may take them. */
  unnamedFrom?: string | null
}

export function createRouting(
  { devices }: { devices: DeviceTable },
  { sources, providers, unnamedFrom = null }: Options,
): Routing {
  const excluders = sources.map(({ exclude }) => compileTopics(exclude))
  const bytesMax = Math.floor(deviceBytesMax / Math.max(1, sources.length))
  const runtimes = sources.map((source): SourceRuntime => ({
    source,
    devices: createDeviceEntries({ devices }, { ...source.deviceOptions, providers, bytesMax }),
    isMovingAt: source.motion && createMotion(source.motion).movesAt,
    decode: source.encoding.decode ?? null,
    mapFast: null,
    decoder: source.encoding.createDecoder?.({ source: source.name }) ?? null,
  }))
  /** Message sources that a source names. All others have the topics of the sources that name none. */
  const named = new Set(sources.flatMap(({ from }) => [...(from ?? [])]))
  const topicsOf = new Map([...named].map((name) => [name, topicsFor(({ from }) => from?.has(name) ?? true)]))
  const elsewhere = topicsFor(({ from }) => from === null)
  const unnamed = unnamedFrom === null ? topicsFor(() => true) : (topicsOf.get(unnamedFrom) ?? elsewhere)
  return { runtimes, routeOf, counters }

  function topicsFor(isTaken: (source: CompiledSource) => boolean): Topics {
    const patterns = sources.flatMap((source, index) =>
      isTaken(source)
        ? source.patterns.map((pattern) => ({ pattern, index, order: orderOf(source, pattern) }))
        : [],
    )
    return {
      patterns,
      match: compileTopics(patterns.map(({ pattern }) => pattern)),
      routes: createSizedCache({
        bytesMax: Math.floor(topicBytesMax / (named.size + 1)),
        bytesOf: ({ length }) => routeBytes + length,
      }),
      refused: createCache(refusedTopicsMax),
    }
  }

  function routeOf(topic: string, from?: string | null): Routed {
    const topics = from === undefined || from === null ? unnamed : (topicsOf.get(from) ?? elsewhere)
    return topics.routes.get(topic) ?? topics.refused.get(topic) ?? findRoute(topics, topic)
  }

  function findRoute(topics: Topics, topic: string): Routed {
    const route = makeRoute(topics, topic)
    if (topic.length > cachedTopicLengthMax) return route
    const isRefused = route.runtime === null || route.entry?.ignored || route.entry?.quarantined
    if (isRefused) topics.refused.set(topic, route)
    else topics.routes.add(topic, route)
    return route
  }

  function makeRoute({ patterns, match: matchTopic }: Topics, topic: string): Routed {
    const match = patterns[matchTopic(topic)]
    const runtime = match && runtimes[match.index]
    if (!match || !runtime) return noRoute
    const { source, devices } = runtime
    const own = capturesIn(match.pattern, topic)
    const captures = match.order === null ? own : match.order.map((index) => own[index] ?? '')
    const excluded = (excluders[match.index]?.(topic) ?? -1) !== -1
    const name = source.device.kind === 'topic' ? source.device.name(captures) : ''
    const isNamed = name !== '' && name.length <= cachedTopicLengthMax
    const provider = (source.provider?.(captures) ?? defaultProvider) as ProviderName
    const entry = isNamed && !excluded ? devices.entryOf(name, provider) : null
    const decode = runtime.decoder?.forTopic(topic) ?? null
    const owner = source.identity === null ? null : (captures[source.identity] ?? '')
    return { runtime, captures, excluded, owner, provider, entry, decode }
  }

  function counters(): ReturnType<Routing['counters']> {
    const all = new Set([...topicsOf.values(), elsewhere, unnamed])
    return {
      topics: sumOf([...all].map(({ routes, refused }) => bothOf(routes.counters(), refused.counters()))),
      devices: sumOf(runtimes.map(({ devices }) => devices.counters())),
    }
  }
}

/** The place of each capture of the source among those of one pattern; null where all places are the same. */
function orderOf({ captures }: CompiledSource, pattern: TopicPattern): readonly number[] | null {
  const order = captures.map((name) => pattern.captures.indexOf(name))
  return order.every((from, index) => from === index) ? null : order
}
