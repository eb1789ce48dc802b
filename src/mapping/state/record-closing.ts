// record-closing.ts: adds values and mapped records to open records, and handles the records that close: they
// are mapped, thinned, merged and sent, or ignored, or rejected as a whole. One that was kept as a message
// (record-envelope.ts) is mapped again by the present sources, and neither thinned nor merged.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { thinSampleOf } from '../filters/thin.ts'
import { digestOf } from '../identity.ts'
import { rejectedAs } from '../read/map-result.ts'
import type { MessageAt, Moment } from '../read/reading.ts'
import type { SourceRuntime } from '../routing/routing.ts'
import type { MapResult, Rejection } from '../types.ts'
import { identityOfDigest, nameOf, payloadOfName, type DeviceRecord, type MappedRecord } from '../write.ts'
import type { ClosedRecord, Step } from './coalesce.ts'
import type { Value } from './open-record.ts'
import { keptRecordIn, unmappedPartOf, type CollectedChanges } from './record-envelope.ts'
import { ownerOf, ownerParts, type GroupState, type SourceState, type States } from './source-state.ts'

/** Reads records of several messages. */
export type CollectedReader = {
  /** Notes what an incomplete record says about the device. */
  note(runtime: SourceRuntime, entry: DeviceEntry, closed: ClosedRecord): void
  read(
    runtime: SourceRuntime,
    entry: DeviceEntry,
    record: Record<string, unknown>,
    at: Pick<MessageAt, 'arrivedAt' | 'offsetMs' | 'live'>,
  ): MappedRecord | Rejection
}

/** The table may have lost a device while its values were collected. */
const unlisted: Rejection = {
  kind: 'quarantined',
  reason: 'UNKNOWN_DEVICE',
  detail: 'The device is not in the device table.',
}

const unreadable = {
  kind: 'refused',
  reason: 'DAMAGED_STATE',
  detail: 'The stored values of a merged payload cannot be read.',
} as const

const noSource: Rejection = {
  kind: 'refused',
  reason: 'NO_SOURCE',
  detail: 'No source or group with this name collects values.',
}

