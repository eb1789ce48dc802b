// broker.ts: the MQTT broker that devices connect to. aedes 1.2 speaks 3.1 and 3.1.1; this folder adds MQTT 5
// (version5/) and the limits and the back-pressure that aedes lacks, and hands each message to the intake.
//
//   socket (listeners) -> gate -> publish-fast-path.ts, or aedes' parser
//          -> publish-handler.ts -> intake -> spool -> fsync -> ack -> gate -> socket
//
//   listeners/          the listening sockets, plain and TLS
//   gate/               when and how much of a socket is read, limits by fixed headers, acks
//   access/             which clients may connect, and the rules for a CONNECT
//   connection-limits/  how many connections there may be, and how much one client may send
//   clients/            what is known of each client by its id, and who may take it over
//   publish-rules/      what a client may publish to
//   stored-sessions/    sessions, and their QoS 2 messages that are not released
//   connect-handler.ts  the begin and the end of a connection
//   control-packets.ts  SUBSCRIBE, UNSUBSCRIBE, PUBREL and PINGREQ
//   releases.ts         what follows a PUBREL
//   packet-rules.ts     the rules for the layout of packets
//   topic-rules.ts      the rules for topic names and filters
//   client-reports.ts   refused CONNECTs and closed connections, by their reason (client-faults.ts)
//   refusal-report.ts   how many clients are refused for one reason, and whether they are the known fleet
//   limits-config.ts    the bounds of connections and their memory, as config
//   aedes-internals.ts  what is used of aedes beyond its documented interface
//
// This file owns the connections: it creates a gate for each.

import type { X509Certificate } from 'node:crypto'
import type { AedesOptions, Client } from 'aedes'
import type { Clock } from '../../std/clock.ts'
import type { TlsFailure } from '../../std/tls/tls.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import type { Sender } from '../../domain/message.ts'
import type { Intake } from '../intake/intake.ts'
import { notePing } from '../intake/untimed-resends.ts'
import type { Access } from './access/access.ts'
import {
  createAedesPersistence,
  connectedClient,
  createPacketOffer,
  hasDisconnected,
  protocolFaultOf,
  QuietAedes,
  prepareParser,
  shareEmptyTables,
} from './aedes-internals.ts'
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
import type { TlsUse } from './listeners/handshake-failures.ts'
import { createGates, type GateCounters, type GatesOptions } from './gate/gates.ts'
import {
  createPublishRules,
  type PublishRules,
  type PublishRulesOptions,
} from './publish-rules/publish-rules.ts'
import { createPublishHandler } from './publish-handler.ts'
import { createReleases } from './releases.ts'
import { createClientPackets } from './version5/client-packets.ts'
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
    /** From the connection to the last byte of its CONNECT. */
    connectTimeoutMs: number
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

/** Bounds timers and queues of aedes that the gateway does not use, so that they cannot grow. */
const aedesOptions: AedesOptions = { queueLimit: 1, heartbeatInterval: 3_600_000 }

export function createBroker(deps: BrokerDeps, options: BrokerOptions): Broker {
  const { intake, limits, clock, emit } = deps
  /** Closed clients included: their wills come after the end. */
  const gateOfClient = new WeakMap<Client, Gate>()
  const gateOf = (client: Client) => gateOfClient.get(client)
  const isStopping = () => stopping
  const holderOf = (clientName: string) => {
    const holder = connectedClient(aedes, clientName)
    return holder === undefined ? undefined : gateOf(holder)
  }
  const clients = createClients({ clock: { ...clock, now: deps.ourTime.now }, emit })
  const uses = createProtocolUses()
  const reports = createClientReports({ clock, emit, clients })
  let stopping = false
  const rules = createPublishRules({ owners: intake.owners, clients, clock, emit }, options.rules)
  const wills = createDelayedWills({ clock, take: (will) => handler.takeWill(will) })
  const handler = createPublishHandler(
    { intake, clients, wills, rules, gateOf, stopping: isStopping, clock },
    { topicLimits: options.topicLimits, onViolation: options.rules.onViolation },
  )

  const { message, publish } = handler
  const { onDrop } = reports
  const onClose = (gate: Gate) => connects.ended(gate)
  const takePacket: GateDeps['takePacket'] = (gate, bytes, start) => packets.take(gate, bytes, start)
  const gates = createGates(
    { intake, clock, message, publish, takePacket, onPing, onHalfClosed, onDrop, onClose },
    options,
  )
  const admission = createClientAdmission(
    { ...deps, clients, uses, reports, wills, gateOf, holderOf },
    options,
  )
  const { release } = createReleases(deps)
  const counts = createVersion5Counts()
  const connects = createConnectHandler(
    { ...deps, clients, reports, counts, gateOf, stopping: isStopping },
    options,
  )
  const commands = createCommandTopics()
  const control = createControlPackets<Gate>({ release, commands, leave: connects.leave }, options)
  const packets = createClientPackets<Gate>(
    { release, commands, disconnected: connects.disconnected },
    options,
  )

  const offerPackets = createPacketOffer((client, packet) => control.take(gateOf(client)!, packet))

  const aedes = new QuietAedes({
    ...aedesOptions,
    connectTimeout: options.connectTimeoutMs,
    // The gate is first, and says why.
    drainTimeout: 2 * options.ackTimeoutMs,
    persistence: createAedesPersistence(admission),
    maxTopicLevels: options.topicLimits.levelsMax,
    // Of MQTT 3.1; connect-rules.ts has one limit for all.
    maxClientsIdLength: options.clientIdBytesMax,
    // Bounded by stored-sessions.ts; aedes never reaches its own QoS 2 code.
    maxInflightInbound: 0,
    preConnect: connects.preConnect,
    authenticate: admission.authenticate,
    authorizePublish: handler.authorizePublish,
    // Called for the mark of a stored session only; control-packets.ts has the others.
    authorizeSubscribe: (_client, _subscription, done) => done(null, null),
  })
  aedes.on('clientReady', (client) => gateOf(client)?.startReading())
  aedes.on('clientError', onClientError)
  aedes.on('connectionError', onClientError)

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
    const client = aedes.handle(socket)
    prepareParser(client)
    shareEmptyTables(client)
    offerPackets(client)
    const gate = gates.open(socket, client, connection)
    gate.certificateName = certificateName
    gate.peerCertificate = peerCertificate
    gate.listener = listener
    gate.transport = socket.webSocket ? (tls ? 'WebSocket with TLS' : 'WebSocket') : tls ? 'TLS' : 'TCP'
    gate.tls = tls
    gateOfClient.set(client, gate)
  }

  function onPing({ link }: Gate): void {
    if (link) notePing(link)
  }

  // ---- a client disconnects

  /** Its last acks may follow; when it connects again, that is no take-over. */
  function onHalfClosed({ client, sender }: Gate): void {
    if (sender !== null) clients.ended(sender, hasDisconnected(client))
  }

  function onClientError(client: Client, error: Error): void {
    const gate = gateOf(client)
    // An error of the network is no fault of the client.
    const fault = protocolFaultOf(error)
    if (gate === undefined || gate.dropped || fault === null) return
    gate.drop(fault.reason, fault.detail)
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
      subscriptions: control.counters().subscriptions + packets.counters().subscriptions,
      subscriptionsRefused: control.counters().subscriptionsRefused + packets.counters().subscriptionsRefused,
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
