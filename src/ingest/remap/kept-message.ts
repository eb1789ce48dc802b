// kept-message.ts: messages between the road and the places where they are kept whole.

import type { EpochMs } from '../../std/clock.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Envelope, KeptMessage, Message } from '../../domain/message.ts'
import type { MapResult } from '../../mapping/mapping.ts'

/** Why a message is kept that goes by itself once its device is listed. All else waits for a person. */
export const unknownDevice = 'UNKNOWN_DEVICE'

/** The message as it came. */
export function messageFrom(envelope: Envelope): Message {
  const { topic, bytes, qos, retain, dup, clientId, userName, certificateName, arrivedAt } = envelope
  return {
    topic,
    bytes: Buffer.from(bytes, 'base64'),
    qos,
    retain,
    dup,
    sender: { clientId, userName, certificateName },
    arrivedAt,
  }
}

type About = {
  source: string | null
  provider: ProviderName
  device: string | null
  reason: string
  detail: string
}

/** Where a message goes that must wait. */
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
    envelope: takenBy(result.source, envelope),
  }
}

export function quarantineFor(
  { source, provider, device, reason, detail }: About,
  envelope: Envelope,
): KeptMessage {
  const kept = { provider, device, reason, detail, envelope: takenBy(source, envelope) }
  return { shelf: `quarantine:${provider}`, ...kept }
}

/** Where a message goes that must not overtake earlier ones of its device, which are on their way out. */
export function keptBehind(
  { provider, device }: { provider: ProviderName; device: string },
  envelope: Envelope,
): KeptMessage {
  const detail = 'Earlier messages of the device are being released; it stands behind them.'
  const { source } = envelope
  return quarantineFor({ source, provider, device, reason: unknownDevice, detail }, envelope)
}

/** The dead letter of a message that cannot be mapped, or that a person gave up. */
export function deadLetterFor(
  {
    source,
    device,
    reason,
    detail,
  }: Pick<DeadLetter, 'device' | 'reason' | 'detail'> & { source: string | null },
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
    envelope: takenBy(source, envelope),
    payload: null,
    payloadId: null,
    batchId: null,
    requestId: null,
    failure: null,
  }
}

/** It keeps the name of its source where none takes it now. */
function takenBy(source: string | null, envelope: Envelope): Envelope {
  return source === null || source === envelope.source ? envelope : { ...envelope, source }
}
