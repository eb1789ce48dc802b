// state-restore.ts: open records after a start. What cannot be read, and what no source of the config of today
// wants, is given to the dead letters with the next tick, and its state is deleted in the same write: nothing
// lingers unseen.

import { newChanges, type OpenChanges } from './state-changes.ts'
import { damagedState, droppedMessageOf } from './record-closing.ts'
import { messageOfDamage } from './record-envelope.ts'
import { decodeRecord } from './open-record.ts'
import { keyParts, ownerParts, type KeyParts, type States } from './source-state.ts'

export type Restoring = {
  restore(entries: Iterable<readonly [key: string, value: Buffer]>): void
  /** What is to be given away, once. */
  takeLeftover(): OpenChanges
  readonly hasLeftover: boolean
  /** Entries of the last restore() that could not be read, and that nobody wanted. */
  counters(): { damaged: number; unwanted: number }
}

export function createRestoring({ holders }: States): Restoring {
  let leftover = newChanges()
  let damaged = 0
  let unwanted = 0

  function restore(entries: Iterable<readonly [string, Buffer]>): void {
    leftover = newChanges()
    damaged = 0
    unwanted = 0
    const owned = new Map(holders.map(({ prefix }) => [prefix, new Map<string, Buffer>()]))
    for (const [key, bytes] of entries) {
      const parts = keyParts(key)
      if (parts === null) continue
      const own = owned.get(parts.prefix)
      if (own) own.set(parts.owner, bytes)
      else giveAway(key, parts, bytes)
    }
    for (const { prefix, holds } of holders) {
      const own = owned.get(prefix) ?? new Map<string, Buffer>()
      holds.restore(own, (owner, why) => reportDamage(prefix + owner, own.get(owner), why))
    }
  }

  function reportDamage(key: string, bytes: Buffer | undefined, why: string): void {
    damaged += 1
    leftover.writes.set(key, null)
    const { reason, detail } = damagedState(`Values that waited to become a payload cannot be read: ${why}.`)
    leftover.unsent.push({
      kind: 'unmappable',
      source: null,
      provider: null,
      device: null,
      reason,
      detail,
      messages: 0,
      message: messageOfDamage(key, bytes ?? Buffer.alloc(0)),
    })
  }

  function giveAway(key: string, { kind, name, owner }: KeyParts, bytes: Buffer): void {
    const decoded = decodeRecord(owner, bytes)
    if (decoded.kind === 'damaged') return reportDamage(key, bytes, decoded.why)
    unwanted += 1
    leftover.writes.set(key, null)
    const { values, arrivedAt, latest, messages } = decoded.record
    const record: Record<string, unknown> = Object.create(null) as Record<string, unknown>
    for (const [field, { value }] of values) record[field] = value
    if (!Number.isNaN(latest)) record['$time'] = latest
    const coalesced = kind === 'coalesce'
    const refusal = {
      kind: 'refused' as const,
      reason: 'NO_SOURCE',
      detail: `No ${coalesced ? 'source' : 'group'} of this name collects values any more.`,
    }
    const { name: device, provider } = ownerParts(owner)
    const about = coalesced
      ? { source: name, provider, device, messages }
      : { source: null, provider, device: null, messages }
    const kept = { name, owner, arrivedAt, record }
    leftover.unsent.push(droppedMessageOf(coalesced ? 'coalesced' : 'merged', kept, refusal, about))
  }

  function takeLeftover(): OpenChanges {
    const taken = leftover
    leftover = newChanges()
    return taken
  }

  return {
    restore,
    takeLeftover,
    get hasLeftover() {
      return leftover.writes.size > 0
    },
    counters: () => ({ damaged, unwanted }),
  }
}
