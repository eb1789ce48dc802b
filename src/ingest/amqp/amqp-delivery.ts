// amqp-delivery.ts: what RabbitMQ delivers, as a message for the intake.
//
// Topic from the routing key; user properties of MQTT 5 are headers with text; the time when RabbitMQ got the
// message is the header that its timestamp interceptor adds. The property `timestamp` is not used: it has
// whole seconds, and a publisher can set it.
//
// A message that is too large becomes a dead letter and is acknowledged, or it would come again without end.

import type { ConsumeMessage } from 'amqplib'
import { quote } from '../../std/quote.ts'
import type { UserProperties } from '../../domain/message.ts'
import { refuseOversized } from '../message-sources/source-message.ts'
import type { SourceMessage } from '../message-sources/types.ts'
import type { TopicTranslation } from './topic-translation.ts'

export const storedAtHeader = 'timestamp_in_ms'
/** Of a message that was distributed: it had been delivered before that. */
export const redeliveredHeader = 'x-gateway-redelivered'
/** Of a message that was distributed or parked: its routing key before that. */
export const routingKeyHeader = 'x-gateway-routing-key'

/** Headers of RabbitMQ with text, which no device has set. */
const ownHeaders =
  /^(x-(first|last)-death-|x-routed-by$|x-reply-to-topic$|x-correlation-id$|x-gateway-|x-shovelled|x-received-from$)/

/** Fills `into`, which is used again, and returns it. */
export function readDelivery(
  { fields, properties, content }: ConsumeMessage,
  into: SourceMessage,
  { topicOf, messageBytesMax: bytesMax }: { topicOf: TopicTranslation['topicOf']; messageBytesMax: number },
): SourceMessage {
  const headers: Record<string, unknown> | undefined = properties.headers
  const moved = headers?.[routingKeyHeader]
  into.topic = topicOf(typeof moved === 'string' ? moved : fields.routingKey)
  into.bytes = content
  // It is stored in a queue and wants an acknowledgement, also where the device published with QoS 0.
  into.qos = 1
  into.redelivered = fields.redelivered || headers?.[redeliveredHeader] === true
  into.storedAt = timeOf(headers?.[storedAtHeader])
  into.userProperties = headers === undefined ? null : userPropertiesOf(headers)
  into.refusal = null
  if (content.length > bytesMax)
    refuseOversized(into, { size: content.length, option: 'max_message_bytes', bytesMax })
  else if (/[#+\0]/.test(into.topic) || into.topic === '') refuseTopic(into)
  return into
}

function timeOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}

function userPropertiesOf(headers: Record<string, unknown>): UserProperties | null {
  let user: Record<string, string> | null = null
  for (const name in headers) {
    const value = headers[name]
    if (typeof value !== 'string' || ownHeaders.test(name)) continue
    // No prototype: a name such as `__proto__` is a name.
    user ??= Object.create(null) as Record<string, string>
    user[name] = value
  }
  return user
}

/** No client of MQTT can publish it; one of AMQP can. */
function refuseTopic(into: SourceMessage): void {
  const why =
    into.topic === ''
      ? 'is empty'
      : `has ${into.topic.includes('\0') ? 'the character NUL' : 'a wildcard ("#" or "+")'}`
  into.refusal = {
    reason: 'BAD_TOPIC',
    detail: `RabbitMQ delivered a message with the topic ${quote(into.topic, 100)}, which ${why}.`,
  }
}
