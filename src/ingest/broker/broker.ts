// broker.ts: aedes 1.2 as the way in for devices. It speaks MQTT; what becomes of a message is the intake's.
//
//   socket -> gate -> the straight way, or aedes' parser -> authorizePublish -> intake -> spool -> fsync -> ack -> gate -> socket
//
// aedes writes PUBACK before it persists or publishes, so the durable write must stand in authorizePublish, the
// only hook before the ack. Its callback is never called for a message that was taken in: it would have aedes
// write the ack with four small writes and an immediate, and then fan the message out to nobody. The gate
// writes PUBACK and PUBREC itself, once per socket and commit; aedes goes on with PUBREL and all the rest.
//
// [MQTT-3.3.5-2] leaves only "ack or close": what cannot be taken for good closes the connection, what cannot
// be taken now holds the ack. A write that failed closes the connection, so that the device sends again.

import type { Socket } from 'node:net'
import type { Aedes, AedesOptions, AuthenticateError, Client } from 'aedes'
import type { Clock } from '../../std/clock.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import type { QoS, Sender } from '../../domain/message.ts'
import type { Access } from './access.ts'
import { createAckSlots, createAckWriter, puback, pubrec, type AckHead } from './ack-writer.ts'
import { problemOfConnect, problemOfIdentifier, refusalOf } from './connect-rules.ts'
import { createGate, type Gate, type GateOptions } from './gate.ts'
import type { Intake } from '../intake/intake.ts'
import { QuietAedes, type Done, type PublishPacket } from './quiet-aedes.ts'
import { createSessions } from './qos2-sessions.ts'
import { createReasonCounter } from '../intake/reason-counter.ts'
import { problemOfTopic } from './topic-rules.ts'

export type BrokerDeps = { intake: Intake; access: Access; clock: Clock; emit: Emit }

export type BrokerOptions = GateOptions & {
  /** From the connection to the last byte of its CONNECT. */
  connectTimeoutMs: number
  clientIdBytesMax: number
}

export type Broker = {
  start(): Promise<void>
  /** Takes over a connected socket. */
  addConnection(socket: Socket, certificateName: string | null): void
  /** Counts and tells of a connection that was not taken over. */
  refuse(reason: string, address: string | null): void
  /** Reads nothing more; acks go on. */
  stopReading(): void
  close(): Promise<void>
  counters(): BrokerCounters
}

export type BrokerCounters = {
  acked: number
  connections: number
  /** Clients whose CONNECT was refused, and connections closed by the gateway, keyed by reason. */
  refusedByReason: ReadonlyMap<string, number>
  droppedByReason: ReadonlyMap<string, number>
}

type ConnectPacket = Parameters<Aedes['preConnect']>[1]

/** What a client may take to read its last acks at the end. */
const endTimeoutMs = 1000

const topicLimits = { bytesMax: 4096, levelsMax: 100 }

/** Of what aedes does by itself; nothing waits on it, it only must not pile up. */
const aedesOptions: AedesOptions = { drainTimeout: 60_000, queueLimit: 1, heartbeatInterval: 3_600_000 }

