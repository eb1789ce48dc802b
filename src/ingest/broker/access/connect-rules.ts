// connect-rules.ts: the rules for what a CONNECT says. packets/ has checked its layout.

import type { ClientDropReason, RefusalReason } from '../client-faults.ts'
import { connectRefusalOf, type RetainSetting } from '../version5/connect-properties.ts'
import type { ConnectPacket } from '../packets/connect-packet.ts'
import { isBridgeState, topicProblem, type TopicLimits } from '../topic-rules.ts'

/**
 * A refused CONNECT: the return code of CONNACK (MQTT 3.1.1, 3.2.2.3) and why. MQTT 5 has a code for each
 * reason.
 */
export type Refusal = { returnCode: 2 | 3 | 4 | 5; reason: RefusalReason }

export type ConnectRules = { clientIdBytesMax: number; retain: RetainSetting }

export function refusalOf(packet: ConnectPacket, { clientIdBytesMax, retain }: ConnectRules): Refusal | null {
  const { version, clientId, clean } = packet
  const isVersion5 = version === 5
  // [MQTT-3.1.3-8] of 3.1.1: without an id there is no session to keep. In MQTT 5 the client gets its id.
  if (clientId === '' && !clean && !isVersion5) return { returnCode: 2, reason: 'no_client_id' }
  if (Buffer.byteLength(clientId) > clientIdBytesMax) return { returnCode: 2, reason: 'client_id_too_long' }
  const reason = isVersion5 ? connectRefusalOf(packet, { retain }) : null
  return reason === null ? null : { returnCode: 5, reason }
}

/** A CONNECT that the protocol answers by closing the connection only. */
export function connectFault(
  { clientId, will, userName }: ConnectPacket,
  topicLimits: TopicLimits,
): { reason: ClientDropReason; detail?: string } | null {
  // Those of MQTT 5 are found with its layout.
  if (clientId.includes('\0'))
    return { reason: 'bad_client_id', detail: 'Its client id contains a null character [MQTT-1.5.3-2].' }
  if (userName?.includes('\0'))
    return { reason: 'bad_user_name', detail: 'Its user name contains a null character [MQTT-1.5.3-2].' }
  const problem = will === null ? null : topicProblem(will.topic, topicLimits)
  if (will !== null && isBridgeState(will.topic, problem)) return null
  return problem === null
    ? null
    : { reason: 'bad_will_topic', detail: `Its will has a topic that ${problem}.` }
}
