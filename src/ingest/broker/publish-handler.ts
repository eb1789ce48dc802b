// publish-handler.ts: from a PUBLISH to the intake, and its acknowledgement back. The reader fills one
// message for all and calls `publish`: no message allocates an object. The gate writes PUBACK and PUBREC,
// once per socket and commit.
//
// [MQTT-3.3.5-2] leaves only "ack or close": a message that can never be taken closes the connection; one
// that cannot be taken now has its ack held. A failed write closes the connection, so that the device sends
// the message again.

import type { Clock } from '../../std/clock.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import { propertiesLength, type Sender } from '../../domain/message.ts'
import type { Ack } from '../../spool/spool.ts'
import type { Intake } from '../intake/intake.ts'
import { isUnreleased } from '../intake/unreleased-messages.ts'
import type { ReceivedMessage } from '../types.ts'
import { createAckSlots, puback, pubrec, type AckHead } from './gate/acks/ack-writer.ts'
import type { WillPacket } from './aedes-port.ts'
import type { Clients } from './clients/clients.ts'
import type { Gate } from './gate/gate.ts'
import type { PublishRules } from './publish-rules/publish-rules.ts'
import { reasonCode } from './version5/reason-codes.ts'
import type { DelayedWills, Will } from './version5/delayed-wills.ts'
import { isBridgeState, topicProblem, type TopicLimits } from './topic-rules.ts'

export type PublishHandler = {
  /** Filled by the reader before it calls `publish`; the sender is added here, the arrival by the intake. */
  readonly message: ReceivedMessage
  /** Takes `message`, which arrived at `gate`. */
  publish(gate: Gate, messageId: number): void
  /** Takes the will of a client whose connection has ended. */
  takeWill(will: Will): void
  /** Its connection has ended, and it has a will. */
  willCame(gate: Gate, will: Pick<WillPacket, 'topic' | 'payload' | 'retain'>): void
  /** Messages that were acknowledged to a connected client. */
  acked(): number
  /** Messages that came with the retain flag. */
  retained(): number
}

type Deps = {
  intake: Pick<Intake, 'accept'>
  clients: Pick<Clients, 'willCame' | 'isBack'>
  wills: Pick<DelayedWills, 'wait'>
  rules: Pick<PublishRules, 'violationOf' | 'refused'>
  stopping: () => boolean
  clock: Pick<Clock, 'monotonic'>
}

/** A connection as far as its rules go; that of a will may be gone. */
type Publisher = Pick<Gate, 'address' | 'decisions' | 'drop'> & {
  readonly connection: Pick<Gate['connection'], 'budget'>
}

/** Why the state of a bridge is ignored. */
const bridgeState = 'bridge_state'

