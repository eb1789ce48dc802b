// learn-text.ts: the result of `learn`, as text and as JSON.

import { bounded, visible } from '../../std/quote.ts'
import type { Message } from '../../domain/message.ts'
import {
  bytesText,
  missingValuesOf,
  type ObservedTraffic,
  type Proposal,
  type Proposed,
  type TopicShape,
  unreadReason,
} from '../../learn/learn.ts'
import { plural } from '../../std/quantity.ts'
import { columns } from '../../std/text-table/text-table.ts'
import { visibleLines } from '../terminal/terminal.ts'
import { mapResultText } from '../terminal/text-format.ts'

export type Learned = Proposed & {
  traffic: ObservedTraffic
  /** Number of messages and topics, time, and why it ended, in one sentence. */
  summary: string
  /** The sections `ingest` and `sources` of a config. */
  yaml: string
  /** The device table and the cases; '' for none. */
  devices: string
  cases: string
}

/** Topic shapes shown of one source; vehicles that send single values have hundreds. */
const shapesShown = 12
const messageLengthMax = 600
const devicesShown = 20

export function learnedText(learned: Learned, width: number): string {
  const { traffic, summary, proposals, unread, yaml, devices, cases } = learned
  const lines = [summary]
  if (traffic.messages === 0) {
    lines.push(
      'No message arrived. Check that devices publish now, and that this user may read their topics. The broker ' +
        'inside a gateway sends no messages: on its machine, use `telemetry-gateway tap`.',
    )
    return `${lines.join('\n')}\n`
  }
  if (traffic.unshaped > 0)
    lines.push(
      `${plural(traffic.unshaped, 'message')} skipped: the topics have too many different forms. Narrow --topic.`,
    )
  for (const proposal of proposals) lines.push('', ...proposalLines(proposal, width))
  if (unread.length > 0) {
    lines.push('', 'No preset reads these topics:')
    lines.push(...shapeTable(unread, width), ...unread.slice(0, shapesShown).flatMap(unreadLines))
  }
  if (yaml !== '')
    lines.push(
      '',
      'A bridge to this broker, and sources. Put them into the config and try them with `check --connect` and `map --explain`:',
      '',
      yaml,
    )
  if (devices !== '')
    lines.push(
      'A device table (`devices: { file: devices.csv }`). Fill in what you know; empty fields use the defaults:',
      '',
      ...tableLines(devices),
      '',
    )
  if (cases !== '')
    lines.push(
      'Cases, beside the config as learned.cases.yaml, for `map --test --config FILE`. Compare them with what the ' +
        'devices show:',
      '',
      visibleLines(cases),
    )
  return `${lines.join('\n').trimEnd()}\n`
}

function proposalLines(proposal: Proposal, width: number): string[] {
  const { source, preset, others, shapes, fit } = proposal
  const { taken, mapped, fieldCounts, devices } = fit
  const what = preset === null ? 'draft of a mapping' : `preset ${preset}`
  const instead = others.length === 0 ? '' : ` (other presets that read it: ${others.join(', ')})`
  return [
    `${visible(source.name)}: ${what}${instead}`,
    `  ${mapped} of ${taken} messages tried map to ${plural(fieldCounts.payloads, 'payload')} of ${plural(devices, 'device')}`,
    ...missingValuesOf(proposal).map((sentence) => `  - ${visible(sentence)}`),
    ...shapeTable(shapes, width),
    ...shapes.slice(0, shapesShown).flatMap(lastLines),
    ...(fit.lastPayloads.length > 0 ? ['  last payloads'] : []),
    ...fit.lastPayloads.map(({ json }) => `    ${visible(bounded(json, messageLengthMax))}`),
  ]
}

function shapeTable(shapes: readonly TopicShape[], width: number): string[] {
  const rows = shapes
    .slice(0, shapesShown)
    .map(({ filter, topics, messages }) => [filter, String(topics), String(messages)])
  const more = shapes.length - rows.length
  const head = ['topic filter', 'topics', 'messages']
  const table = columns([head, ...rows], width - 2).map((line) => `  ${line}`)
  return more > 0 ? [...table, `  and ${more} more`] : table
}

function tableLines(table: string): string[] {
  const lines = table.trimEnd().split('\n')
  const shown = lines.slice(0, devicesShown + 1).map(visible)
  return lines.length > shown.length ? [...shown, `and ${lines.length - shown.length} more`] : shown
}

function unreadLines(shape: TopicShape): string[] {
  return [...lastLines(shape), `    ${visible(unreadReason(shape))}`]
}

function lastLines({ last }: TopicShape): string[] {
  if (last === null) return []
  return [
    `  last message, on ${visible(bounded(last.topic))}`,
    `    ${visible(bounded(contentOf(last), messageLengthMax))}`,
  ]
}

function contentOf({ bytes }: Message): string {
  const { message, hex } = bytesText(bytes)
  return message ?? `hex ${hex ?? ''}`
}

export function learnedJson(learned: Learned): unknown {
  const { traffic, summary, proposals, unread, yaml, devices, cases } = learned
  const { messages, topics, moreTopics, unshaped } = traffic
  return {
    summary,
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
      shapes: proposal.shapes.map((shape) => ({ ...shapeJson(shape), result: resultOf(proposal, shape) })),
      lastPayloads: proposal.fit.lastPayloads.map(({ json }) => JSON.parse(json) as unknown),
    })),
    unread: unread.map((shape) => ({ ...shapeJson(shape), why: unreadReason(shape) })),
    yaml,
    deviceTable: devices,
    cases,
  }
}

function shapeJson({ filter, topics, messages, retained, qos0, last }: TopicShape): Record<string, unknown> {
  const own = last === null ? null : { topic: last.topic, ...bytesText(last.bytes) }
  return { filter, topics, messages, retained, qos0, last: own }
}

function resultOf({ fit }: Proposal, shape: TopicShape): unknown {
  const last = fit.shapes.get(shape)?.last ?? null
  if (last === null) return null
  const payloads =
    last.kind === 'payloads' ? last.payloads.map(({ json }) => JSON.parse(json) as unknown) : []
  return { text: mapResultText(last), payloads }
}
