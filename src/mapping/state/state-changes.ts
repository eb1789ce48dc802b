// state-changes.ts: what a step of the mapping's memory asks of the spool: all of it in one write, or none.

import type { EpochMs } from '../../std/clock.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { StateWrite } from '../types.ts'

/** Messages that were acknowledged as parts and now end without a payload. */
export type UnsentPart = { kind: 'ignored'; source: string; reason: string; messages: number } | UnmappedPart

/** To be kept as a dead letter, or in quarantine: `message` stands for them all and can be mapped again. */
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

/** An Applied in the making. */
export type OpenChanges = {
  payloads: MappedPayload[]
  writes: Map<string, Buffer | null>
  closed: number
  unsent: UnsentPart[]
}

export function newChanges(): OpenChanges {
  return { payloads: [], writes: new Map(), closed: 0, unsent: [] }
}

export function isEmpty({ payloads, writes, unsent }: OpenChanges): boolean {
  return payloads.length === 0 && writes.size === 0 && unsent.length === 0
}

export function changesOf({ payloads, writes, closed, unsent }: OpenChanges): StateChanges {
  const written: StateWrite[] = []
  for (const [key, value] of writes) written.push({ key, value })
  return { payloads, writes: written, closed, unsent }
}

/** Values that waited to become one payload, as a message of its own (see record-envelope.ts). */
export type KeptRecord = {
  /** The source that coalesces, or the group that merges. */
  name: string
  /** The device, or the asset. */
  owner: string
  arrivedAt: EpochMs
  record: Record<string, unknown>
}
