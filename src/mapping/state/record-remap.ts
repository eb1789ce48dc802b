// record-remap.ts: maps a record that was kept as a message (record-envelope.ts) again, with the present
// sources.

import type { Message } from '../../domain/message.ts'
import { messageKeyOf } from '../identity.ts'
import { payloadOfClosed, unlisted, unreadable, type Refusal } from './record-closing.ts'
import { keptRecordIn } from './record-envelope.ts'
import { ownerParts, type DeviceRecord, type States, type StateSource } from './source-state.ts'
import type { MapResult } from '../types.ts'

const noSource: Refusal = {
  kind: 'refused',
  reason: 'NO_SOURCE',
  detail: 'No source or group with this name collects values.',
}

/** Null for a message that is not a kept record. The record is neither thinned nor merged. */
export function mapKept({ sources, groups }: States, message: Message): MapResult | null {
  const kept = keptRecordIn(message)
  if (kept === null) return null
  const { kind, name, owner, record } = kept
  const group = kind === 'merged' ? groups.get(name) : undefined
  const merged = group?.merger.join(record)
  const source = sources.get(kind === 'merged' ? (merged?.source ?? '') : name)?.source
  const { name: deviceName, provider: deviceProvider } = merged
    ? { name: merged.device, provider: merged.provider }
    : ownerParts(owner)
  if (group && !merged) return refused(unreadable, null)
  if (source === undefined) return refused(noSource, null)
  const entry = source.entryOf(deviceName, deviceProvider)
  if (entry.ignored) return { kind: 'ignored', source: source.name, reason: 'unknown device' }
  if (entry.quarantined) return refused(unlisted, source)
  const mapped = merged ?? source.read(entry, record, message)
  if (!('kind' in mapped)) return sent(source, { entry, mapped })
  return mapped.kind === 'ignored'
    ? { kind: 'ignored', source: source.name, reason: mapped.reason }
    : refused(mapped, source)

  function refused(refusal: Refusal, known: StateSource | null): MapResult {
    const windowKey = messageKeyOf(message)
    const { reason, detail } = refusal
    if (refusal.kind === 'refused' || known === null)
      return {
        kind: 'unmappable',
        source: known?.name ?? null,
        device: deviceName,
        reason,
        detail,
        windowKey,
      }
    const { provider, device } = known.entryOf(deviceName, deviceProvider)
    return { ...refusal, source: known.name, provider, device, windowKey }
  }

  function sent(known: StateSource, deviceRecord: DeviceRecord): MapResult {
    const payload = payloadOfClosed(known, deviceRecord)
    return payload === null
      ? { kind: 'ignored', source: known.name, reason: 'privacy' }
      : { kind: 'payloads', source: known.name, payloads: [payload] }
  }
}
