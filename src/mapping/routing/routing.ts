// routing.ts: finds what the topic of a message determines: its source, the captures, and often the device.
// The entry file of the folder.
//
// The first source in the order of the config takes the messages of a topic. One that takes only some of
// them (`takes`, by its `when`) has a `next` route, that of the source below it whose topic matches too.
// Which of them takes a message is decided for each message (source-choice.ts). A source that is alone on its
// topics has no next one, and its messages cost no more for it.

import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { bothOf, createCache, sumOf, type Cache } from '../bounded-cache.ts'
import { createSizedCache, type SizedCache } from '../sized-cache.ts'
import type { DeviceTable } from '../devices/device-table.ts'
import { createDeviceEntries, type DeviceEntries, type DeviceEntry } from '../devices/devices.ts'
import {
  capturesIn,
  compileTopics,
  overlaps,
  type MatchTopic,
  type TopicPattern,
} from '../path/topic-pattern.ts'
import { createMotion, type Motion } from '../filters/motion.ts'
import type { Decode, DecodeWithMemory, StatefulDecoder } from '../types.ts'
import type { SourcePlan } from '../compile/source-plan.ts'

/** A source with its memory, the durable memory of state/ excepted. */
export type SourceRuntime = {
  source: SourcePlan
  devices: DeviceEntries
  /** Whether the device moves, from its speed; null where the source does not derive that. */
  isMovingAt: Motion['movesAt'] | null
  /** Null where the encoding needs memory. */
  decode: Decode | null
  decoder: StatefulDecoder | null
}

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
  /** Of the source that is asked where this one does not take a message; null where it takes all. */
  next: Route | null
}

export type Routed = Route | { runtime: null }

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
  /** Those below a source that takes some of its messages, by its index; none where no topic is shared. */
  below: ReadonlyMap<number, Below>
  routes: SizedCache<Routed>
  refused: Cache<Routed>
}

type Placed = Topics['patterns'][number]

type Below = { patterns: readonly Placed[]; match: MatchTopic }

type Options = {
  sources: readonly SourcePlan[]
  providers: readonly ProviderName[]
  /** The message source of messages that name none; null: it is not known, and any source may take them. */
  unnamedFrom?: string | null
}

