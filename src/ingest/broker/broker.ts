// broker.ts: the MQTT broker that devices connect to: MQTT 3.1, 3.1.1 and 5. aedes keeps the clients by their
// names and takes wills; this folder reads the packets, with limits and back-pressure, and hands each message
// to the intake.
//
//   socket (listeners) -> gate -> CONNECT -> connect-handler.ts -> aedes-port.ts -> access -> CONNACK
//                              -> PUBLISH -> publish-handler.ts -> intake -> spool -> fsync -> ack -> gate
//                              -> others  -> control-packets.ts
//
//   listeners/          the listening sockets, plain and TLS
//   gate/               when and how much of a socket is read, limits by fixed headers, acks
//   packets/            how packets are laid out
//   version5/           what connections of MQTT 5 have besides
//   access/             which clients may connect, and the rules for a CONNECT
//   connection-limits/  how many connections there may be, and how much one client may send
//   clients/            what is known of each client by its id, and who may take it over
//   publish-rules/      what a client may publish to
//   stored-sessions/    sessions, and their QoS 2 messages that are not released
//   connect-handler.ts  the begin and the end of a connection
//   control-packets.ts  SUBSCRIBE, UNSUBSCRIBE, PUBREL and DISCONNECT
//   connack-packet.ts   the answer to CONNECT
//   releases.ts         what follows a PUBREL
//   topic-rules.ts      the rules for topic names and filters
//   client-reports.ts   refused CONNECTs and closed connections, by their reason (client-faults.ts)
//   refusal-report.ts   how many clients are refused for one reason, and whether they are the known fleet
//   limits-config.ts    the bounds of connections and their memory, as config
//   aedes-port.ts       the connection of a client as aedes sees it
//
// This file owns the connections: it creates a gate for each.

import type { X509Certificate } from 'node:crypto'
import type { Client } from 'aedes'
import type { Clock } from '../../std/clock.ts'
import type { TlsFailure } from '../../std/tls/tls.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import type { Sender } from '../../domain/message.ts'
import type { Intake } from '../intake/intake.ts'
import { notePing } from '../intake/untimed-resends.ts'
import type { Access } from './access/access.ts'
import { AedesPort, createAedes } from './aedes-port.ts'
import type { Connection, ConnectionLimits } from './connection-limits/connection-limits.ts'
import type { ClientDropReason } from './client-faults.ts'
import { createClientReports } from './client-reports.ts'
import { createClients, type Clients } from './clients/clients.ts'
import { createProtocolUses, type ProtocolUse } from './clients/protocol-uses.ts'
import { createClientAdmission } from './access/client-admission.ts'
import type { Holder } from './access/withdrawal.ts'
import { createConnectHandler, type ConnectOptions } from './connect-handler.ts'
import { createCommandTopics, type CommandTopics } from './command-topics.ts'
import { createControlPackets, type Subscriptions } from './control-packets.ts'
import type { DeviceSocket } from './gate/device-socket.ts'
import type { Gate, GateDeps } from './gate/gate.ts'
import type { ConnectPacket } from './packets/connect-packet.ts'
import type { TlsUse } from './listeners/handshake-failures.ts'
import { createGates, type GateCounters, type GatesOptions } from './gate/gates.ts'
import {
  createPublishRules,
  type PublishRules,
  type PublishRulesOptions,
} from './publish-rules/publish-rules.ts'
import { createPublishHandler } from './publish-handler.ts'
import { createReleases } from './releases.ts'
import { createDelayedWills, type DelayedWillCounters } from './version5/delayed-wills.ts'
import { createVersion5Counts, type Version5Counts } from './version5/version5.ts'
import type { StoredSessions } from './stored-sessions/stored-sessions.ts'

export type BrokerDeps = {
  intake: Intake
  access: Access
  limits: Pick<ConnectionLimits, 'connectReceived' | 'onRefused' | 'accept' | 'counters'>
  sessions: Pick<StoredSessions, 'open' | 'changeExpiry' | 'closed'>
  clock: Clock
  ourTime: Pick<OurTime, 'now'>
  emit: Emit
}

export type BrokerOptions = GatesOptions &
  ConnectOptions & {
    subscriptions: Subscriptions
    rules: PublishRulesOptions
  }

export type Broker = {
  start(): Promise<void>
  /** A connection to a listener ended in its TLS handshake. */
  handshakeFailed(reason: TlsFailure, address: string | null): void
  /** Takes over a connected socket. */
  addConnection(socket: DeviceSocket, origin: Origin): void
  /** The open connections of admitted clients. */
  admitted(): BrokerClient[]
  /** Reads nothing more; acks are still written. */
  stopReading(): void
  close(): Promise<void>
  /** Sends a command to a client that has subscribed to it; false where it has not. */
  readonly sendCommand: CommandTopics['send']
  counters(): BrokerCounters
  readonly clients: Omit<
    Clients,
    'mayConnect' | 'connected' | 'ended' | 'isConnected' | 'isBack' | 'willCame'
  >
}

/** An admitted client with its connection. */
export type BrokerClient = Holder & {
  readonly sender: Sender
  drop(reason: ClientDropReason): void
}

/** Where a connection comes from. */
export type Origin = {
  /** Null where TLS did not ask for a certificate. */
  certificateName: string | null
  connection: Connection
  /** Null without TLS. */
  tls: TlsUse | null
  peerCertificate: (() => X509Certificate | undefined) | null
  /** The number of the listener, in the order of the config. */
  listener: number
}

