// state-restore.ts: restores the open records after a start. Entries that cannot be read, and entries that no
// source of the present config uses, become dead letters with the next tick. The same write deletes them, so
// none stays unseen.

import type { Message } from '../../domain/message.ts'
import { decodeRecord, type OpenRecord } from './open-record.ts'
import {
  messageOfDamage,
  messageOfRecord,
  unmappedPartOf,
  type KeptRecord,
  type CollectedChanges,
} from './record-envelope.ts'
import { keyParts, ownerParts, type KeyParts, type States } from './source-state.ts'

/** Entries that could not be read, and that no source uses; and the changes that remove them, once. */
export type Restored = {
  changes: Pick<CollectedChanges, 'writes' | 'unsent'>
  damaged: number
  unused: number
}

export function restoreStates(
  { stores }: States,
  entries: Iterable<readonly [key: string, value: Buffer]>,
): Restored {
  const restored: Restored = { changes: { writes: new Map(), unsent: [] }, damaged: 0, unused: 0 }
  const byPrefix = new Map(stores.map(({ prefix }) => [prefix, new Map<string, Buffer>()]))
  for (const [key, bytes] of entries) {
    const parts = keyParts(key)
    if (parts === null) continue
    const ofStore = byPrefix.get(parts.prefix)
    if (ofStore) ofStore.set(parts.owner, bytes)
    else removeUnused(key, parts, bytes)
  }
  for (const { prefix, records } of stores) {
    const ofStore = byPrefix.get(prefix) ?? new Map<string, Buffer>()
    records.restore(ofStore, (owner, why) => removeDamaged(prefix + owner, ofStore.get(owner), why))
  }
  return restored

  function removeDamaged(key: string, bytes: Buffer | undefined, why: string): void {
    restored.damaged += 1
    restored.changes.writes.set(key, null)
    restored.changes.unsent.push({
      kind: 'unmappable',
      source: null,
      provider: null,
      device: null,
      reason: 'DAMAGED_STATE',
      detail: `Values that waited to become a payload cannot be read: ${why}.`,
      messages: 0,
      message: messageOfDamage(key, bytes ?? Buffer.alloc(0)),
    })
  }

  function removeUnused(key: string, { kind, name, owner }: KeyParts, bytes: Buffer): void {
    const decoded = decodeRecord(owner, bytes)
    if (decoded.kind === 'damaged') return removeDamaged(key, bytes, decoded.why)
    restored.unused += 1
    restored.changes.writes.set(key, null)
    const { messages } = decoded.record
    const coalesced = kind === 'coalesce'
    const detail = `No ${coalesced ? 'source' : 'group'} with this name collects values any more.`
    const refusal = { kind: 'refused', reason: 'NO_SOURCE', detail } as const
    const { name: device, provider } = ownerParts(owner)
    const origin = coalesced
      ? { source: name, provider, device, messages }
      : { source: null, provider, device: null, messages }
    const kept = keptRecordOf(name, decoded.record)
    restored.changes.unsent.push(unmappedPartOf(coalesced ? 'coalesced' : 'merged', kept, refusal, origin))
  }
}

/**
 * An entry of the state as a message that can be mapped again (record-remap.ts). Null for entries that are no
 * open record, and for damaged ones.
 */
export function messageOfStateEntry(key: string, bytes: Buffer): Message | null {
  const parts = keyParts(key)
  if (parts === null) return null
  const decoded = decodeRecord(parts.owner, bytes)
  if (decoded.kind === 'damaged') return null
  const kind = parts.kind === 'coalesce' ? 'coalesced' : 'merged'
  return messageOfRecord(kind, keptRecordOf(parts.name, decoded.record))
}

function keptRecordOf(name: string, { owner, values, arrivedAt, latest }: OpenRecord): KeptRecord {
  const record: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const [field, { value }] of values) record[field] = value
  if (!Number.isNaN(latest)) record['$time'] = latest
  return { name, owner, arrivedAt, record }
}
