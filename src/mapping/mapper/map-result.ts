// map-result.ts: makes the results of messages without a payload.

import type { Message } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { messageKeyOf } from '../identity.ts'
import type { QuarantineReason } from '../reasons.ts'
import type { MapResult, Rejection } from '../types.ts'
import type { CompiledSource } from './compiled-source.ts'

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
  return {
    kind: 'unmappable',
    source: source?.name ?? null,
    device: entry?.device ?? null,
    reason,
    detail,
    windowKey: messageKeyOf(message),
  }
}

/** The result of a message whose record was rejected. To ignore or quarantine it needs source and device. */
export function rejected(
  rejection: Rejection,
  message: Message,
  source: CompiledSource | null,
  entry: DeviceEntry | null,
): MapResult {
  switch (rejection.kind) {
    case 'ignored':
      return source === null
        ? unmappable(message, source, entry, 'NO_SOURCE', rejection.reason)
        : ignored(source, rejection.reason)
    case 'quarantined':
      return source === null || entry === null
        ? unmappable(message, source, entry, rejection.reason, rejection.detail)
        : quarantined(message, source, entry, rejection)
    case 'refused':
    default:
      return unmappable(message, source, entry, rejection.reason, rejection.detail)
  }
}

export function notAnObject({ each }: CompiledSource, value: unknown): string {
  const found = Array.isArray(value) ? 'a list' : value === undefined ? 'nothing' : 'a single value'
  return each
    ? `What \`each\` selects is ${found}, not an object with fields.`
    : `The message is ${found}, not an object with fields.`
}
