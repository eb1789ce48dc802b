// connect-handler.ts: the begin and the end of a connection to the broker.
//
//   CONNECT -> preConnect: the rules for what it says (access/connect-rules.ts)
//           -> access/client-admission.ts: who is it, is there room, its session -> CONNACK
//   end     -> ended: the intake, the list of clients and the sessions hear how
//
// preConnect is the first that sees a CONNECT, before aedes. What breaks a rule that the protocol answers by
// closing is dropped here; what CONNACK answers is noted at the gate and refused by client-admission.

import type { Client } from 'aedes'
import type { Sender } from '../../domain/message.ts'
import type { Intake } from '../intake/intake.ts'
import { connectFault, refusalOf, type ConnectRules, type Refusal } from './access/connect-rules.ts'
import { asVersion311, noteDisconnect, hasDisconnected, type ConnectPacket } from './aedes-internals.ts'
import type { DisconnectReason } from './client-faults.ts'
import type { ClientReports } from './client-reports.ts'
import type { Clients } from './clients/clients.ts'
import type { ConnectionLimits } from './connection-limits/connection-limits.ts'
import type { Gate } from './gate/gate.ts'
import type { StoredSessions } from './stored-sessions/stored-sessions.ts'
import type { TopicLimits } from './topic-rules.ts'
import { createWillBudget } from './will-budget.ts'
import { refusalPacketOf, type ConnackTerms } from './version5/connack-packet.ts'
import { connectRequestOf, grantedKeepaliveMs, type KeepaliveLimit } from './version5/connect-properties.ts'
import { reasonCode } from './version5/reason-codes.ts'
import { createVersion5, type Version5Counts } from './version5/version5.ts'

export type ConnectHandler = {
  /** For aedes: a CONNECT was read. */
  preConnect(client: Client, packet: ConnectPacket, done: (error: Error | null, ok: boolean) => void): void
  /** DISCONNECT came that deletes the will. What was read before is acknowledged; then the socket closes. */
  leave(gate: Gate): void
  /** DISCONNECT of MQTT 5 came. `expiryMs`: null where it does not change the expiry of the session. */
  disconnected(gate: Gate, disconnect: { code: number; expiryMs: number | null }): void
  /** Its socket is closed. */
  ended(gate: Gate): void
}

type Deps = {
  intake: Pick<Intake, 'connectionEnded'> & { links: Pick<Intake['links'], 'disconnect'> }
  limits: Pick<ConnectionLimits, 'connectReceived' | 'onRefused'>
  sessions: Pick<StoredSessions, 'changeExpiry' | 'closed'>
  clients: Pick<Clients, 'ended' | 'isConnected'>
  reports: Pick<ClientReports, 'ended'>
  counts: Version5Counts
  gateOf: (client: Client) => Gate | undefined
  stopping: () => boolean
}

export type ConnectOptions = ConnectRules & ConnackTerms & KeepaliveLimit & { topicLimits: TopicLimits }

export function createConnectHandler(
  { intake, limits, sessions, clients, reports, gateOf, stopping, counts }: Deps,
  options: ConnectOptions,
): ConnectHandler {
  const wills = createWillBudget()
  return { preConnect, disconnected, leave, ended }

  function preConnect(
    client: Client,
    packet: ConnectPacket,
    done: (error: Error | null, ok: boolean) => void,
  ): void {
    const gate = gateOf(client)
    if (gate === undefined) return
    limits.connectReceived(gate.connection)
    gate.tls?.connectReceived()
    gate.tls = null
    gate.refusal = refusalOf(packet, options) ?? roomForWill(gate, packet)
    // silence.ts keeps it: aedes does not know when a connection is not read.
    gate.keepaliveMs = (packet.keepalive ?? 0) * 1000
    if (packet.protocolVersion === 5) beginVersion5(gate, packet)
    packet.keepalive = 0
    const fault = connectFault(packet, options.topicLimits)
    if (fault !== null) {
      gate.drop(fault.reason, fault.detail)
      return
    }
    if (gate.version5 !== null) asVersion311(packet)
    done(null, true)
  }

  function roomForWill(gate: Gate, packet: ConnectPacket): Refusal | null {
    const bytes = wills.take(packet)
    gate.willBytes = bytes ?? 0
    return bytes === null ? { returnCode: 3, reason: 'wills_full' } : null
  }

  /** aedes goes on as with 3.1.1; what differs is kept at the gate. */
  function beginVersion5(gate: Gate, packet: ConnectPacket): void {
    const request = connectRequestOf(packet)
    const { packetBytesMax: receivedBytesMax, inFlightMax, topicAliasesMax } = options
    gate.version5 = createVersion5({ request, receivedBytesMax, inFlightMax, topicAliasesMax }, counts)
    gate.keepaliveMs = grantedKeepaliveMs(request.keepaliveMs, options)
    limits.onRefused(gate.connection, (reason) => gate.refuse(refusalPacketOf(reason, request)))
  }

  function disconnected(gate: Gate, { code, expiryMs }: { code: number; expiryMs: number | null }): void {
    const { link, version5 } = gate
    if (version5 === null) return
    if (expiryMs !== null && link?.session)
      version5.sessionExpiryMs = sessions.changeExpiry(link.session, expiryMs)
    // [MQTT-3.14.4-3]: only 0x00 deletes the will.
    if (code === reasonCode.success) {
      leave(gate)
      return
    }
    version5.hasWillOnDisconnect = true
    gate.disconnected()
  }

  function leave(gate: Gate): void {
    noteDisconnect(gate.client)
    gate.disconnected()
  }

  function ended(gate: Gate): void {
    const withDisconnect = hasDisconnected(gate.client) || gate.version5?.hasWillOnDisconnect === true
    if (gate.use !== null) gate.use.open -= 1
    gate.use = null
    wills.give(gate.willBytes)
    gate.willBytes = 0
    if (gate.sender !== null) {
      intake.connectionEnded(gate.sender)
      reports.ended(gate, howEnded(gate.sender, gate, withDisconnect))
      clients.ended(gate.sender, withDisconnect)
    } else if (!gate.dropped && !stopping()) gate.tls?.closedUnused()
    if (gate.link !== null) intake.links.disconnect(gate.link, withDisconnect)
    if (gate.link?.session) sessions.closed(gate.link.session)
  }

  function howEnded(sender: Sender, { halfClosed }: Gate, withDisconnect: boolean): DisconnectReason {
    if (withDisconnect) return 'disconnect'
    if (stopping()) return 'gateway_stopping'
    if (halfClosed) return 'closed'
    return clients.isConnected(sender) ? 'connection_lost' : 'taken_over'
  }
}
