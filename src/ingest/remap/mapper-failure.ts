// mapper-failure.ts: the result of a message for which the mapper threw. That is a fault of the gateway. The
// device would send the message again without end, so it is kept as a dead letter, like each message that
// cannot be mapped.

import { hash } from 'node:crypto'
import { messageOf } from '../../std/gateway-error.ts'
import type { Message } from '../../domain/message.ts'
import type { MapResult } from '../../mapping/mapping.ts'
import type { MessageRefusal } from '../types.ts'

export function mapperFailed(message: Message, error: unknown): MapResult {
  return {
    kind: 'unmappable',
    source: null,
    device: null,
    reason: 'MAPPER_FAILED',
    detail: `The mapping threw: ${messageOf(error)}. This is a fault of the gateway; please report it.`,
    windowKey: keyOf(message),
  }
}

/** A message that its message source could not read as a whole or as valid. It is of no listed device. */
export function refusedMessage(message: Message, { reason, detail }: MessageRefusal): MapResult {
  const windowKey = keyOf(message)
  return { kind: 'unmappable', source: null, device: null, reason, detail, windowKey, unlisted: true }
}

/** The same sender, topic and bytes give the same key. */
function keyOf({ sender, topic, bytes }: Message): string {
  const head = Buffer.from(`mapper failed ${JSON.stringify([sender.clientId, sender.userName, topic])}\n`)
  return hash('sha256', Buffer.concat([head, bytes])).slice(0, 32)
}
