// dead-letter-groups.ts: dead letters by what is wrong with them: a thousand payloads that lack the same field are one matter.
//
// A group is a stage, a reason, a source or provider, and the fields that the service named with what it said of them;
// numbers in its words are left out, since they are the payload's own and not the matter.

import { bounded } from '../std/quote.ts'
import type { DeadLetter } from '../domain/dead-letter.ts'
import type { DeadLetterEntry } from '../spool/spool.ts'
import type { DeadLetterQuery, DeadLetterReader } from './dead-letters.ts'
import { selectDeadLetters } from './select.ts'

type DeadLetterGroup = {
  stage: DeadLetter['stage']
  reason: string
  source: string | null
  provider: string | null
  /** What the service said of the fields, `gps.latitude must not be empty`; null for other letters. */
  fields: string | null
  count: number
  /** Different devices; `devicesMax` where there are more. */
  devices: number
  oldestAt: number
  latestAt: number
  /** Of the latest one. */
  detail: string
}

/** The answer of /dead-letters. */
export type DeadLetterList = {
  scanned: number
  /** There are more than were looked at. */
  more: boolean
  groups: readonly DeadLetterGroup[]
  /** The oldest ones, without their bytes. */
  deadLetters: readonly unknown[]
}

const scanMax = 100_000
const groupsMax = 1000
export const devicesMax = 1000
const fieldsMax = 3

export async function listDeadLetters(
  spool: DeadLetterReader,
  query: DeadLetterQuery,
  limit: number,
): Promise<DeadLetterList> {
  const groups = new Map<string, { group: DeadLetterGroup; devices: Set<string> }>()
  const letters: unknown[] = []
  let scanned = 0
  for await (const entry of selectDeadLetters(spool, query)) {
    scanned += 1
    if (letters.length < limit) letters.push(shown(entry))
    add(groups, entry.deadLetter)
    if (scanned === scanMax) break
  }
  return {
    scanned,
    more: scanned === scanMax,
    groups: [...groups.values()]
      .map(({ group, devices }) => ({ ...group, devices: devices.size }))
      .sort((a, b) => b.count - a.count),
    deadLetters: letters,
  }
}

function add(
  groups: Map<string, { group: DeadLetterGroup; devices: Set<string> }>,
  letter: DeadLetter,
): void {
  const { stage, reason, envelope, provider, at, detail, device } = letter
  const source = envelope?.source ?? null
  const fields = fieldsOf(letter)
  const key = JSON.stringify([stage, reason, source, provider, fields?.replace(/\d+/g, '0')])
  let known = groups.get(key)
  if (known === undefined) {
    if (groups.size >= groupsMax) return
    const group = {
      stage,
      reason: bounded(reason, 100),
      source,
      provider,
      fields,
      count: 0,
      devices: 0,
      oldestAt: at,
      latestAt: at,
      detail: '',
    }
    known = { group, devices: new Set() }
    groups.set(key, known)
  }
  known.group.count += 1
  known.group.latestAt = at
  known.group.detail = bounded(detail)
  if (device !== null && known.devices.size < devicesMax) known.devices.add(device)
}

function fieldsOf({ failure }: DeadLetter): string | null {
  const details = failure?.validationErrorDetails ?? []
  if (details.length === 0) return null
  const texts = [...new Set(details.map(({ field, message }) => bounded(`${field} ${message}`, 100)))].sort()
  const more = texts.length > fieldsMax ? [`${texts.length - fieldsMax} more`] : []
  return [...texts.slice(0, fieldsMax), ...more].join('; ')
}

function shown({ id, deadLetter: letter }: DeadLetterEntry) {
  const { at, stage, reason, detail, device, provider, envelope, payloadId, requestId } = letter
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
