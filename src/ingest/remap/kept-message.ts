// kept-message.ts: converts a message to a kept message or a dead letter, and back.

import type { EpochMs } from '../../std/clock.ts'
import type { DeadLetter, DeadLetterStore } from '../../domain/dead-letter.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { KeptStore } from '../../domain/kept-store.ts'
import type { Envelope, KeptMessage, Message } from '../../domain/message.ts'
import type { MapResult, QuarantineReason } from '../../mapping/mapping.ts'

/** Messages kept for this reason are released once their device is listed. */
export const unknownDevice = 'UNKNOWN_DEVICE'

/** The reason of a kept message whose device time was ahead of our time. */
export const future: QuarantineReason = 'FUTURE'

/** The message as it arrived. */
export function messageFrom(envelope: Envelope): Message {
  const { topic, bytes, qos, retain, dup, arrivedAt, arrival } = envelope
  const { clientId, userName, certificateName, identity = null, address, from, stored } = envelope
  const { userProperties, properties } = envelope
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
  }
}

type Refusal = { source: string | null; device: string | null; reason: string; detail: string }

/** The store where the message of this result is kept whole; null where it is not. */
export function storeOf(result: MapResult): KeptStore | null {
  switch (result.kind) {
    case 'unmappable':
      return result.unlisted === true ? 'unlisted_dead_letters' : 'dead_letters'
    case 'quarantined':
      return quarantineOf(result.reason)
    case 'deferred':
      return 'deferred'
    case 'payloads':
    case 'ignored':
    case 'part':
    default:
      return null
  }
}

export function isKeptWhole({ kind }: MapResult): boolean {
  return kind === 'unmappable' || kind === 'quarantined' || kind === 'deferred'
}

function quarantineOf(reason: string): 'quarantine' | 'clock' {
  return reason === unknownDevice ? 'quarantine' : 'clock'
}

/** Where the dead letter of a message goes that leaves the quarantine as one. */
export function deadLetterStoreOf({ reason }: Pick<KeptMessage, 'reason'>): DeadLetterStore {
  return quarantineOf(reason) === 'clock' ? 'dead_letters' : 'unlisted_dead_letters'
}

/** Where a message that must wait is kept. */
export function keptMessageFor(
  result: Extract<MapResult, { kind: 'quarantined' | 'deferred' }>,
  envelope: Envelope,
): KeptMessage {
  if (result.kind === 'quarantined') return quarantineFor(result, envelope)
  return {
    shelf: `deferred:${result.source}`,
    provider: null,
    device: null,
    reason: 'EXPRESSION',
    detail: 'It waits for its expression to be evaluated.',
    envelope: withSource(result.source, envelope),
  }
}

export function quarantineFor(
  { source, provider, device, reason, detail }: Refusal & { provider: ProviderName },
  envelope: Envelope,
): KeptMessage {
  const kept = { provider, device, reason, detail, envelope: withSource(source, envelope) }
  return { shelf: `${quarantineOf(reason)}:${provider}`, ...kept }
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
  { source, device, reason, detail, store }: Refusal & { store: DeadLetterStore },
  envelope: Envelope,
  at: EpochMs,
): DeadLetter {
  return {
    stage: 'mapping',
    at,
    reason,
    detail,
    provider: null,
    device,
    envelope: withSource(source, envelope),
    payload: null,
    payloadId: null,
    batchId: null,
    requestId: null,
    failure: null,
    store,
  }
}

/** Where no source takes the message now, it keeps the name of its former one. */
function withSource(source: string | null, envelope: Envelope): Envelope {
  return source === null || source === envelope.source ? envelope : { ...envelope, source }
}
