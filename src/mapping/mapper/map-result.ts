// map-result.ts: what becomes of a message, in words that the intake acts on.

import type { ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import type { DuplicateRule, MappedPayload } from '../../domain/payload.ts'
import { quote } from '../../std/quote.ts'
import type { QuarantineReason } from '../reasons.ts'
import { messageKeyOf } from '../identity.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { CompiledSource } from './record-mapper.ts'
import type { StateWrite } from '../state/state-changes.ts'

/** State that the decoding of a message changed: to be committed with it, whatever becomes of it. */
type Beside = { writes?: readonly StateWrite[] | undefined; rebirth?: Rebirth | undefined }

/** Whose a record is. */
type Owned = { readonly entry: Pick<DeviceEntry, 'device' | 'provider'> }

/** A Sparkplug node that must say anew what its metrics are. */
export type Rebirth = { group: string; node: string; topic: string }

export type MapResult = Beside &
  (
    | { kind: 'payloads'; source: string; payloads: readonly MappedPayload[] }
    /** Deliberately nothing: a condition did not hold. `reason` is one of a bounded set of texts. */
    | { kind: 'ignored'; source: string; reason: string }
    /** It waits in memory once apply() was called; which must not be done for a copy. */
    | {
        kind: 'part'
        source: string
        windowKey: string
        duplicateRule: DuplicateRule
        records: readonly Owned[]
      }
    /** To be kept whole until its expression was evaluated: see mapDecoded(). */
    | { kind: 'deferred'; source: string; windowKey: string }
    /** To be kept whole until the device is listed, or a person has looked at its clock. */
    | {
        kind: 'quarantined'
        source: string
        provider: ProviderName
        device: string
        reason: QuarantineReason
        detail: string
        windowKey: string
      }
    /**
     * It becomes a dead letter. `reason` is a stable upper-case word (`NO_SOURCE`, `NOT_JSON`, ...), `detail`
     * a sentence. `windowKey` names this very message (client, topic, bytes), so that a resend with DUP is a
     * copy.
     */
    | {
        kind: 'unmappable'
        source: string | null
        device: string | null
        reason: string
        detail: string
        windowKey: string
      }
  )

export function ignored(source: CompiledSource, reason: string): MapResult {
  return { kind: 'ignored', source: source.name, reason }
}

export function unlisted({ device }: DeviceEntry): { reason: QuarantineReason; detail: string } {
  return { reason: 'UNKNOWN_DEVICE', detail: `The device ${quote(device, 80)} is not in the device table.` }
}

export function quarantined(
  message: Message,
  source: CompiledSource,
  { device, provider }: DeviceEntry,
  { reason, detail }: { reason: QuarantineReason; detail: string },
): MapResult {
  const windowKey = messageKeyOf(message)
  return { kind: 'quarantined', source: source.name, provider, device, reason, detail, windowKey }
}

export function unmappable(
  message: Message,
  source: CompiledSource | null,
  entry: DeviceEntry | null,
  reason: string,
  detail: string,
): MapResult {
  const windowKey = messageKeyOf(message)
  return {
    kind: 'unmappable',
    source: source?.name ?? null,
    device: entry?.device ?? null,
    reason,
    detail,
    windowKey,
  }
}

export function notAnObject({ each }: CompiledSource, value: unknown): string {
  const found = Array.isArray(value) ? 'a list' : value === undefined ? 'nothing' : 'a single value'
  return each
    ? `What \`each\` selects is ${found}, not an object with fields.`
    : `The message is ${found}, not an object with fields.`
}
