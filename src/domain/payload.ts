// payload.ts: one telemetry payload of the ingestion API, between mapping and delivery.
//
// A payload is text. The mapping writes its JSON once, the spool stores these bytes, and the batch body is
// made of them. Nothing parses or serialises it again, so a repeated submission sends the same bytes.

import type { EpochMs } from '../std/clock.ts'
import type { PayloadId, ProviderName } from './ids.ts'

/** Each payload's JSON starts with this, followed by the 36 characters of its payloadId and a quote. */
export const payloadHead = '{"payloadId":"'

/** Where the payloadId ends in a payload's JSON bytes. */
export const payloadIdEnd = payloadHead.length + 36

/**
 * When a second payload with the same `windowKey` is a duplicate:
 * `always`  the key is made of device, device time and content;
 * `resend`  there is no device time, so only a message with DUP is a duplicate.
 */
export type DuplicateRule = 'always' | 'resend'

/** A payload as the mapping gives it to the spool. */
export type MappedPayload = {
  provider: ProviderName
  device: string
  /** Null where the message has none. `signalTimestamp` is then the arrival time. */
  deviceTime: EpochMs | null
  payloadId: PayloadId
  /** 32 hexadecimal digits: the key of the dedup window. */
  windowKey: string
  duplicateRule: DuplicateRule
  /** The payload's JSON; starts with `payloadHead` and the payloadId. */
  json: string
  /** How often the service answered `failed`, of a payload that comes back from elsewhere. */
  attempts?: number
}

/** Reads the payloadId from a payload's JSON bytes without parsing them. */
export function payloadIdIn(bytes: Buffer, start: number): PayloadId {
  return bytes.toString('latin1', start + payloadHead.length, start + payloadIdEnd) as PayloadId
}

/** A value of a device that was left out of payloads, or sent although it is not plausible. */
export type WithheldValue = {
  source: string
  /** As it is counted: `speed`, the type of a signal, the name of an extra field. */
  field: string
  reason: string
  count: number
  /** Sent nevertheless, by `action: flag`. */
  isSent: boolean
  /** The last value that was out of bounds, in the unit of the payload; null for other reasons. */
  lastValue: number | null
}
