// record-envelope.ts: a record that closed and could not be mapped, as a message: so it is kept as a dead letter
// or in quarantine like any other message, and can be mapped again.
//
// Its topic begins with `$coalesced/` or `$merged/` and it has no client: no device can send such a message,
// since a broker gives every client a name.

import type { EpochMs } from '../../std/clock.ts'
import type { Message, Sender } from '../../domain/message.ts'
import { isRecord } from '../path/path-eval.ts'
import type { KeptRecord } from './state-changes.ts'

export type KeptKind = 'coalesced' | 'merged'

const nobody: Sender = { clientId: '', userName: null, certificateName: null }

export function messageOfRecord(kind: KeptKind, { name, owner, arrivedAt, record }: KeptRecord): Message {
  return messageOfBytes(
    `$${kind}/${name}`,
    Buffer.from(JSON.stringify({ owner, arrivedAt, record })),
    arrivedAt,
  )
}

/** State that cannot be read, whole. */
export function messageOfDamage(key: string, bytes: Buffer): Message {
  return messageOfBytes(`$damaged/${key}`, bytes, 0)
}

function messageOfBytes(topic: string, bytes: Buffer, arrivedAt: EpochMs): Message {
  return { topic, bytes, qos: 1, retain: false, dup: false, sender: nobody, arrivedAt }
}

/** Null where the message is none of those that are made here. */
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
