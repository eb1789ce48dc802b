// state-changes.ts: the changes of one step of the state: payloads, state entries and parts that end without
// a payload. The caller commits all of them in one write.

import type { ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { StateWrite } from '../types.ts'

/** Messages that were acknowledged as parts and end without a payload. */
export type UnsentPart = { kind: 'ignored'; source: string; reason: string; messages: number } | UnmappedPart

/** Becomes a dead letter or is quarantined. `message` has all values and can be mapped again. */
export type UnmappedPart = {
  kind: 'unmappable' | 'quarantined'
  source: string | null
  provider: ProviderName | null
  device: string | null
  reason: string
  detail: string
  messages: number
  message: Message
}

export type StateChanges = {
  payloads: readonly MappedPayload[]
  writes: readonly StateWrite[]
  /** Messages that ended as these payloads. */
  closed: number
  unsent: readonly UnsentPart[]
}

/** StateChanges while they are collected. */
export type CollectedChanges = {
  payloads: MappedPayload[]
  writes: Map<string, Buffer | null>
  closed: number
  unsent: UnsentPart[]
}

export function newChanges(): CollectedChanges {
  return { payloads: [], writes: new Map(), closed: 0, unsent: [] }
}

export function isEmpty({ payloads, writes, unsent }: CollectedChanges): boolean {
  return payloads.length === 0 && writes.size === 0 && unsent.length === 0
}

export function changesOf({ payloads, writes, closed, unsent }: CollectedChanges): StateChanges {
  const written: StateWrite[] = []
  for (const [key, value] of writes) written.push({ key, value })
  return { payloads, writes: written, closed, unsent }
}