export function createPublishHandler(
  { intake, clients, wills, rules, stopping, clock }: Deps,
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
    // Of MQTT 5. They are here from the start, so that the object keeps its shape.
    userProperties: null,
    properties: null,
  }
  let acked = 0
  let retained = 0
  return {
    message,
    publish,
    takeWill,
    willCame,
    acked: () => acked,
    retained: () => retained,
  }

  function publish(gate: Gate, messageId: number): void {
    const { sender } = gate
    if (sender === null) {
      gate.drop('publish_before_connect')
      return
    }
    if (gate.use !== null) gate.use.messages += 1
    if (gate.traffic !== null) gate.traffic.messages += 1
    message.sender = sender
    message.link = gate.link
    message.messageId = messageId
    if (!mayPublish(gate, sender)) return
    // 3.1.1 has no such answer. What comes again is not refused (`mayPublish`): its client would use the
    // identifier for another message, which would seem to be this one.
    const isViolation = message.violation !== null && message.violation !== bridgeState
    message.isRefused = isViolation && gate.version5 !== null && !isUnreleased(message)
    const code = message.isRefused ? reasonCode.notAuthorized : reasonCode.success
    if (message.qos === 0) {
      message.dup = false
      accept(gate, null)
      return
    }
    if (message.qos === 2 && !message.isRefused && gate.link?.session?.isFull(messageId)) {
      gate.drop('too_many_qos2')
      return
    }
    countInFlight(gate)
    accept(gate, slots.take(gate, message.qos === 1 ? puback : pubrec, messageId, code))
  }

  /** The client pays for the time of its message. */
  function accept({ connection }: Gate, ack: Ack | null): void {
    const startedAtMs = clock.monotonic()
    intake.accept(message, ack)
    connection.budget?.countTime(clock.monotonic() - startedAtMs)
  }

  /** By the rules for topics; notes at `message` what they say. */
  function mayPublish(publisher: Publisher, sender: Sender): boolean {
    const problem = topicProblem(message.topic, topicLimits)
    const isNotice = problem !== null && isBridgeState(message.topic, problem)
    if (problem !== null && !isNotice) {
      publisher.drop('bad_topic', `It published to a topic that ${problem}.`)
      return false
    }
    publisher.connection.budget?.count(
      message.topic.length + message.bytes.length + propertiesLength(message),
    )
    const violation = isNotice ? null : rules.violationOf(publisher, sender, message.topic)
    // A message of QoS 2 that was taken before the rule was added only needs its acknowledgement, without
    // which its client sends it again on each connection.
    if (violation !== null && !isUnreleased(message)) {
      const detail = rules.refused(publisher, sender, message.topic, violation)
      if (onViolation === 'close') {
        publisher.drop('publish_refused', detail)
        return false
      }
    }
    message.violation = isNotice ? bridgeState : violation
    // Nothing is stored for subscribers, so RETAIN says nothing about the message.
    if (message.retain) retained += 1
    message.retain = false
    return true
  }

  function countInFlight(gate: Gate): void {
    gate.countInFlight()
    if (gate.link === null) return
    message.ordinal = gate.link.received
    gate.link.received += 1
  }

  function willCame(
    gate: Gate,
    { topic, payload, retain }: Pick<WillPacket, 'topic' | 'payload' | 'retain'>,
  ): void {
    const { sender, address, version5, disconnect } = gate
    // When the gateway closes the connection, the client has not died, and the spool may be closed by then.
    if (sender === null || disconnect === 'deletes will' || stopping()) return
    const request = version5?.request.will ?? null
    const { userProperties = null, properties = null } = request ?? {}
    const bytes = Buffer.from(payload)
    const will: Will = { topic, bytes, retain, sender, address, userProperties, properties }
    const delayMs = Math.min(request?.delayMs ?? 0, version5?.sessionExpiryMs ?? 0)
    if (version5 !== null) version5.counts.propertiesSkipped += request?.skipped ?? 0
    // [MQTT-3.1.2-8]: a session that ended before, by a clean start, leaves nothing to wait for.
    if (delayMs === 0 || gate.link?.session?.ended !== false) takeWill(will)
    // [MQTT-3.1.3-9]
    else if (!clients.isBack(sender)) wills.wait(will, delayMs)
  }

  /** It is not sent again: like QoS 0, it is kept if that is possible now. */
  function takeWill({ topic, bytes, retain, sender, address, userProperties, properties }: Will): void {
    clients.willCame(sender)
    Object.assign(message, { topic, bytes, retain, sender, userProperties, properties })
    Object.assign(message, { qos: 0, dup: false, will: true, link: null, messageId: 0, isRefused: false })
    if (mayPublish({ address, decisions: null, connection: { budget: null }, drop: () => {} }, sender))
      intake.accept(message, null)
    Object.assign(message, { will: false, userProperties: null, properties: null })
  }

  function onAck(
    gate: Gate,
    head: AckHead,
    messageId: number,
    code: number,
    fault: GatewayError | null,
  ): void {
    if (fault === null) {
      if (gate.answers) {
        acked += 1
        // A client that is gone sends the message again, with DUP.
        if (gate.link !== null) {
          gate.link.ackedAtMs = clock.monotonic()
          if (!gate.halfClosed) gate.link.acked += 1
        }
      }
      gate.queueAck(head, messageId, code)
      return
    }
    if (head === pubrec) gate.link?.session?.forget(messageId)
    gate.drop(fault.code === 'HELD_FULL' ? 'held_full' : 'spool_write_failed')
  }
}
