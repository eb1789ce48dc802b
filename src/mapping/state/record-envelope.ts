// record-envelope.ts: the message of a closed record that could not be mapped. As a message it becomes a dead
// letter, or is quarantined, like any other, and can be mapped again.
//
// Its topic begins with `$coalesced/` or `$merged/` and it has no client id. No device can send such a
// message, because a broker gives every client an id.

import type { EpochMs } from '../../std/clock.ts'
import type { Message, Sender } from '../../domain/message.ts'
import { isRecord } from '../path/path-eval.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { Moment } from '../read/reading.ts'
import type { Rejection, StateChanges, StateWrite, UnmappedPart, UnsentPart } from '../types.ts'

/** Values that waited to become one payload. */
export type KeptRecord = {
  /** The source that coalesces, or the group that merges. */
  name: string
  /** The device, or the asset. */
  owner: string
  arrivedAt: EpochMs
  record: Record<string, unknown>
}

type KeptKind = 'coalesced' | 'merged'

const noSender: Sender = { clientId: '', userName: null, certificateName: null, identity: null }

export function messageOfRecord(kind: KeptKind, { name, owner, arrivedAt, record }: KeptRecord): Message {
  return messageOfBytes(
    `$${kind}/${name}`,
    Buffer.from(JSON.stringify({ owner, arrivedAt, record })),
    arrivedAt,
  )
}

/** The bytes of a state entry that cannot be read. */
export function messageOfDamage(key: string, bytes: Buffer): Message {
  return messageOfBytes(`$damaged/${key}`, bytes, 0)
}

function messageOfBytes(topic: string, bytes: Buffer, arrivedAt: EpochMs): Message {
  return { topic, bytes, qos: 1, retain: false, dup: false, sender: noSender, arrivedAt }
}

/** Null for a message that was not made here. */
export function keptRecordIn({ topic, bytes, sender }: Message): (KeptRecord & { kind: KeptKind }) | null {
  if (sender.clientId !== '' || !topic.startsWith('$')) return null
  const slash = topic.indexOf('/')
  const kind = topic.slice(1, slash)
  if (kind !== 'coalesced' && kind !== 'merged') return null
  try {
    const found: unknown = JSON.parse(bytes.toString('utf8'))
    if (!isRecord(found)) return null
    const { owner, arrivedAt, record } = found
    if (typeof owner !== 'string' || typeof arrivedAt !== 'number' || !isRecord(record)) return null
    return { kind, name: topic.slice(slash + 1), owner, arrivedAt, record }
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

// The changes of one step of the state: payloads, state entries and parts that end without
// a payload. The caller commits all of them in one write.

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
