// dead-letter-groups.ts: groups dead letters by cause: a thousand payloads that lack the same field are one
// problem.
//
// A group is a stage, a reason, a source or provider, and the fields that the service named with its
// messages.
// Numbers in these messages are ignored, since they belong to the single payload.

import { bounded } from '../std/quote.ts'
import type { DeadLetter } from '../domain/dead-letter.ts'
import { devicesOf } from '../domain/message.ts'
import type { DeadLetterEntry } from '../spool/spool.ts'
import { selectDeadLetters } from './select.ts'
import type {
  DeadLetterGroup,
  DeadLetterList,
  DeadLetterQuery,
  DeadLetterReader,
  DeadLetterSummary,
} from './types.ts'

const scanMax = 100_000
const groupsMax = 1000
export const devicesMax = 1000
const fieldsMax = 3

type Groups = Map<string, { group: DeadLetterGroup; devices: Set<string> }>

export async function listDeadLetters(
  spool: DeadLetterReader,
  query: DeadLetterQuery,
  limit: number,
): Promise<DeadLetterList> {
  const groups: Groups = new Map()
  const deadLetters: DeadLetterSummary[] = []
  let scanned = 0
  for await (const entry of selectDeadLetters(spool, query)) {
    scanned += 1
    if (deadLetters.length < limit) deadLetters.push(summaryOf(entry))
    addTo(groups, entry.deadLetter)
    if (scanned === scanMax) break
  }
  return {
    scanned,
    more: scanned === scanMax,
    groups: [...groups.values()]
      .map(({ group, devices }) => ({ ...group, devices: devices.size }))
      .sort((a, b) => b.count - a.count),
    deadLetters,
  }
}

function addTo(groups: Groups, deadLetter: DeadLetter): void {
  const { stage, reason, envelope, provider, at, detail } = deadLetter
  const source = envelope?.source ?? null
  const fields = fieldsOf(deadLetter)
  const key = JSON.stringify([stage, reason, source, provider, fields?.replace(/\d+/g, '0')])
  let known = groups.get(key)
  if (known === undefined) {
    if (groups.size >= groupsMax) return
    const shown = { stage, reason: bounded(reason, 100), source, provider, fields }
    const group = { ...shown, count: 0, devices: 0, oldestAt: at, latestAt: at, detail: '' }
    known = { group, devices: new Set() }
    groups.set(key, known)
  }
  known.group.count += 1
  known.group.latestAt = at
  known.group.detail = bounded(detail)
  for (const device of devicesOf(deadLetter)) if (known.devices.size < devicesMax) known.devices.add(device)
}

function fieldsOf({ failure }: DeadLetter): string | null {
  const details = failure?.validationErrorDetails ?? []
  if (details.length === 0) return null
  const texts = [...new Set(details.map(({ field, message }) => bounded(`${field} ${message}`, 100)))].sort()
  const more = texts.length > fieldsMax ? [`${texts.length - fieldsMax} more`] : []
  return [...texts.slice(0, fieldsMax), ...more].join('; ')
}

function summaryOf({ id, deadLetter }: DeadLetterEntry): DeadLetterSummary {
  const { at, stage, reason, detail, device, provider, envelope, payloadId, requestId } = deadLetter
  return {
    id,
    at,
    stage,
    reason,
    detail: bounded(detail),
    device,
    provider,
    source: envelope?.source ?? null,
    topic: envelope === null ? null : bounded(envelope.topic),
    payloadId,
    requestId,
  }
}
