// learn-text.ts: what was learned, for people and as JSON.

import { bounded, visible } from '../../std/quote.ts'
import type { Message } from '../../domain/message.ts'
import {
  missingValuesOf,
  type ObservedTraffic,
  type Proposal,
  type Proposed,
  type TopicShape,
} from '../../learn/learn.ts'
import { mapResultText } from '../terminal/result-text.ts'
import { columns } from '../terminal/text-table.ts'

export type Learned = Proposed & {
  traffic: ObservedTraffic
  /** What was heard and how it ended, in a sentence. */
  ended: string
  /** The section `sources`. */
  block: string
}

/** Shapes of one source that are shown one by one; vehicles that send single values have hundreds. */
const shapesShown = 12
const messageLengthMax = 600

export function learnedText(learned: Learned): string {
  const { traffic, ended, proposals, unread, block } = learned
  const lines = [ended]
  if (traffic.messages === 0) {
    lines.push('Nothing was heard: do devices publish there now, and may this user read their topics?')
    return `${lines.join('\n')}\n`
  }
  if (traffic.unshaped > 0)
    lines.push(`${traffic.unshaped} messages on topics of too many kinds were not looked at; narrow --topic.`)
  for (const proposal of proposals) lines.push('', ...proposalLines(proposal))
  if (unread.length > 0) {
    lines.push('', 'Nothing reads these:')
    lines.push(...shapeTable(unread), ...unread.slice(0, shapesShown).flatMap(lastLines))
  }
  if (block !== '')
    lines.push('', 'Put this into the config, and try it with `check` and `map --explain`:', '', block)
  return `${lines.join('\n').trimEnd()}\n`
}

function proposalLines(proposal: Proposal): string[] {
  const { source, preset, others, shapes, fit } = proposal
  const { taken, mapped, fieldCounts, devices } = fit
  const what = preset === null ? 'a draft' : `preset ${preset}`
  const instead = others.length === 0 ? '' : ` (would read it too: ${others.join(', ')})`
  return [
    `${visible(source.name)}: ${what}${instead}`,
    `  ${mapped} of ${taken} messages tried make ${fieldCounts.payloads} payloads of ${devices} devices`,
    ...missingValuesOf(proposal).map((sentence) => `  - ${visible(sentence)}`),
    ...shapeTable(shapes),
    ...shapes.slice(0, shapesShown).flatMap(lastLines),
    ...(fit.lastPayloads.length > 0 ? ['  maps to'] : []),
    ...fit.lastPayloads.map(({ json }) => `    ${visible(bounded(json, messageLengthMax))}`),
  ]
}

function shapeTable(shapes: readonly TopicShape[]): string[] {
  const rows = shapes
    .slice(0, shapesShown)
    .map(({ filter, topics, messages }) => [filter, String(topics), String(messages)])
  const more = shapes.length - rows.length
  const table = columns([['topics like', 'topics', 'messages'], ...rows]).map((line) => `  ${line}`)
  return more > 0 ? [...table, `  and ${more} more`] : table
}

function lastLines({ last }: TopicShape): string[] {
  if (last === null) return []
  return [
    `  last on ${visible(bounded(last.topic))}`,
    `    ${visible(bounded(contentOf(last), messageLengthMax))}`,
  ]
}

function contentOf({ bytes }: Message): string {
  const { message, hex } = bytesIn(bytes)
  return message ?? `hex ${hex ?? ''}`
}

/** As text where it is one that can be read. */
function bytesIn(bytes: Buffer): { message?: string; hex?: string } {
  const text = bytes.toString()
  return Buffer.from(text).equals(bytes) && !text.includes('\0')
    ? { message: text }
    : { hex: bytes.toString('hex') }
}

export function learnedJson({ traffic, ended, proposals, unread, block }: Learned): unknown {
  const { messages, topics, moreTopics, unshaped } = traffic
  return {
    ended,
    messages,
    topics,
    moreTopics,
    unshaped,
    sources: proposals.map((proposal) => ({
      source: proposal.source,
      preset: proposal.preset,
      others: proposal.others,
      notes: proposal.notes,
      missing: missingValuesOf(proposal),
      tried: proposal.fit.taken,
      mapped: proposal.fit.mapped,
      payloads: proposal.fit.fieldCounts.payloads,
      devices: proposal.fit.devices,
      shapes: proposal.shapes.map((shape) => ({ ...shapeJson(shape), became: becameOf(proposal, shape) })),
      lastPayloads: proposal.fit.lastPayloads.map(({ json }) => JSON.parse(json) as unknown),
    })),
    unread: unread.map(shapeJson),
    block,
  }
}

function shapeJson({ filter, topics, messages, retained, qos0, last }: TopicShape): Record<string, unknown> {
  const own = last === null ? null : { topic: last.topic, ...bytesIn(last.bytes) }
  return { filter, topics, messages, retained, qos0, last: own }
}

function becameOf({ fit }: Proposal, shape: TopicShape): unknown {
  const last = fit.shapes.get(shape)?.last ?? null
  if (last === null) return null
  const payloads =
    last.kind === 'payloads' ? last.payloads.map(({ json }) => JSON.parse(json) as unknown) : []
  return { text: mapResultText(last), payloads }
}
