// message-reader.ts: a message of NATS as the intake takes it. The object is used again.
//
// A topic that MQTT does not allow and a message above the limit become dead letters: JetStream would deliver
// them again without end. Headers of NATS are user properties, except those of a message that came over MQTT
// (Nmqtt-Pub), which has none of its own.

import type { Msg } from '@nats-io/transport-node'
import { quote } from '../../std/quote.ts'
import type { UserProperties } from '../../domain/message.ts'
import { emptyMessage, refuseOversized } from '../message-sources/source-message.ts'
import type { SourceMessage } from '../message-sources/types.ts'
import type { MessageRefusal } from '../types.ts'
import type { Delivery } from './delivered-message.ts'
import type { MappingWatch } from './stream-setup/mapping-check.ts'
import { topicOf, topicStart, type PartitionLayout } from './nats-subjects.ts'
import { mqttStream, type JetStreamOptions } from './types.ts'

type Readable = Pick<Msg, 'subject' | 'data' | 'headers'>
type Options = PartitionLayout & Pick<JetStreamOptions, 'messageBytesMax'>

/** Headers of NATS itself. */
const ownHeader = /^(Nats-|Nmqtt-)/i

export function createMessageReader(
  options: Options,
  partition: number,
  { refused, watch }: { refused: (refusal: MessageRefusal) => void; watch: MappingWatch },
) {
  const { messageBytesMax: bytesMax } = options
  const start = topicStart(options, partition)
  const hasHeaders = options.stream !== mqttStream
  const message = emptyMessage()

  return function read(from: Readable, { deliveries, storedAtMs, streamSeq }: Delivery): SourceMessage {
    const { data } = from
    message.topic = topicOf(from.subject, start)
    message.bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
    message.redelivered = deliveries > 1
    message.storedAt = storedAtMs
    message.storedSerial = streamSeq
    message.userProperties = hasHeaders ? propertiesOf(from) : null
    message.refusal = topicRefusal(message.topic)
    watch(message.topic)
    if (data.length > bytesMax)
      refuseOversized(message, { size: data.length, option: 'max_message_bytes', bytesMax })
    if (message.refusal !== null) refused(message.refusal)
    return message
  }
}

function propertiesOf({ headers }: Readable): UserProperties | null {
  if (headers === undefined) return null
  const properties: Record<string, string> = Object.create(null) as Record<string, string>
  let isEmpty = true
  for (const key of headers.keys()) {
    if (ownHeader.test(key)) continue
    properties[key] = headers.get(key)
    isEmpty = false
  }
  return isEmpty ? null : properties
}

/** What a topic name may not have [MQTT-3.3.2-2], [MQTT-1.5.4-2], [MQTT-4.7.3-1]. */
function topicRefusal(topic: string): MessageRefusal | null {
  const why = topicFault(topic)
  if (why === null) return null
  return {
    reason: 'BAD_TOPIC',
    detail: `NATS has a message on the topic ${quote(topic, 100)}, which ${why}.`,
  }
}

function topicFault(topic: string): string | null {
  if (topic === '') return 'is empty'
  for (let at = 0; at < topic.length; at += 1) {
    const code = topic.charCodeAt(at)
    if (code === 0x23 || code === 0x2b) return 'has a wildcard ("#" or "+")'
    if (code === 0) return 'has the character NUL'
    if (code === 0xfffd) return 'is not UTF-8'
  }
  return null
}
