// publish-handler.ts: from a PUBLISH to the intake, and its acknowledgement back. Both parsers, the fast path
// and aedes, fill the same message and call `publish`: its checks are made once, and no message allocates an
// object.
//
// aedes writes PUBACK before it persists or publishes, so the durable write must happen in authorizePublish,
// its only hook before the ack. The callback of a message that was taken in is never called: aedes would
// write the ack with four small writes and an immediate, and then publish the message to no subscriber. The
// gate writes PUBACK and PUBREC itself, once per socket and commit; aedes handles PUBREL and everything else.
//
// [MQTT-3.3.5-2] leaves only "ack or close": a message that can never be taken closes the connection; one
// that cannot be taken now has its ack held. A failed write closes the connection, so that the device sends
// the message again.

import type { Client } from 'aedes'
import type { GatewayError } from '../../std/gateway-error.ts'
import { propertiesLength } from '../../domain/message.ts'
import type { Intake } from '../intake/intake.ts'
import type { ReceivedMessage } from '../types.ts'
import { createAckSlots, puback, pubrec, type AckHead } from './gate/acks/ack-writer.ts'
import type { Done, PublishPacket } from './aedes-internals.ts'
import type { Clients } from './clients/clients.ts'
import type { Gate } from './gate/gate.ts'
import type { PublishRules } from './publish-rules/publish-rules.ts'
import { reasonCode } from './version5/reason-codes.ts'
import { isBridgeState, topicProblem, type TopicLimits } from './topic-rules.ts'

export type PublishHandler = {
  /** Filled by a parser before it calls `publish`; the sender is added here, the arrival by the intake. */
  readonly message: ReceivedMessage
  /** Takes `message`, which arrived at `gate`. */
  publish(gate: Gate, messageId: number): void
  /** For aedes: the messages that its parser read. */
  authorizePublish(client: Client | null, packet: PublishPacket, done: Done): void
  /** Messages that were acknowledged to a connected client. */
  acked(): number
}

type Deps = {
  intake: Pick<Intake, 'accept'>
  clients: Pick<Clients, 'willCame'>
  rules: Pick<PublishRules, 'violationOf' | 'refused'>
  gateOf: (client: Client) => Gate | undefined
  stopping: () => boolean
}

/** Why the state of a bridge is ignored. */
const bridgeState = 'bridge_state'

export function createPublishHandler(
  { intake, clients, rules, gateOf, stopping }: Deps,
  { topicLimits, onViolation }: { topicLimits: TopicLimits; onViolation: 'drop' | 'close' },
): PublishHandler {
  const slots = createAckSlots(onAck)
  const message: ReceivedMessage = {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 0,
    retain: false,
    will: false,
    violation: null,
    dup: false,
    sender: { clientId: '', userName: null, certificateName: null, identity: null },
    arrivedAt: 0,
    serial: 0,
    link: null,
    messageId: 0,
    ordinal: 0,
  }
  let acked = 0
  return { message, publish, authorizePublish, acked: () => acked }

  function publish(gate: Gate, messageId: number): void {
    const { sender } = gate
    if (sender === null) {
      gate.drop('publish_before_connect')
      return
    }
    const problem = topicProblem(message.topic, topicLimits)
    const isNotice = problem !== null && isBridgeState(message.topic, problem)
    if (problem !== null && !isNotice) {
      gate.drop('bad_topic', `It published to a topic that ${problem}.`)
      return
    }
    gate.connection.budget?.count(message.topic.length + message.bytes.length + propertiesLength(message))
    const violation = isNotice ? null : rules.violationOf(gate, sender, message.topic)
    if (violation !== null) {
      const detail = rules.refused(gate, sender, message.topic, violation)
      if (onViolation === 'close') {
        gate.drop('publish_refused', detail)
        return
      }
    }
    message.violation = isNotice ? bridgeState : violation
    // 3.1.1 has no such answer.
    const code = violation !== null && gate.version5 !== null ? reasonCode.notAuthorized : reasonCode.success
    message.isRefused = code !== reasonCode.success
    // Nothing is stored for subscribers, so RETAIN says nothing about the message.
    message.retain = false
    message.sender = sender
    message.link = gate.link
    message.messageId = messageId
    if (message.qos === 0) {
      message.dup = false
      intake.accept(message, null)
      return
    }
    if (message.qos === 2 && !message.isRefused && gate.link?.session?.isFull(messageId)) {
      gate.drop('too_many_qos2')
      return
    }
    countInFlight(gate)
    intake.accept(message, slots.take(gate, message.qos === 1 ? puback : pubrec, messageId, code))
  }

  function countInFlight(gate: Gate): void {
    gate.countInFlight()
    if (gate.link === null) return
    message.ordinal = gate.link.received
    gate.link.received += 1
  }

  function authorizePublish(client: Client | null, packet: PublishPacket, done: Done): void {
    const gate = client === null ? undefined : gateOf(client)
    if (client === null || !gate?.sender) {
      done(new Error('a message without a sender'))
      return
    }
    message.topic = packet.topic
    message.bytes = typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload
    message.dup = packet.dup
    message.qos = client.closed ? 0 : packet.qos
    if (client.closed) {
      // A will. It is not sent again: like QoS 0, it is kept if that is possible now. When the gateway closes
      // the connection, the client has not died, and the spool may be closed by then.
      clients.willCame(gate.sender)
      message.will = true
      if (!stopping()) publish(gate, 0)
      message.will = false
      done(null)
      return
    }
    // What followed DISCONNECT or a fault in the same portion.
    if (gate.closed) return
    publish(gate, packet.messageId ?? 0)
  }

  function onAck(
    gate: Gate,
    head: AckHead,
    messageId: number,
    code: number,
    fault: GatewayError | null,
  ): void {
    if (fault === null) {
      if (!gate.closed) {
        acked += 1
        // A client that is gone sends the message again, with DUP.
        if (gate.link !== null && !gate.halfClosed) gate.link.acked += 1
      }
      gate.queueAck(head, messageId, code)
      return
    }
    if (head === pubrec) gate.link?.session?.forget(messageId)
    gate.drop(fault.code === 'HELD_FULL' ? 'held_full' : 'spool_write_failed')
  }
}
