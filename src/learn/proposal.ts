// proposal.ts: which sources would read what was heard.
//
// Every preset is tried on the samples with the mapper itself, and ranked by what it makes of them: payloads, by how
// much they say, less refusals. First by its own topics, where the one that reads the most shapes takes them, then the next; then, for
// shapes that are left, on their topics; and where no preset fits, a draft by the names of the keys.

import type { MappingConfig } from '../mapping/config.ts'
import { draftOf } from './source-draft.ts'
import { fitOf, isPromising, scoreOf, type Fit } from './preset-fit.ts'
import { looksLikeName, type ObservedTraffic, type TopicShape } from './topic-shapes.ts'

type Written = Readonly<Record<string, unknown>>

/** Puts a source, which may name a preset, together with its preset; null where that makes no source. */
export type MappingOf = (source: Written) => Promise<MappingConfig | null>

export type Proposal = {
  /** As it would stand in the config. */
  source: Written & { name: string }
  /** Null for a draft. */
  preset: string | null
  /** Presets that would read it too, the better ones first. */
  others: readonly string[]
  shapes: readonly TopicShape[]
  fit: Fit
  notes: readonly string[]
}

export type Proposed = { proposals: Proposal[]; unread: TopicShape[] }

export type ProposeDeps = { presets: readonly string[]; mappingOf: MappingOf; signal: AbortSignal }

/** Shapes on whose topics presets are tried; further ones are few messages each. */
const triedMax = 20
const othersMax = 3

type Candidate = { source: Written; preset: string | null; fit: Fit; notes: readonly string[] }

export async function propose({ shapes }: ObservedTraffic, deps: ProposeDeps): Promise<Proposed> {
  const proposals: Proposal[] = []
  const taken = new Set<string>()
  let left = [...shapes]
  const onTheirOwn = await presetsOnTheirTopics(deps)
  for (;;) {
    const [best, ...others] = ranked(
      onTheirOwn.map(({ preset, source, mapping }) => fitted(source, preset, mapping, [], left)),
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

async function presetsOnTheirTopics({ presets, mappingOf, signal }: ProposeDeps) {
  const found: { preset: string; source: Written; mapping: MappingConfig }[] = []
  for (const preset of presets) {
    if (signal.aborted) break
    const source = { name: preset, preset }
    const mapping = await mappingOf(source)
    if (mapping) found.push({ preset, source, mapping })
  }
  return found
}

/** Presets, and a draft, on the topics of a shape. */
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
  source: Written,
  preset: string | null,
  notes: readonly string[],
  shapes: readonly TopicShape[],
  { mappingOf }: ProposeDeps,
): Promise<Candidate | null> {
  const mapping = await mappingOf(source)
  const found = mapping && fitted(source, preset, mapping, notes, shapes)
  if (!found || found.fit.fieldCounts.payloads === 0 || scoreOf(found.fit) <= 0) return null
  // A preset that finds no time on somebody else's topics has met the same names by chance.
  return preset !== null && found.fit.fieldCounts.ownTime === 0 ? null : found
}

function fitted(
  source: Written,
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

/** The filter with the level that names the device as {device}: the last one that looks like a name. */
export function topicOf({ filter, last }: TopicShape): string {
  const levels = filter.split('/')
  const texts = last?.topic.split('/') ?? []
  const named = levels.findLastIndex((level, at) => level === '+' && looksLikeName(texts[at] ?? ''))
  const at = named === -1 ? levels.lastIndexOf('+') : named
  return at === -1 ? filter : levels.with(at, '{device}').join('/')
}

/** Of the words of its topics. */
function nameOf({ filter }: TopicShape): string {
  const words = filter.split('/').filter((level) => /^[\w-]{2,20}$/.test(level))
  return words.slice(-2).join('-') || 'devices'
}