export function createRouting(
  { devices }: { devices: DeviceTable },
  { sources, providers, unnamedFrom = null }: Options,
) {
  const excluders = sources.map(({ exclude }) => compileTopics(exclude))
  const bytesMax = Math.floor(deviceBytesMax / Math.max(1, sources.length))
  const runtimes = sources.map((source): SourceRuntime => ({
    source,
    devices: createDeviceEntries(
      { devices },
      { ...source.deviceOptions, source: source.name, providers, bytesMax },
    ),
    isMovingAt: source.motion && createMotion(source.motion).movesAt,
    decode: source.encoding.decode ?? null,
    decoder: source.encoding.createDecoder?.({ source: source.name }) ?? null,
  }))
  /** Message sources that a source names. All others have the topics of the sources that name none. */
  const named = new Set(sources.flatMap(({ from }) => [...(from ?? [])]))
  const topicsOf = new Map([...named].map((name) => [name, topicsFor(({ from }) => from?.has(name) ?? true)]))
  const elsewhere = topicsFor(({ from }) => from === null)
  const unnamed = unnamedFrom === null ? topicsFor(() => true) : (topicsOf.get(unnamedFrom) ?? elsewhere)
  return { runtimes, routeOf, routeOfSource, counters }

  function topicsFor(isTaken: (source: SourcePlan) => boolean): Topics {
    const patterns = sources.flatMap((source, index) =>
      isTaken(source)
        ? source.patterns.map((pattern) => ({ pattern, index, order: orderOf(source, pattern) }))
        : [],
    )
    return {
      patterns,
      match: compileTopics(patterns.map(({ pattern }) => pattern)),
      below: belowOf(sources, patterns),
      routes: createSizedCache({
        bytesMax: Math.floor(topicBytesMax / (named.size + 1)),
        bytesOf: ({ length }, routed) => routeBytes * sourcesOf(routed) + length,
      }),
      refused: createCache(refusedTopicsMax),
    }
  }

  /** That of the first source with the topic. */
  function routeOf(topic: string, from?: string | null): Routed {
    const topics = from === undefined || from === null ? unnamed : (topicsOf.get(from) ?? elsewhere)
    return topics.routes.get(topic) ?? topics.refused.get(topic) ?? findRoute(topics, topic)
  }

  /** Null where the source does not have the topic of the message. */
  function routeOfSource(name: string, { topic, from }: Pick<Message, 'topic' | 'from'>): Route | null {
    const first = routeOf(topic, from)
    let route = first.runtime === null ? null : first
    while (route !== null && route.runtime.source.name !== name) route = route.next
    return route
  }

  function findRoute(topics: Topics, topic: string): Routed {
    const route = makeRoute(topics, topic)
    if (topic.length > cachedTopicLengthMax) return route
    if (isRefused(route)) topics.refused.set(topic, route)
    else topics.routes.add(topic, route)
    return route
  }

  function makeRoute(topics: Topics, topic: string): Routed {
    const placed = topics.patterns[topics.match(topic)]
    return placed === undefined ? noRoute : routeBy(topics, placed, topic)
  }

  function routeBy(topics: Topics, { pattern, index, order }: Placed, topic: string): Route {
    const runtime = runtimes[index]!
    const { source, devices } = runtime
    const own = capturesIn(pattern, topic)
    const captures = order === null ? own : order.map((from) => own[from] ?? '')
    const excluded = (excluders[index]?.(topic) ?? -1) !== -1
    const name = source.device.kind === 'topic' ? source.device.name(captures) : ''
    const isNamed = name !== '' && name.length <= cachedTopicLengthMax
    const provider = (source.provider?.(captures) ?? defaultProvider) as ProviderName
    const entry = isNamed && !excluded ? devices.entryOf(name, provider) : null
    const decode = runtime.decoder?.forTopic(topic) ?? null
    const below = topics.below.get(index)
    const following = below?.patterns[below.match(topic)]
    const next = following === undefined ? null : routeBy(topics, following, topic)
    const identity = source.identity === null ? null : (captures[source.identity] ?? '')
    // The broker asks before the bytes are read, so an owner owns the topic for all sources.
    const owner = identity ?? next?.owner ?? null
    return { runtime, captures, excluded, owner, provider, entry, decode, next }
  }

  function counters() {
    const all = new Set([...topicsOf.values(), elsewhere, unnamed])
    return {
      topics: sumOf([...all].map(({ routes, refused }) => bothOf(routes.counters(), refused.counters()))),
      devices: sumOf(runtimes.map(({ devices }) => devices.counters())),
    }
  }
}

/** The topics of the sources below those that take some of their messages, and share topics with others. */
function belowOf(sources: readonly SourcePlan[], patterns: readonly Placed[]): ReadonlyMap<number, Below> {
  const all = new Map<number, Below>()
  for (const [index, { takes }] of sources.entries()) {
    if (takes === null) continue
    const own = patterns.filter((placed) => placed.index === index)
    const shared = patterns.filter(
      ({ pattern, index: other }) => other > index && own.some((placed) => overlaps(placed.pattern, pattern)),
    )
    if (shared.length > 0)
      all.set(index, { patterns: shared, match: compileTopics(shared.map(({ pattern }) => pattern)) })
  }
  return all
}

/** No message of the topic would be mapped. */
function isRefused(routed: Routed): boolean {
  if (routed.runtime === null) return true
  const { entry, next } = routed
  return entry !== null && (entry.ignored || entry.quarantined) && (next === null || isRefused(next))
}

function sourcesOf(routed: Routed): number {
  let count = 1
  if (routed.runtime === null) return count
  for (let { next } = routed; next !== null; next = next.next) count += 1
  return count
}

/** The place of each capture of the source among those of one pattern; null where all places are the same. */
function orderOf({ captures }: SourcePlan, pattern: TopicPattern): readonly number[] | null {
  const order = captures.map((name) => pattern.captures.indexOf(name))
  return order.every((from, index) => from === index) ? null : order
}