export function createRecordClosing({ sources, groups }: States, reader: CollectedReader) {
  return { addValue, addRecord, closeDue, mapKept }

  /** False for a duplicate, which changes nothing. */
  function addValue(state: SourceState, owner: string, value: Value, changes: CollectedChanges): boolean {
    const step = newStep()
    const taken = state.coalescer?.add(owner, value, step) === 'taken'
    endValues(state, step, changes)
    return taken
  }

  /** False for a duplicate, which changes nothing. */
  function addRecord(
    state: SourceState,
    record: DeviceRecord,
    messages: number,
    changes: CollectedChanges,
  ): boolean {
    const { group, runtime } = state
    assert(group, 'records are added for a source that merges')
    const { assetId, provider } = record.entry
    const step = newStep()
    const added = group.merger.add(ownerOf(assetId, provider), record.mapped, messages, step)
    endGroup(group, step, changes)
    // A record beyond the bound cannot wait for the others, so it is sent alone.
    if (added === 'too large') send(runtime.source.name, record, messages, changes)
    return added !== 'duplicate'
  }

  /** Closes the records whose window is over. */
  function closeDue(nowMs: EpochMs, changes: CollectedChanges): void {
    for (const state of sources.values()) {
      const step = newStep()
      state.coalescer?.tick(nowMs, step)
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
    const { runtime, thin, group } = state
    const { name } = runtime.source
    const { owner, messages } = closed
    const device = ownerParts(owner)
    const entry = runtime.devices.entryOf(device.name, device.provider)
    const { arrivedAt } = closed
    const at = { arrivedAt, offsetMs: sinceArrival(changes.now, arrivedAt), live: true }
    const mapped = closed.complete
      ? (unadmitted(entry) ?? reader.read(runtime, entry, closed.record, at))
      : incomplete()
    if ('kind' in mapped && mapped.kind !== 'ignored') {
      const origin = { source: name, provider: entry.provider, device: device.name, messages }
      changes.unsent.push(unmappedPartOf('coalesced', { ...closed, name }, mapped, origin))
    } else if ('kind' in mapped) ignore(mapped.reason)
    else if (thin && !passes(thin, entry, mapped)) ignore('thinned')
    else if (group === null) send(name, { entry, mapped }, messages, changes)
    else if (!addRecord(state, { entry, mapped }, messages, changes)) ignore('duplicate')

    function ignore(reason: string): void {
      changes.unsent.push({ kind: 'ignored', source: name, reason, messages })
    }

    function incomplete(): Rejection {
      if (!entry.ignored && !entry.quarantined) reader.note(runtime, entry, closed)
      return { kind: 'ignored', reason: 'incomplete' }
    }
  }

  function passes(thin: NonNullable<SourceState['thin']>, entry: DeviceEntry, mapped: MappedRecord): boolean {
    const identity = identityOfDigest(digestOf(nameOf({ entry, mapped })))
    return thin.passes(thinSampleOf(mapped, identity, true))
  }

  /** Collects the changes of a group that merges. */
  function endGroup(group: GroupState, { closed, writes }: Step, changes: CollectedChanges): void {
    for (const [owner, bytes] of writes) changes.writes.set(group.prefix + owner, bytes)
    for (const record of closed) {
      const { messages } = record
      const mapped = group.merger.join(record.record)
      const state = mapped === null ? undefined : sources.get(mapped.source)
      if (mapped !== null && state !== undefined) {
        const entry = state.runtime.devices.entryOf(mapped.device, mapped.provider)
        send(mapped.source, { entry, mapped }, messages, changes)
      } else {
        const origin = { source: null, provider: null, device: null, messages }
        changes.unsent.push(unmappedPartOf('merged', { ...record, name: group.name }, unreadable, origin))
      }
    }
  }

  function send(source: string, record: DeviceRecord, messages: number, changes: CollectedChanges): void {
    const payload = payloadOfName(record)
    if (payload === null) {
      changes.unsent.push({ kind: 'ignored', source, reason: 'privacy', messages })
    } else {
      changes.payloads.push(payload)
      changes.closed += messages
    }
  }

  /** Null for a message that is not a kept record. */
  function mapKept(message: Message, at: Pick<MessageAt, 'offsetMs' | 'live'>): MapResult | null {
    const kept = keptRecordIn(message)
    if (kept === null) return null
    const { kind, name, owner, record } = kept
    const group = kind === 'merged' ? groups.get(name) : undefined
    const merged = group?.merger.join(record)
    const { runtime } = sources.get(kind === 'merged' ? (merged?.source ?? '') : name) ?? {}
    const { name: device, provider } = merged ? nameAndProvider(merged) : ownerParts(owner)
    if (group && !merged) return rejectedAs(unreadable, message, null, device)
    if (runtime === undefined) return rejectedAs(noSource, message, null, device)
    const { source } = runtime
    const entry = runtime.devices.entryOf(device, provider)
    const { arrivedAt } = message
    const mapped = unadmitted(entry) ?? merged ?? reader.read(runtime, entry, record, { ...at, arrivedAt })
    if ('kind' in mapped) return rejectedAs(mapped, message, source, device, entry)
    const payload = payloadOfName({ entry, mapped })
    return payload === null
      ? { kind: 'ignored', source: source.name, reason: 'privacy' }
      : { kind: 'payloads', source: source.name, payloads: [payload] }
  }
}

/**
 * Our time may have become known between the arrival and now. A time that is not ahead of now is not in the
 * future either way.
 */
function sinceArrival({ at, offsetMs }: Moment, arrivedAt: EpochMs): number | null {
  return offsetMs === null ? null : offsetMs + Math.max(0, at - arrivedAt)
}

function unadmitted({ ignored, quarantined }: DeviceEntry): Rejection | null {
  if (ignored) return { kind: 'ignored', reason: 'unknown device' }
  return quarantined ? unlisted : null
}

function nameAndProvider({ device, provider }: MappedRecord): { name: string; provider: ProviderName } {
  return { name: device, provider }
}

function newStep(): Step {
  return { closed: [], writes: new Map() }
}
