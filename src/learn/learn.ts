// learn.ts: proposes the sources for the traffic of a broker. The entry file of the folder.
//
// Guarantees
//   Read-only  no session, subscription or message is left at the broker, and nothing is written.
//   Bounded    memory is bounded for any number of topics and any size of messages (see topic-shapes.ts).
//   Tried      a proposal is valid for `check`, and the mapper itself has mapped the samples with it. The
//              meaning of a message comes from a preset; where no preset fits, there is a draft that is
//              marked as one.
//   Complete   the values that will be missing are listed (missing-values.ts).
//
// How it works
//   broker-listener.ts   subscribes at the broker for a time
//   topic-shapes.ts      groups topics by shape and keeps samples
//   preset-fit.ts        maps the samples and rates the result; source-draft.ts: a source from the names of
//                        keys
//   propose              every preset is tried on its own topics first: the one that reads most shapes takes
//                        them, then the next. Presets and a draft are then tried on the topics of each
//                        remaining shape. A preset that makes no payload is proposed only for devices without
//                        a fix, where it finds a position or a signal in the message.
//   source-yaml.ts       the proposal as YAML; examples.ts: as a device table and as cases
//   unread-reason.ts     what the other messages are
//   bridge-topics.ts     what a bridge subscribes to, for the proposed sources
//
// Failures
//   the broker refuses the connection     BROKER_UNREACHABLE
//   the broker refuses the subscription   SUBSCRIPTION_REFUSED; so does the broker inside a gateway, where
//                                         the config says so; else it grants it and sends nothing
//   the connection is lost                the traffic until then is used
//   there is no traffic                   the proposal is empty; the caller reports it

import type { MappingConfig } from '../mapping/config.ts'
import { topicsRead } from '../mapping/mapping.ts'
import { examplesOf } from './examples.ts'
import { fitOf, makesPayloads, scoreOf, readsWithoutFix } from './preset-fit.ts'
import { draftOf, sentencesDraftOf } from './source-draft.ts'
import {
  isOrdinaryWord,
  isShortNumber,
  looksLikeName,
  type ObservedTraffic,
  type TopicShape,
} from './topic-shapes.ts'
import type { Fit } from './fit.ts'
import type { Proposal, Proposed, SourceOptions } from './types.ts'

export { listen, type EndReason } from './broker-listener.ts'
export { missingValuesOf } from './missing-values.ts'
export { bytesText, casesYaml, devicesCsv } from './examples.ts'
export { bridgeTopics } from './bridge-topics.ts'
export { sourcesYaml } from './source-yaml.ts'
export { createCollector } from './topic-shapes.ts'
export { unreadReason } from './unread-reason.ts'
export type { ObservedTraffic, TopicShape } from './topic-shapes.ts'
export type { Proposal, Proposed } from './types.ts'

/** The mapping of a source, which may name a preset; null for an invalid one. */
export type MappingOf = (source: SourceOptions) => Promise<MappingConfig | null>

export type ProposeDeps = { presets: readonly string[]; mappingOf: MappingOf; signal: AbortSignal }

/** Shapes on whose topics presets are tried. Further ones have few messages each. */
const triedMax = 20
const othersMax = 3

type Candidate = {
  source: SourceOptions
  preset: string | null
  mapping: MappingConfig
  fit: Fit
  notes: readonly string[]
}

export async function propose({ shapes }: ObservedTraffic, deps: ProposeDeps): Promise<Proposed> {
  const proposals: Proposal[] = []
  const taken = new Set<string>()
  const presets = await presetsWithOwnTopics(deps)
  let left = await takeByPresets([...shapes], (fit) => Promise.resolve(makesPayloads(fit)))
  let unread: TopicShape[] = []
  for (const [index, shape] of left.entries()) {
    const [best, ...others] = index < triedMax && !deps.signal.aborted ? await rankedFor(shape, deps) : []
    if (best) proposals.push(proposalOf(best, others, [shape], taken))
    else unread.push(shape)
  }
  left = unread
  // Devices without a fix, at last: other presets may make payloads of their messages.
  unread = await takeByPresets(left, (fit, mapping) => readsWithoutFix(fit, mapping, left))
  return { proposals, unread }

  /** The preset that reads most takes its topics, then the next one. Resolves with the shapes left. */
  async function takeByPresets(
    found: TopicShape[],
    isGood: (fit: Fit, mapping: MappingConfig) => Promise<boolean>,
  ): Promise<TopicShape[]> {
    let rest = found
    for (;;) {
      const candidates: Candidate[] = []
      for (const { preset, source, mapping } of presets) {
        const fit = rest.length === 0 ? null : fitOf(mapping, rest)
        if (fit && (await isGood(fit, mapping))) candidates.push({ source, preset, mapping, fit, notes: [] })
      }
      const [best, ...others] = ranked(candidates)
      const own = rest.filter((shape) => best !== undefined && isTakenBy(best, shape))
      if (best === undefined || own.length === 0) return rest
      proposals.push(proposalOf(best, others, own, taken))
      rest = rest.filter((shape) => !own.includes(shape))
    }
  }
}

function isTakenBy({ fit }: Candidate, shape: TopicShape): boolean {
  return (fit.shapes.get(shape)?.taken ?? 0) > 0
}

async function presetsWithOwnTopics({ presets, mappingOf, signal }: ProposeDeps) {
  const found: { preset: string; source: SourceOptions; mapping: MappingConfig }[] = []
  for (const preset of presets) {
    if (signal.aborted) break
    const source = { name: preset, preset }
    const mapping = await mappingOf(source)
    if (mapping) found.push({ preset, source, mapping })
  }
  return found
}

