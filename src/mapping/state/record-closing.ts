// record-closing.ts: adds values and mapped records to open records, and handles the records that close: they
// are mapped, thinned, merged and sent, or ignored, or rejected as a whole.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { Rejection } from '../types.ts'
import type { ClosedRecord, Step } from './coalesce.ts'
import type { Value } from './open-record.ts'
import { messageOfRecord, type KeptKind, type KeptRecord } from './record-envelope.ts'
import { digestOfRecord, identityOfDigest, payloadOf, thinSampleOf } from './record-payload.ts'
import {
  ownerOf,
  ownerParts,
  type DeviceRecord,
  type GroupState,
  type SourceState,
  type StateSource,
  type States,
} from './source-state.ts'
import type { CollectedChanges, UnmappedPart } from './state-changes.ts'

export type RecordClosing = {
  /** False for a duplicate, which changes nothing. */
  addValue(state: SourceState, owner: string, value: Value, changes: CollectedChanges): boolean
  /** False for a duplicate, which changes nothing. */
  addRecord(state: SourceState, record: DeviceRecord, messages: number, changes: CollectedChanges): boolean
  /** Closes the records whose window is over. */
  closeDue(nowMs: EpochMs, changes: CollectedChanges): void
}

export function createRecordClosing({ sources, groups }: States): RecordClosing {
  return { addValue, addRecord, closeDue }

  function addValue(state: SourceState, owner: string, value: Value, changes: CollectedChanges): boolean {
    const step = newStep()
    const taken = state.coalescer?.add(owner, value, step) === 'taken'
    endValues(state, step, changes)
    return taken
  }

  function addRecord(
    state: SourceState,
    record: DeviceRecord,
    messages: number,
    changes: CollectedChanges,
  ): boolean {
    const { source, group } = state
    assert(group, 'records are added for a source that merges')
    const { entry, mapped } = record
    const step = newStep()
    const added = group.merger.add(ownerOf(source.assetOf(entry), entry.provider), mapped, messages, step)
    endGroup(group, step, changes)
    // A record beyond the bound cannot wait for the others, so it is sent alone.
    if (added === 'too large') send(state, record, messages, changes)
    return added !== 'duplicate'
  }

  function closeDue(nowMs: EpochMs, changes: CollectedChanges): void {
    for (const state of sources.values()) {
      if (state.coalescer === null) continue
      const step = newStep()
      state.coalescer.tick(nowMs, step)
      endValues(state, step, changes)
    }
    for (const group of groups.values()) {
      const step = newStep()
      group.merger.tick(nowMs, step)
      endGroup(group, step, changes)
    }
  }

  /** Collects the changes of a source that coalesces. */
  function endValues(state: SourceState, { closed, writes }: Step, changes: CollectedChanges): void {
    for (const [owner, bytes] of writes) changes.writes.set(state.prefix + owner, bytes)
    for (const record of closed) endRecord(state, record, changes)
  }

  function endRecord(state: SourceState, closed: ClosedRecord, changes: CollectedChanges): void {
    const { source, thin, group } = state
    const { owner, messages } = closed
    const ignore = (reason: string) =>
      void changes.unsent.push({ kind: 'ignored', source: source.name, reason, messages })
    const { name: device, provider } = ownerParts(owner)
    const entry = source.entryOf(device, provider)
    if (!closed.complete) {
      const time = Number.isNaN(closed.time) ? closed.arrivedAt : closed.time
      if (!entry.ignored && !entry.quarantined) source.note(entry, closed.record, time)
      return ignore('incomplete')
    }
    if (entry.ignored) return ignore('unknown device')
    const mapped = entry.quarantined ? unlisted : source.read(entry, closed.record, closed)
    if ('kind' in mapped) {
      if (mapped.kind === 'ignored') return ignore(mapped.reason)
      const origin = { source: source.name, provider: entry.provider, device, messages }
      changes.unsent.push(unmappedPartOf('coalesced', { ...closed, name: source.name }, mapped, origin))
      return
    }
    if (thin) {
      const identity = identityOfDigest(digestOfRecord(entry, mapped))
      if (!thin.passes(thinSampleOf(mapped, identity, true))) return ignore('thinned')
    }
    if (group === null) send(state, { entry, mapped }, messages, changes)
    else if (!addRecord(state, { entry, mapped }, messages, changes)) ignore('duplicate')
  }

  /** Collects the changes of a group that merges. */
  function endGroup(group: GroupState, { closed, writes }: Step, changes: CollectedChanges): void {
    for (const [owner, bytes] of writes) changes.writes.set(group.prefix + owner, bytes)
    for (const record of closed) {
      const { messages } = record
      const mapped = group.merger.join(record.record)
      const state = mapped === null ? undefined : sources.get(mapped.source)
      if (mapped !== null && state !== undefined) {
        const entry = state.source.entryOf(mapped.device, mapped.provider)
        send(state, { entry, mapped }, messages, changes)
      } else {
        const origin = { source: null, provider: null, device: null, messages }
        changes.unsent.push(unmappedPartOf('merged', { ...record, name: group.name }, unreadable, origin))
      }
    }
  }

  function send(
    { source }: SourceState,
    record: DeviceRecord,
    messages: number,
    changes: CollectedChanges,
  ): void {
    const payload = payloadOfClosed(source, record)
    if (payload === null) {
      changes.unsent.push({ kind: 'ignored', source: source.name, reason: 'privacy', messages })
    } else {
      changes.payloads.push(payload)
      changes.closed += messages
    }
  }
}

function newStep(): Step {
  return { closed: [], writes: new Map() }
}

/** The payload of a closed record; null where the privacy profile of the asset leaves nothing to send. */
export function payloadOfClosed({ withholdOf }: StateSource, record: DeviceRecord): MappedPayload | null {
  const digest = digestOfRecord(record.entry, record.mapped)
  return payloadOf(record, digest, identityOfDigest(digest), withholdOf(record.entry))
}

export type Refusal = Exclude<Rejection, { kind: 'ignored' }>

/** The table may have lost a device while its values were collected. */
export const unlisted: Refusal = {
  kind: 'quarantined',
  reason: 'UNKNOWN_DEVICE',
  detail: 'The device is not in the device table.',
}

export const unreadable: Refusal = damagedState('The stored values of a merged payload cannot be read.')

export function damagedState(detail: string): Extract<Rejection, { kind: 'refused' }> {
  return { kind: 'refused', reason: 'DAMAGED_STATE', detail }
}

export function unmappedPartOf(
  kind: KeptKind,
  { name, owner, arrivedAt, record }: KeptRecord,
  refusal: Refusal,
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
