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
//                        remaining shape.
//   source-yaml.ts       the proposal as YAML
//
// Failures
//   the broker refuses the connection     BROKER_UNREACHABLE
//   the broker refuses the subscription   SUBSCRIPTION_REFUSED; so does the broker inside a gateway, where
//                                         the config says so; else it grants it and sends nothing
//   the connection is lost                the traffic until then is used
//   there is no traffic                   the proposal is empty; the caller reports it

import type { MappingConfig } from '../mapping/config.ts'
import { fitOf, isPromising, scoreOf } from './preset-fit.ts'
import { draftOf } from './source-draft.ts'
import { looksLikeName } from './topic-shapes.ts'
import type { Fit, ObservedTraffic, Proposal, Proposed, SourceOptions, TopicShape } from './types.ts'

export { listen, type EndReason } from './broker-listener.ts'
export { missingValuesOf } from './missing-values.ts'
export { sourcesYaml } from './source-yaml.ts'
export { createCollector } from './topic-shapes.ts'
export type { ObservedTraffic, Proposal, Proposed, TopicShape } from './types.ts'

/** The mapping of a source, which may name a preset; null for an invalid one. */
export type MappingOf = (source: SourceOptions) => Promise<MappingConfig | null>

export type ProposeDeps = { presets: readonly string[]; mappingOf: MappingOf; signal: AbortSignal }

/** Shapes on whose topics presets are tried. Further ones have few messages each. */
const triedMax = 20
const othersMax = 3

type Candidate = { source: SourceOptions; preset: string | null; fit: Fit; notes: readonly string[] }

export async function propose({ shapes }: ObservedTraffic, deps: ProposeDeps): Promise<Proposed> {
  const proposals: Proposal[] = []
  const taken = new Set<string>()
  let left = [...shapes]
  const presets = await presetsWithOwnTopics(deps)
  for (;;) {
    const [best, ...others] = ranked(
      presets.map(({ preset, source, mapping }) => fitted(source, preset, mapping, [], left)),
    )
    if (!best) break
    const own = left.filter((shape) => (best.fit.shapes.get(shape)?.taken ?? 0) > 0)
    if (own.length === 0) break
    proposals.push(proposalOf(best, others, own, taken))
    left = left.filter((shape) => !own.includes(shape))
  }
  const unread: TopicShape[] = []
  for (const [index, shape] of left.entries()) {
    const [best, ...others] = index < triedMax && !deps.signal.aborted ? await rankedFor(shape, deps) : []
    if (best) proposals.push(proposalOf(best, others, [shape], taken))
    else unread.push(shape)
  }
  return { proposals, unread }
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
  const candidates: Candidate[] = []
  for (const preset of deps.presets) {
    const source = { name: preset, preset, topic }
    const candidate =
      (await tried(source, preset, [], [shape], deps)) ??
      (topic.includes('{device}')
        ? await tried({ ...source, device: '{device}' }, preset, [], [shape], deps)
        : null)
    if (candidate) candidates.push(candidate)
  }
  const draft = draftOf(shape, topic, topic.includes('{device}'))
  if (draft) {
    const name = nameOf(shape)
    const candidate = await tried({ name, ...draft.source }, null, draft.notes, [shape], deps)
    if (candidate) candidates.push(candidate)
  }
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
  const found = mapping && fitted(source, preset, mapping, notes, shapes)
  if (!found || found.fit.fieldCounts.payloads === 0 || scoreOf(found.fit) <= 0) return null
  // A preset that finds no time on foreign topics fits only by chance.
  return preset !== null && found.fit.fieldCounts.ownTime === 0 ? null : found
}

function fitted(
  source: SourceOptions,
  preset: string | null,
  mapping: MappingConfig,
  notes: readonly string[],
  shapes: readonly TopicShape[],
): Candidate | null {
  const fit = fitOf(mapping, shapes)
  return fit && isPromising(fit) ? { source, preset, fit, notes } : null
}

function ranked(candidates: readonly (Candidate | null)[]): Candidate[] {
  return candidates.filter((candidate) => candidate !== null).sort((a, b) => scoreOf(b.fit) - scoreOf(a.fit))
}

function proposalOf(
  { source, preset, fit, notes }: Candidate,
  others: readonly Candidate[],
  shapes: readonly TopicShape[],
  taken: Set<string>,
): Proposal {
  const wanted = typeof source['name'] === 'string' ? source['name'] : 'source'
  let name = wanted
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}-${number}`
  taken.add(name)
  const names = others.map((other) => other.preset).filter((other) => other !== null)
  return { source: { ...source, name }, preset, others: names.slice(0, othersMax), shapes, fit, notes }
}

/** The filter with {device} for the last level that looks like a name. */
export function topicOf({ filter, last }: TopicShape): string {
  const levels = filter.split('/')
  const texts = last?.topic.split('/') ?? []
  const named = levels.findLastIndex((level, at) => level === '+' && looksLikeName(texts[at] ?? ''))
  const at = named === -1 ? levels.lastIndexOf('+') : named
  return at === -1 ? filter : levels.with(at, '{device}').join('/')
}

/** A name of the words of the topic filter. */
function nameOf({ filter }: TopicShape): string {
  const words = filter.split('/').filter((level) => /^[\w-]{2,20}$/.test(level))
  return words.slice(-2).join('-') || 'devices'
}
