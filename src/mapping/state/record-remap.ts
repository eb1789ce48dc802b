// record-remap.ts: a record that was kept as a message (record-envelope.ts) is mapped once more, with the sources of
// today.

import type { Message } from '../../domain/message.ts'
import { messageKeyOf } from '../identity.ts'
import { damagedState, payloadIn, unlisted } from './record-closing.ts'
import { keptRecordIn } from './record-envelope.ts'
import { ownerParts, type DeviceRecord, type Refusal, type States, type StateSource } from './source-state.ts'
import type { MapResult } from '../types.ts'

const noSource: Refusal = {
  kind: 'refused',
  reason: 'NO_SOURCE',
  detail: 'No source or group of this name collects values.',
}

/** Null where the message is no kept record. Nothing is thinned or merged: it stands for itself. */
export function mapKept({ sources, groups }: States, message: Message): MapResult | null {
  const kept = keptRecordIn(message)
  if (kept === null) return null
  const { kind, name, owner, arrivedAt, record } = kept
  const group = kind === 'merged' ? groups.get(name) : undefined
  const half = group?.merger.join(record)
  const source = sources.get(kind === 'merged' ? (half?.source ?? '') : name)?.source
  const whose = half ? { name: half.device, provider: half.provider } : ownerParts(owner)
  if (group && !half) return refused(damagedState('The halves of a payload cannot be read.'), null)
  if (source === undefined) return refused(noSource, null)
  const entry = source.entryOf(whose.name, whose.provider)
  if (entry.ignored) return { kind: 'ignored', source: source.name, reason: 'unknown device' }
  if (entry.quarantined) return refused(unlisted, source)
  const found = half ?? source.read(entry, record, arrivedAt)
  if (!('kind' in found)) return sent(source, { entry, mapped: found })
  return found.kind === 'ignored'
    ? { kind: 'ignored', source: source.name, reason: found.reason }
    : refused(found, source)

  function refused(why: Refusal, known: StateSource | null): MapResult {
    const windowKey = messageKeyOf(message)
    const { reason, detail } = why
    if (why.kind === 'refused' || known === null)
      return {
        kind: 'unmappable',
        source: known?.name ?? null,
        device: whose.name,
        reason,
        detail,
        windowKey,
      }
    const { provider, device } = known.entryOf(whose.name, whose.provider)
    return { ...why, source: known.name, provider, device, windowKey }
  }

  function sent(known: StateSource, own: DeviceRecord): MapResult {
    const payload = payloadIn(known, own)
    return payload === null
      ? { kind: 'ignored', source: known.name, reason: 'privacy' }
      : { kind: 'payloads', source: known.name, payloads: [payload] }
  }
}