/** Presets and a draft, tried on the topics of a shape; the best first. */
async function rankedFor(shape: TopicShape, deps: ProposeDeps): Promise<Candidate[]> {
  const topic = topicOf(shape)
  const found = await triedOn(topic, shape, [], deps)
  // A broker does not tell who sent a message, so a preset that names devices by their connection is the last
  // choice.
  if (topic.includes('{device}') || found.some(({ fit }) => !fit.namedBySender)) return found
  // One topic, and nothing in the message names the device.
  const guess = guessedTopic(shape)
  const why = 'Only one topic was heard, and nothing in its messages names the device: '
  if (guess !== null) {
    const guessed = await triedOn(guess, shape, [`${why}the level of {device} is a guess.`], deps)
    if (guessed.length > 0) return guessed
  }
  if (found.length > 0 || guess !== null) return found
  const draft = draftOf(shape, topic, true)
  if (!draft) return []
  const source = { name: nameOf(shape), ...draft.source, device: '{clientid}' }
  const notes = [...draft.notes, `${why}the client id names it.`]
  return ranked([await tried(source, null, notes, [shape], deps)])
}

async function triedOn(
  topic: string,
  shape: TopicShape,
  notes: readonly string[],
  deps: ProposeDeps,
): Promise<Candidate[]> {
  const candidates: (Candidate | null)[] = []
  for (const preset of deps.presets) {
    const source = { name: preset, preset, topic }
    const candidate = await tried(source, preset, notes, [shape], deps)
    // A preset for devices that are named by their connection reads a topic that names them.
    const byTopic = topic.includes('{device}') && candidate?.fit.namedBySender !== false
    candidates.push(
      byTopic ? await tried({ ...source, device: '{device}' }, preset, notes, [shape], deps) : candidate,
    )
  }
  const sentences = sentencesDraftOf(shape, topic, topic.includes('{device}'))
  if (sentences) candidates.push(await tried({ name: 'nmea', ...sentences }, 'nmea', notes, [shape], deps))
  const draft = draftOf(shape, topic, topic.includes('{device}'))
  const source = { name: nameOf(shape), ...draft?.source }
  if (draft) candidates.push(await tried(source, null, [...draft.notes, ...notes], [shape], deps))
  return ranked(candidates)
}

async function tried(
  source: SourceOptions,
  preset: string | null,
  notes: readonly string[],
  shapes: readonly TopicShape[],
  { mappingOf }: ProposeDeps,
): Promise<Candidate | null> {
  const mapping = await mappingOf(source)
  const fit = mapping && fitOf(mapping, shapes)
  if (!mapping || !fit || !makesPayloads(fit) || scoreOf(fit) <= 0) return null
  // A preset that finds no time on foreign topics, or times of another age, fits only by chance.
  const { ownTime } = fit.fieldCounts
  const isForeign = ownTime === 0 || (fit.unset + fit.future) * 2 >= ownTime
  return preset !== null && isForeign ? null : { source, preset, mapping, fit, notes }
}

function ranked(candidates: readonly (Candidate | null)[]): Candidate[] {
  return candidates.filter((candidate) => candidate !== null).sort((a, b) => scoreOf(b.fit) - scoreOf(a.fit))
}

function proposalOf(
  best: Candidate,
  candidates: readonly Candidate[],
  shapes: readonly TopicShape[],
  taken: Set<string>,
): Proposal {
  const { source, preset, mapping, fit, notes } = best
  const wanted = typeof source['name'] === 'string' ? source['name'] : 'source'
  let name = wanted
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}-${number}`
  taken.add(name)
  // Those that make payloads of the same messages.
  const others = candidates
    .filter((other) => makesPayloads(other.fit) && shapes.some((shape) => mapsSome(other, shape)))
    .map((other) => other.preset)
    .filter((other) => other !== null)
  const examples = examplesOf(mapping, shapes, fit)
  return {
    source: { ...source, name },
    preset,
    topics: mapping.sources.flatMap(topicsRead),
    others: others.slice(0, othersMax),
    shapes,
    fit,
    notes,
    examples,
  }
}

function mapsSome({ fit }: Candidate, shape: TopicShape): boolean {
  return (fit.shapes.get(shape)?.mapped ?? 0) > 0
}

/** The filter with {device} for the last level that looks like a name. */
export function topicOf({ filter, last }: TopicShape): string {
  const levels = filter.split('/')
  const texts = last?.topic.split('/') ?? []
  const named = levels.findLastIndex((level, at) => level === '+' && looksLikeName(texts[at] ?? ''))
  const at = named === -1 ? levels.lastIndexOf('+') : named
  return at === -1 ? filter : levels.with(at, '{device}').join('/')
}

/** The last level that is no ordinary word becomes {device}, else a short number; null without one. */
function guessedTopic({ filter }: TopicShape): string | null {
  const levels = filter.split('/')
  const word = levels.findLastIndex((level, index) => index > 0 && level !== '+' && !isOrdinaryWord(level))
  const at = word === -1 ? levels.findLastIndex((level, index) => index > 0 && isShortNumber(level)) : word
  return at === -1 ? null : levels.with(at, '{device}').join('/')
}

/** A name of the words of the topic filter. */
function nameOf({ filter }: TopicShape): string {
  const words = filter.split('/').filter((level) => /^[\w-]{2,20}$/.test(level))
  return words.slice(-2).join('-') || 'devices'
}