export function createBroker(deps: BrokerDeps, options: BrokerOptions): Broker {
  const { intake, access, clock, emit } = deps
  const gates = new Set<Gate>()
  /** Of closed clients too: their wills come after the end. */
  const gateOf = new WeakMap<Client, Gate>()
  /** Gates that found reading paused; they go on in this order. */
  const stopped = new Set<Gate>()
  const sessions = createSessions()
  const writer = createAckWriter()
  const slots = createAckSlots(onAck)
  const refusedBy = createReasonCounter(clock, { eventEveryMs: 0 })
  const droppedBy = createReasonCounter(clock, { eventEveryMs: 0 })
  let acked = 0
  let waking = false
  let shutForGood = false

  const aedes = new QuietAedes({
    ...aedesOptions,
    connectTimeout: options.connectTimeoutMs,
    persistence: sessions.persistence,
    maxTopicLevels: topicLimits.levelsMax,
    // Bounded by qos2-sessions.ts, which aedes does not ask since it never gets to its own QoS 2 code.
    maxInflightInbound: 0,
    preConnect,
    authenticate,
    authorizePublish,
    // SUBACK 128 [MQTT-3.9.3-2]: this gateway sends nothing to devices.
    authorizeSubscribe: (_client, _subscription, done) => done(null, null),
  })
  aedes.on('clientReady', (client) => gateOf.get(client)?.startReading())
  aedes.on('clientError', onClientError)
  aedes.on('connectionError', onClientError)
  intake.onReadingChange(wake)

  // ---- a client arrives

  function welcome(socket: Socket, certificateName: string | null): void {
    const client = aedes.handle(socket)
    const gateDeps = {
      socket,
      client,
      certificateName,
      clock,
      writer,
      readingPaused,
      publish: takeStraight,
      onDrop: tellDropped,
    }
    const gate = createGate(gateDeps, options)
    gateOf.set(client, gate)
    gates.add(gate)
    socket.once('close', () => {
      gates.delete(gate)
      stopped.delete(gate)
      if (gate.sender !== null) intake.connectionEnded(gate.sender)
    })
    if (shutForGood) gate.stopReading()
  }

  function preConnect(
    client: Client,
    packet: ConnectPacket,
    done: (error: Error | null, ok: boolean) => void,
  ) {
    const gate = gateOf.get(client)
    if (gate === undefined) return
    gate.refusal = refusalOf(packet, options.clientIdBytesMax)
    const problem = problemOfConnect(packet, topicLimits)
    if (problem !== null) {
      gate.drop(problem)
      return
    }
    // aedes answers CONNACK 1 by itself where it does not speak the version.
    if (gate.refusal?.returnCode === 1) refuse(gate.refusal.reason, gate.address, packet.clientId)
    done(null, true)
  }

  function authenticate(
    client: Client,
    userName: string | undefined,
    password: Buffer | undefined,
    done: (error: AuthenticateError | null, ok: boolean | null) => void,
  ): void {
    const gate = gateOf.get(client)
    if (gate === undefined) return
    const verdict = access.check(userName ?? null, password ?? null)
    const refusal = gate.refusal ?? (verdict.kind === 'refused' ? verdict : null)
    if (refusal !== null) {
      refuse(refusal.reason, gate.address, client.id)
      done(Object.assign(new Error(refusal.reason), { returnCode: refusal.returnCode }), null)
      return
    }
    gate.sender = { clientId: client.id, userName: userName ?? null, certificateName: gate.certificateName }
    done(null, true)
  }

  // ---- a message arrives

  function authorizePublish(client: Client | null, packet: PublishPacket, done: Done): void {
    const gate = client === null ? undefined : gateOf.get(client)
    const sender = gate?.sender
    if (client === null || gate === undefined || !sender) {
      done(new Error('a message without a sender'))
      return
    }
    const { topic, qos, retain } = packet
    const bytes = typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload
    if (client.closed) {
      // A will. Nobody sends it again: like QoS 0, it is kept where that is possible now. Our own end is no
      // client's death, and the spool may be closed by then.
      if (!shutForGood) intake.accept(topic, bytes, 0, retain, false, sender, null)
      done(null)
      return
    }
    // What came behind DISCONNECT or behind a fault in the same portion.
    if (gate.closed) return
    const problem = problemOfTopic(topic, topicLimits) ?? (qos === 0 ? null : problemOfIdentifier(packet))
    if (problem !== null) {
      gate.drop(problem)
      return
    }
    // From here on `done` is left alone, see the head of this file.
    if (qos === 0) intake.accept(topic, bytes, 0, retain, false, sender, null)
    else if (qos === 1) acceptOnce(gate, packet, bytes, sender)
    else acceptExactlyOnce(gate, packet, bytes, sender)
  }

  /** The same as authorizePublish for QoS 0 and 1, for messages that aedes does not see. */
  function takeStraight(
    gate: Gate,
    topic: string,
    bytes: Buffer,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    messageId: number,
  ): void {
    const { sender } = gate
    const problem = sender === null ? 'it sent a message before CONNECT' : problemOfTopic(topic, topicLimits)
    if (sender === null || problem !== null) {
      gate.drop(problem ?? '')
      return
    }
    if (qos === 0) {
      intake.accept(topic, bytes, 0, retain, false, sender, null)
      return
    }
    const ack = slots.take(gate, puback, messageId)
    gate.countInFlight()
    intake.accept(topic, bytes, 1, retain, dup, sender, ack)
  }

  function acceptOnce(gate: Gate, packet: PublishPacket, bytes: Buffer, sender: Sender): void {
    const ack = slots.take(gate, puback, packet.messageId ?? 0)
    gate.countInFlight()
    intake.accept(packet.topic, bytes, 1, packet.retain, packet.dup, sender, ack)
  }

  function acceptExactlyOnce(gate: Gate, packet: PublishPacket, bytes: Buffer, sender: Sender): void {
    const { topic, retain, dup } = packet
    const messageId = packet.messageId ?? 0
    const arrival = sessions.arrive(sender.clientId, messageId, topic, bytes)
    if (arrival === 'too many') {
      gate.drop('it leaves too many QoS 2 messages unreleased')
      return
    }
    const ack = slots.take(gate, pubrec, messageId)
    gate.countInFlight()
    if (arrival === 'known') intake.acceptAgain(topic, bytes, 2, retain, true, sender, ack)
    else intake.accept(topic, bytes, 2, retain, dup, sender, ack)
  }

  function onAck(gate: Gate, head: AckHead, messageId: number, fault: GatewayError | null): void {
    if (fault === null) {
      if (!gate.closed) acked += 1
      gate.queueAck(head, messageId)
      return
    }
    if (head === pubrec && gate.sender !== null) sessions.forget(gate.sender.clientId, messageId)
    gate.drop('its message could not be written to the spool')
  }

  // ---- reading

  function readingPaused(gate: Gate): boolean {
    if (!intake.readingPaused) return false
    stopped.add(gate)
    return true
  }

  function wake(): void {
    if (intake.readingPaused || waking || stopped.size === 0) return
    waking = true
    // Not from within the commit that made room.
    setImmediate(wakeStopped)
  }

  function wakeStopped(): void {
    waking = false
    for (const gate of stopped) {
      if (intake.readingPaused) return
      stopped.delete(gate)
      gate.resumeReading()
    }
  }

  // ---- a client goes

  function onClientError(client: Client, error: Error): void {
    const gate = gateOf.get(client)
    // Without a code it is a fault that aedes or its parser found; with one the network broke, which is no news.
    if (gate === undefined || gate.dropped || 'code' in error || 'errorCode' in error) return
    gate.drop(error.message)
  }

  function tellDropped(gate: Gate, reason: string): void {
    droppedBy.add(null, reason)
    emit({ kind: 'client_dropped', reason, clientId: gate.sender?.clientId ?? null, address: gate.address })
  }

  function refuse(reason: string, address: string | null, clientId: string | null = null): void {
    refusedBy.add(null, reason)
    emit({ kind: 'client_refused', reason, clientId, address })
  }

  function shut(): void {
    shutForGood = true
    for (const gate of gates) gate.stopReading()
  }

  async function close(): Promise<void> {
    shut()
    await Promise.all([...gates].map((gate) => gate.end(endTimeoutMs)))
    await new Promise<void>((resolve) => aedes.close(resolve))
  }

  return {
    start: () => aedes.listen(),
    addConnection: welcome,
    refuse: (reason, address) => refuse(reason, address),
    stopReading: shut,
    close,
    counters: () => ({
      acked,
      connections: gates.size,
      refusedByReason: refusedBy.counts(),
      droppedByReason: droppedBy.counts(),
    }),
  }
}
