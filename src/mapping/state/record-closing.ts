// record-closing.ts: what becomes of records when they close: read, thinned, merged, sent; or ignored, or kept as
// letters.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { UnsentPart, KeptRecord, UnmappedPart, OpenChanges } from './state-changes.ts'
import type { ClosedRecord, Step } from './coalesce.ts'
import { messageOfRecord, type KeptKind } from './record-envelope.ts'
import type { Value } from './open-record.ts'
import { digestOfRecord, ownIdentity, payloadOf, sampleOf } from './record-payload.ts'
import {
  ownerOf,
  ownerParts,
  type GroupState,
  type DeviceRecord,
  type Refusal,
  type SourceState,
  type StateSource,
  type States,
} from './source-state.ts'

export type Closing = {
  /** Both are false where what came is a copy of what is there. */
  addValue(state: SourceState, owner: string, value: Value, outcome: OpenChanges): boolean
  addHalf(state: SourceState, own: DeviceRecord, messages: number, outcome: OpenChanges): boolean
  /** Closes what is over. */
  closeOver(nowMs: EpochMs, outcome: OpenChanges): void
}

export function createClosing({ sources, groups }: States): Closing {
  return { addValue, addHalf, closeOver }

  function addValue(state: SourceState, owner: string, value: Value, outcome: OpenChanges): boolean {
    const step: Step = { closed: [], kept: new Map() }
    const taken = state.coalescer?.add(owner, value, step) === 'taken'
    settleRecords(state, step, outcome)
    return taken
  }

  function addHalf(state: SourceState, own: DeviceRecord, messages: number, outcome: OpenChanges): boolean {
    const { source, group } = state
    assert(group, 'halves are added for a source that merges')
    const step: Step = { closed: [], kept: new Map() }
    const fate = group.merger.add(
      ownerOf(source.assetOf(own.entry), own.entry.provider),
      { ...own.mapped, provider: own.entry.provider },
      messages,
      step,
    )
    settleHalves(group, step, outcome)
    // A half beyond the bound of a record cannot wait for the others, so it goes alone.
    if (fate === 'too large') send(state, own, messages, outcome)
    return fate !== 'duplicate'
  }

  function closeOver(nowMs: EpochMs, outcome: OpenChanges): void {
    for (const state of sources.values()) {
      if (state.coalescer === null) continue
      const step: Step = { closed: [], kept: new Map() }
      state.coalescer.tick(nowMs, step)
      settleRecords(state, step, outcome)
    }
    for (const group of groups.values()) {
      const step: Step = { closed: [], kept: new Map() }
      group.merger.tick(nowMs, step)
      settleHalves(group, step, outcome)
    }
  }

  function settleRecords(state: SourceState, { closed, kept }: Step, outcome: OpenChanges): void {
    for (const [owner, bytes] of kept) outcome.writes.set(state.prefix + owner, bytes)
    for (const record of closed) settleRecord(state, record, outcome)
  }

  function settleRecord(state: SourceState, closed: ClosedRecord, outcome: OpenChanges): void {
    const { source, thin, group } = state
    const { owner, messages } = closed
    const ignore = (reason: string) =>
      void outcome.unsent.push({ kind: 'ignored', source: source.name, reason, messages })
    if (!closed.complete) return ignore('incomplete')
    const { name: device, provider } = ownerParts(owner)
    const entry = source.entryOf(device, provider)
    if (entry.ignored) return ignore('unknown device')
    const half = entry.quarantined ? unlisted : source.read(entry, closed.record, closed.arrivedAt)
    if ('kind' in half) {
      if (half.kind === 'ignored') return ignore(half.reason)
      const about = { source: source.name, provider: entry.provider, device, messages }
      outcome.unsent.push(droppedMessageOf('coalesced', { ...closed, name: source.name }, half, about))
      return
    }
    if (thin && !thin.passes(sampleOf(half, ownIdentity(digestOfRecord(entry, half)), true)))
      return ignore('thinned')
    if (group === null) send(state, { entry, mapped: half }, messages, outcome)
    else if (!addHalf(state, { entry, mapped: half }, messages, outcome)) ignore('duplicate')
  }

  function settleHalves(group: GroupState, { closed, kept }: Step, outcome: OpenChanges): void {
    for (const [owner, bytes] of kept) outcome.writes.set(group.prefix + owner, bytes)
    for (const record of closed) {
      const { messages } = record
      const half = group.merger.join(record.record)
      const state = half === null ? undefined : sources.get(half.source)
      if (half !== null && state !== undefined) {
        const entry = state.source.entryOf(half.device, half.provider)
        send(state, { entry, mapped: half }, messages, outcome)
      } else {
        const refusal = damagedState('The halves of a payload were kept and cannot be read.')
        const kept = { ...record, name: group.name }
        outcome.unsent.push(droppedMessageOf('merged', kept, refusal, nobody(messages)))
      }
    }
  }

  function send({ source }: SourceState, own: DeviceRecord, messages: number, outcome: OpenChanges): void {
    const payload = payloadIn(source, own)
    if (payload === null) {
      outcome.unsent.push({ kind: 'ignored', source: source.name, reason: 'privacy', messages })
    } else {
      outcome.payloads.push(payload)
      outcome.closed += messages
    }
  }
}

/** The payload of a record that came out of memory; null where the asset's profile leaves nothing of it. */
export function payloadIn(
  { withholdOf }: StateSource,
  { entry, mapped: half }: DeviceRecord,
): MappedPayload | null {
  const digest = digestOfRecord(entry, half)
  return payloadOf(entry, half, digest, ownIdentity(digest), withholdOf(entry))
}

/** The table may have lost a device while its values were collected. */
export const unlisted: Refusal = {
  kind: 'quarantined',
  reason: 'UNKNOWN_DEVICE',
  detail: 'The device is not in the device table.',
}

function nobody(messages: number) {
  return { source: null, provider: null, device: null, messages }
}

export function damagedState(detail: string): Refusal {
  return { kind: 'refused', reason: 'DAMAGED_STATE', detail }
}

export function droppedMessageOf(
  kind: KeptKind,
  { name, owner, arrivedAt, record }: KeptRecord,
  { kind: fate, reason, detail }: Refusal,
  about: Pick<UnmappedPart, 'source' | 'provider' | 'device' | 'messages'>,
): UnsentPart {
  const message = messageOfRecord(kind, { name, owner, arrivedAt, record })
  return { kind: fate === 'refused' ? 'unmappable' : fate, reason, detail, ...about, message }
}
