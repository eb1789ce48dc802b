// connect-rules.ts: what a CONNECT and a PUBLISH must be like, beyond what aedes checks by itself.

import type { Aedes } from 'aedes'
import { problemOfTopic, type TopicLimits } from './topic-rules.ts'

type ConnectPacket = Parameters<Aedes['preConnect']>[1]
type PublishPacket = Parameters<Aedes['authorizePublish']>[1]

/** A refused CONNECT: the return code of CONNACK (MQTT 3.2.2.3) and why. */
export type Refusal = { returnCode: 1 | 2 | 4 | 5; reason: string }

/** [MQTT-2.3.1-1]; and aedes' parser reads an identifier that is missing from the packet behind it. */
export function problemOfIdentifier({ topic, messageId, length }: PublishPacket): string | null {
  if (messageId === undefined || messageId < 1) return 'it published without a packet identifier'
  const headBytes = 2 + Buffer.byteLength(topic) + 2
  if (length === undefined || length < headBytes) return 'it published without a packet identifier'
  return null
}

export function refusalOf(packet: ConnectPacket, clientIdBytesMax: number): Refusal | null {
  const { protocolVersion, clientId, clean } = packet
  if (protocolVersion === 5)
    return { returnCode: 1, reason: 'it speaks MQTT 5; this version of the gateway speaks MQTT 3.1.1' }
  // [MQTT-3.1.3-8]: without an id there is no session to keep.
  if (clientId === '' && clean === false)
    return { returnCode: 2, reason: 'it gave no client id and wants a lasting session' }
  if (Buffer.byteLength(clientId) > clientIdBytesMax)
    return { returnCode: 2, reason: 'its client id is too long' }
  return null
}

/** A CONNECT that the protocol answers with nothing but closing the connection. */
export function problemOfConnect({ clientId, will }: ConnectPacket, topicLimits: TopicLimits): string | null {
  // [MQTT-1.5.3-2]
  if (clientId.includes('\0')) return 'its client id holds a null character'
  const problem = will === undefined ? null : problemOfTopic(will.topic, topicLimits)
  return problem === null ? null : `of its will: ${problem}`
}
