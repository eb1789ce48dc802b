// state-changes.ts: the changes of one step of the state: payloads, state entries and parts that end without
// a payload. The caller commits all of them in one write.

import type { MappedPayload } from '../../domain/payload.ts'
import type { Moment } from '../read/reading.ts'
import type { Rejection, StateChanges, StateWrite, UnmappedPart, UnsentPart } from '../types.ts'
import { messageOfRecord, type KeptKind, type KeptRecord } from './record-envelope.ts'

/** StateChanges while they are collected. `now`: of the message or tick that makes them. */
export type CollectedChanges = {
  readonly now: Moment
  payloads: MappedPayload[]
  writes: Map<string, Buffer | null>
  closed: number
  unsent: UnsentPart[]
}

export function newChanges(now: Moment): CollectedChanges {
  return { now, payloads: [], writes: new Map(), closed: 0, unsent: [] }
}

export function isEmpty({ payloads, writes, unsent }: CollectedChanges): boolean {
  return payloads.length === 0 && writes.size === 0 && unsent.length === 0
}

export function changesOf({ payloads, writes, closed, unsent }: CollectedChanges): StateChanges {
  const written: StateWrite[] = []
  for (const [key, value] of writes) written.push({ key, value })
  return { payloads, writes: written, closed, unsent }
}

export function unmappedPartOf(
  kind: KeptKind,
  { name, owner, arrivedAt, record }: KeptRecord,
  refusal: Exclude<Rejection, { kind: 'ignored' }>,
  origin: Pick<UnmappedPart, 'source' | 'provider' | 'device' | 'messages'>,
): UnmappedPart {
  const message = messageOfRecord(kind, { name, owner, arrivedAt, record })
  const { reason, detail } = refusal
  return {
    kind: refusal.kind === 'refused' ? 'unmappable' : 'quarantined',
    reason,
    detail,
    ...origin,
    message,
  }
}
