// map-output.ts: the output of `map` for one message: a line of JSON, or with --explain a text.

import { assertNever } from '../../std/assert.ts'
import { plural } from '../../std/quantity.ts'
import type { Explained, KeptResult, MapResult, StateChanges } from '../../mapping/mapping.ts'
import { mapResultText } from '../terminal/text-format.ts'
import { explainedText } from './explain-text.ts'

/** `explained` is null without --explain; `topic` where all messages have the same. */
export function resultText(
  result: MapResult,
  explained: Explained | null,
  { json, topic, width }: { json: boolean; topic: string | null; width: number },
): string {
  const own = resultLine(result)
  const line = topic === null ? own : `{"topic":${JSON.stringify(topic)},${own.slice(1)}`
  if (explained === null) return `${line}\n`
  if (json) return `${line.slice(0, -1)},"explained":${JSON.stringify(explained)}}\n`
  return `${explainedText(explained, `source ${result.source ?? 'none'}: ${mapResultText(result)}`, width)}\n`
}

/** What a change of state made of earlier messages; '' where it made nothing. */
export function changesText(
  changes: StateChanges,
  explained: Explained | null,
  { json, width }: { json: boolean; width: number },
): string {
  const lines = changesLines(changes)
  if (explained === null) return lines.map((line) => `${line}\n`).join('')
  if (lines.length === 0) return ''
  if (json) return `{"source":null,"applied":[${lines.join(',')}],"explained":${JSON.stringify(explained)}}\n`
  const payloads = explained.records.filter(({ payloadId }) => payloadId !== null).length
  return `${explainedText(explained, payloads === 0 ? lines.join(' ') : plural(payloads, 'payload'), width)}\n`
}

function resultLine(result: MapResult): string {
  const own = mainLine(result)
  const { rest } = result
  return rest === undefined ? own : `${own.slice(0, -1)},"rest":${JSON.stringify(rest.map(restShown))}}`
}

/** Records that are kept, by their place in the message from 1. */
function restShown({ kind, reason, detail, device, records = [] }: KeptResult): Record<string, unknown> {
  return { [kind]: { reason, detail, device, records: records.map(({ index }) => index + 1) } }
}

function mainLine(result: MapResult): string {
  switch (result.kind) {
    case 'payloads':
      return payloadsLine(result.source, result.payloads)
    case 'ignored':
      return reasonLine(result.source, 'ignored', { reason: result.reason })
    case 'part':
      return reasonLine(result.source, result.kind, {})
    case 'quarantined':
    case 'unmappable': {
      const { source, kind, device, reason, detail } = result
      return reasonLine(source, kind, { reason, detail, device })
    }
    default:
      return assertNever(result)
  }
}

function changesLines({ payloads, unsent }: StateChanges): string[] {
  const lines = unsent.map((one) => {
    const { source, kind, reason } = one
    const why = kind === 'ignored' ? { reason } : { reason, detail: one.detail, device: one.device }
    return reasonLine(source, kind, why)
  })
  return payloads.length === 0 ? lines : [payloadsLine(null, payloads), ...lines]
}

function payloadsLine(source: string | null, payloads: readonly { json: string }[]): string {
  return `{"source":${JSON.stringify(source)},"payloads":[${payloads.map(({ json }) => json).join(',')}]}`
}

function reasonLine(source: string | null, kind: string, why: object): string {
  return JSON.stringify({ source, payloads: [], [kind]: why })
}