export type BrokerCounters = GateCounters &
  Version5Counts &
  DelayedWillCounters &
  ReturnType<PublishRules['counters']> & {
    acked: number
    /** Messages that came with the retain flag, wills included. */
    retained: number
    protocolUses: readonly ProtocolUse[]
    /** Topic filters that clients subscribed to: granted, and refused with SUBACK 128. */
    subscriptions: number
    subscriptionsRefused: number
    /** Sockets without an accepted CONNECT, those in a TLS handshake included. */
    unauthenticated: number
    /** How often a client was not read for a while because of its rate. */
    pausesByLimit: ReadonlyMap<string, number>
    /** CONNECTs of clients whose earlier connection was open. */
    takeOvers: number
    /** Refused CONNECTs, and connections that the gateway closed, by reason. */
    refusedByReason: ReadonlyMap<string, number>
    droppedByReason: ReadonlyMap<string, number>
  }

/** How long a client may take to read its last acks when the broker closes. */
const endTimeoutMs = 1000

export function createBroker(deps: BrokerDeps, options: BrokerOptions): Broker {
  const { intake, limits, clock, emit } = deps
  /** By the name that aedes has. */
  const holders = new Map<string, Gate>()
  const gateOf = (client: Client) => (client.conn as AedesPort<Gate>).owner
  const isStopping = () => stopping
  const holderOf = (clientName: string) => holders.get(clientName)
  const clients = createClients({ clock: { ...clock, now: deps.ourTime.now }, emit })
  const uses = createProtocolUses()
  const reports = createClientReports({ clock, emit, clients })
  let stopping = false
  const rules = createPublishRules({ owners: intake.owners, clients, clock, emit }, options.rules)
  const wills = createDelayedWills({ clock, take: (will) => handler.takeWill(will) })
  const handler = createPublishHandler(
    { intake, clients, wills, rules, stopping: isStopping, clock },
    { topicLimits: options.topicLimits, onViolation: options.rules.onViolation },
  )

  const { message, publish } = handler
  const { onDrop } = reports
  const onClose = (gate: Gate) => connects.ended(gate)
  const takePacket: GateDeps['takePacket'] = (gate, bytes, start) => control.take(gate, bytes, start)
  const connectCame: GateDeps['connectCame'] = (gate, packet) => connects.connectCame(gate, packet)
  const gates = createGates(
    { intake, clock, message, connectCame, publish, takePacket, onPing, onHalfClosed, onDrop, onClose },
    options,
  )
  const admission = createClientAdmission({ ...deps, clients, uses, reports, wills, holderOf }, options)
  const { release } = createReleases(deps)
  const counts = createVersion5Counts()
  const connects = createConnectHandler(
    { ...deps, clients, reports, counts, admit, stopping: isStopping },
    options,
  )
  const commands = createCommandTopics()
  const { disconnected } = connects
  const control = createControlPackets<Gate>({ release, commands, disconnected }, options)

  const aedes = createAedes({
    authenticate: (client, _userName, _password, done) =>
      admission.authenticate(gateOf(client), client, () => done(null, true)),
    // Wills only: no message of a client reaches aedes.
    authorizePublish(client, will, done) {
      if (client !== null) handler.willCame(gateOf(client), will)
      done(null)
    },
  })
  aedes.on('client', (client) => holders.set(client.id, gateOf(client)))
  aedes.on('clientDisconnect', (client) => {
    if (holders.get(client.id) === gateOf(client)) holders.delete(client.id)
  })
  aedes.on('clientReady', (client) => gateOf(client).startReading())

  // ---- a client connects

  function handshakeFailed(reason: TlsFailure, address: string | null): void {
    reports.refuse(reason, { clientId: null, identity: null, address })
  }

  function admitted(): BrokerClient[] {
    return [...gates.all()].flatMap((gate): BrokerClient[] => {
      const { listener, sender, admittedBy, peerCertificate } = gate
      if (sender === null || admittedBy === null || gate.closed) return []
      const drop = (reason: ClientDropReason) => gate.drop(reason)
      return [{ listener, sender, admittedBy, clientId: sender.clientId, peerCertificate, drop }]
    })
  }

  function addConnection(socket: DeviceSocket, origin: Origin): void {
    const { certificateName, connection, tls, listener, peerCertificate } = origin
    const gate = gates.open(socket, connection)
    gate.certificateName = certificateName
    gate.peerCertificate = peerCertificate
    gate.listener = listener
    gate.transport = socket.webSocket ? (tls ? 'WebSocket with TLS' : 'WebSocket') : tls ? 'TLS' : 'TCP'
    gate.tls = tls
  }

  function admit(gate: Gate, packet: ConnectPacket): void {
    gate.port = new AedesPort(aedes, gate, packet)
  }

  function onPing({ link }: Gate): void {
    if (link) notePing(link)
  }

  // ---- a client disconnects

  /** Its last acks may follow; when it connects again, that is no take-over. */
  function onHalfClosed({ sender, disconnect }: Gate): void {
    if (sender !== null) clients.ended(sender, disconnect === 'deletes will')
  }

  function stopReading(): void {
    stopping = true
    wills.close()
    gates.stopReading()
  }

  async function close(): Promise<void> {
    stopReading()
    await gates.end(endTimeoutMs)
    reports.close()
    await new Promise<void>((resolve) => aedes.close(resolve))
  }

  return {
    start: () => aedes.listen(),
    handshakeFailed,
    addConnection,
    admitted,
    stopReading,
    close,
    sendCommand: commands.send,
    counters: () => ({
      acked: handler.acked(),
      retained: handler.retained(),
      protocolUses: uses.all(),
      ...gates.counters(),
      takeOvers: clients.takeOvers(),
      ...control.counters(),
      unauthenticated: limits.counters().unauthenticated,
      pausesByLimit: limits.counters().pauses,
      refusedByReason: new Map([...limits.counters().refused, ...reports.refused()]),
      droppedByReason: reports.dropped(),
      ...rules.counters(),
      ...wills.counters(),
      ...counts,
    }),
    clients,
  }
}
