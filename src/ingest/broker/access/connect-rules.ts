// connect-rules.ts: the rules for what a CONNECT says. packet-rules.ts has checked its layout.

import type { ConnectPacket } from '../aedes-internals.ts'
import type { ClientDropReason, RefusalReason } from '../client-faults.ts'
import { isBridgeState, topicProblem, type TopicLimits } from '../topic-rules.ts'

/** A refused CONNECT: the return code of CONNACK (MQTT 3.2.2.3) and why. */
export type Refusal = { returnCode: 1 | 2 | 3 | 4 | 5; reason: RefusalReason }

export function refusalOf(packet: ConnectPacket, clientIdBytesMax: number): Refusal | null {
  const { protocolVersion, clientId, clean } = packet
  if (protocolVersion === 5) return { returnCode: 1, reason: 'unsupported_version' }
  // [MQTT-3.1.3-8]: without an id there is no session to keep.
  if (clientId === '' && clean === false) return { returnCode: 2, reason: 'no_client_id' }
  if (Buffer.byteLength(clientId) > clientIdBytesMax) return { returnCode: 2, reason: 'client_id_too_long' }
  return null
}

/** A CONNECT that the protocol answers by closing the connection only. */
export function connectFault(
  { protocolVersion, clientId, will, username }: ConnectPacket,
  topicLimits: TopicLimits,
): { reason: ClientDropReason; detail?: string } | null {
  // Refused as such, with an answer.
  if (protocolVersion === 5) return null
  // [MQTT-1.5.3-2]
  if (clientId.includes('\0'))
    return { reason: 'bad_client_id', detail: 'Its client id contains a null character [MQTT-1.5.3-2].' }
  if (username?.includes('\0'))
    return { reason: 'bad_user_name', detail: 'Its user name contains a null character [MQTT-1.5.3-2].' }
  const problem = will === undefined ? null : topicProblem(will.topic, topicLimits)
  if (will !== undefined && isBridgeState(will.topic, problem)) return null
  return problem === null
    ? null
    : { reason: 'bad_will_topic', detail: `Its will has a topic that ${problem}.` }
}
