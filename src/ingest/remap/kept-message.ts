// kept-message.ts: converts a message to a kept message or a dead letter, and back.

import { hash } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import { devicesOfDeadLetterMax, type DeadLetter, type DeadLetterStore } from '../../domain/dead-letter.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { FilledStore } from '../../domain/kept-store.ts'
import type { Envelope, KeptMessage, Message, RecordMark } from '../../domain/message.ts'
import type { KeptResult, MapResult, QuarantineReason } from '../../mapping/mapping.ts'

/** Messages kept for this reason are released once their device is listed. */
export const unknownDevice = 'UNKNOWN_DEVICE'

/** The reason of a kept message whose device time was ahead of our time. */
export const future: QuarantineReason = 'FUTURE'

/** The reason of one whose device time was far behind ours. */
export const past: QuarantineReason = 'PAST'

/** The message as it arrived. */
export function messageFrom(envelope: Envelope): Message {
  const { topic, bytes, qos, retain, dup, arrivedAt, arrival } = envelope
  const { clientId, userName, certificateName, identity = null, address, from, stored } = envelope
  const { userProperties, properties, records } = envelope
  return {
    topic,
    bytes: Buffer.from(bytes, 'base64'),
    qos,
    retain,
    dup,
    sender: { clientId, userName, certificateName, identity, ...(address && { address }) },
    arrivedAt,
    ...(arrival && { arrival }),
    ...(from && { from }),
    ...(userProperties && { userProperties }),
    ...(properties && { properties }),
    ...(stored && { stored }),
    ...(records && { records }),
  }
}

type Unmappable = Extract<KeptResult, { kind: 'unmappable' }>

type Refusal = {
  source: string | null
  device: string | null
  devices?: readonly string[]
  reason: string
  detail: string
  records?: readonly RecordMark[]
}

/** Where the message of a result is kept whole, and for which device; empty where it is not. */
export function storesOf(result: MapResult): readonly { store: FilledStore; device: string | null }[] {
  return keptOf(result).map((one) => ({ store: storeOf(one), device: one.device }))
}

function storeOf(result: KeptResult): FilledStore {
  return result.kind === 'unmappable' ? unmappedStoreOf(result) : quarantineOf(result.reason)
}

/** The store of the dead letter. */
export function unmappedStoreOf({
  unlisted,
  isCopy,
}: Pick<Unmappable, 'unlisted' | 'isCopy'>): DeadLetterStore {
  if (isCopy === true) return 'part_dead_letters'
  return unlisted === true ? 'unlisted_dead_letters' : 'dead_letters'
}

/**
 * The key in the dedup window of a message with a device time that is kept, or of some of its records: it may
 * come again under another packet identifier.
 */
export function keptKeyOf({ windowKey, records = [] }: Pick<KeptResult, 'windowKey' | 'records'>): string {
  const marks = records.map(({ index, hash: of }) => `#${index}${of}`).join('')
  return hash('sha256', `kept ${windowKey}${marks}`, 'hex').slice(0, 32)
}

/** What of the message is kept: all of it, or some of its records. */
export function keptOf(result: MapResult): readonly KeptResult[] {
  const { kind, rest = [] } = result
  return kind === 'unmappable' || kind === 'quarantined' ? [result, ...rest] : rest
}

/** It is stored nowhere while a store for it is full. */
export function isKeptWhole({ kind, rest }: MapResult): boolean {
  return rest !== undefined || kind === 'unmappable' || kind === 'quarantined'
}

function quarantineOf(reason: string): 'quarantine' | 'clock' {
  return reason === unknownDevice ? 'quarantine' : 'clock'
}

/** Where the dead letter of a message goes that leaves the quarantine as one. */
export function deadLetterStoreOf({ reason }: Pick<KeptMessage, 'reason'>): DeadLetterStore {
  return quarantineOf(reason) === 'clock' ? 'dead_letters' : 'unlisted_dead_letters'
}

export function quarantineFor(
  refusal: Refusal & { provider: ProviderName },
  envelope: Envelope,
): KeptMessage {
  const { provider, device, devices, reason, detail } = refusal
  const kept = { provider, device, reason, detail, envelope: envelopeFor(refusal, envelope) }
  return { shelf: `${quarantineOf(reason)}:${provider}`, ...kept, ...(devices && { devices }) }
}

/** Where a message is kept that must not overtake earlier ones of its device, which are being released. */
export function keptBehind(
  { provider, device }: { provider: ProviderName; device: string },
  envelope: Envelope,
): KeptMessage {
  const detail = 'It waits behind earlier messages of the device, which are being released.'
  const { source } = envelope
  return quarantineFor({ source, provider, device, reason: unknownDevice, detail }, envelope)
}

/** The dead letter of a message that cannot be mapped, or that a person dropped. */
export function deadLetterFor(
  refusal: Refusal & { store: DeadLetterStore },
  envelope: Envelope,
  at: EpochMs,
): DeadLetter {
  const { device, devices = [], reason, detail, store } = refusal
  const moreDevices = devices.length - devicesOfDeadLetterMax
  return {
    stage: 'mapping',
    at,
    reason,
    detail,
    provider: null,
    device: devices.length > 1 ? null : device,
    ...(devices.length > 0 && { devices: devices.slice(0, devicesOfDeadLetterMax) }),
    ...(moreDevices > 0 && { moreDevices }),
    envelope: envelopeFor(refusal, envelope),
    payload: null,
    payloadId: null,
    batchId: null,
    requestId: null,
    failure: null,
    store,
  }
}

/** Where no source takes the message now, it keeps the name of its former one. */
function envelopeFor(
  { source, records: some }: Pick<Refusal, 'source' | 'records'>,
  envelope: Envelope,
): Envelope {
  const records = some ?? envelope.records
  if ((source === null || source === envelope.source) && records === envelope.records) return envelope
  return { ...envelope, source: source ?? envelope.source, ...(records && { records }) }
}
