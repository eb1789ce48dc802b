// kept-message.ts: messages between the road and the places where they are kept whole.

import type { EpochMs } from '../std/clock.ts'
import type { DeadLetter } from '../domain/deadletter.ts'
import type { Envelope, KeptMessage, Message } from '../domain/message.ts'
import type { MapResult } from '../mapping/mapping.ts'

/** The message as it came. */
export function messageOf(envelope: Envelope): Message {
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

/** Where a message goes that must wait. */
export function keptFor(
  result: Extract<MapResult, { kind: 'quarantined' | 'deferred' }>,
  envelope: Envelope,
): KeptMessage {
  const { source } = result
  if (result.kind === 'deferred')
    return {
      shelf: `deferred:${source}`,
      provider: null,
      device: null,
      reason: 'EXPRESSION',
      detail: 'It waits for its expression to be evaluated.',
      envelope: { ...envelope, source },
    }
  const { provider, device, reason, detail } = result
  return {
    shelf: `quarantine:${provider}`,
    provider,
    device,
    reason,
    detail,
    envelope: { ...envelope, source },
  }
}

/** The dead letter of a message that cannot be mapped. */
export function letterFor(
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
    envelope: { ...envelope, source: source ?? envelope.source },
    payload: null,
    payloadId: null,
    batchId: null,
    requestId: null,
    failure: null,
  }
}
