// connect-handler.ts: the begin and the end of a connection to the broker.
//
//   CONNECT -> connectCame: the rules for what it says (access/connect-rules.ts) -> a port for aedes
//           -> access/client-admission.ts: who is it, is there room, its session -> CONNACK
//   end     -> ended: the intake, the list of clients and the sessions hear how
//
// What breaks a rule that the protocol answers by closing is dropped here. What CONNACK answers goes on, so
// that the refusal names the client id.

import type { Sender } from '../../domain/message.ts'
import type { Intake } from '../intake/intake.ts'
import { connectFault, refusalOf, type ConnectRules, type Refusal } from './access/connect-rules.ts'
import type { DisconnectReason } from './client-faults.ts'
import type { ClientReports } from './client-reports.ts'
import type { Clients } from './clients/clients.ts'
import type { ConnectionLimits } from './connection-limits/connection-limits.ts'
import type { Disconnect } from './control-packets.ts'
import type { Gate } from './gate/gate.ts'
import type { ConnectPacket } from './packets/connect-packet.ts'
import type { StoredSessions } from './stored-sessions/stored-sessions.ts'
import type { TopicLimits } from './topic-rules.ts'
import { createWillBudget } from './will-budget.ts'
import { refusalPacketOf, type ConnackTerms } from './connack-packet.ts'
import { connectRequestOf, grantedKeepaliveMs, type KeepaliveLimit } from './version5/connect-properties.ts'
import { reasonCode } from './version5/reason-codes.ts'
import { createVersion5, type Version5Counts } from './version5/version5.ts'

export type ConnectHandler = {
  /** A CONNECT was read. */
  connectCame(gate: Gate, packet: ConnectPacket): void
  /** DISCONNECT came. What was read before is acknowledged; then the socket closes. */
  disconnected(gate: Gate, disconnect: Disconnect): void
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
  /** Opens its port. */
  admit: (gate: Gate, packet: ConnectPacket) => void
  stopping: () => boolean
}

export type ConnectOptions = ConnectRules & ConnackTerms & KeepaliveLimit & { topicLimits: TopicLimits }

export function createConnectHandler(
  { intake, limits, sessions, clients, reports, admit, stopping, counts }: Deps,
  options: ConnectOptions,
): ConnectHandler {
  const wills = createWillBudget()
  return { connectCame, disconnected, ended }

  function connectCame(gate: Gate, packet: ConnectPacket): void {
    limits.connectReceived(gate.connection)
    gate.tls?.connectReceived()
    gate.tls = null
    const refusal = refusalOf(packet, options) ?? roomForWill(gate, packet)
    gate.keepaliveMs = packet.keepaliveS * 1000
    if (packet.version === 5) beginVersion5(gate, packet)
    const fault = connectFault(packet, options.topicLimits)
    if (fault !== null) {
      gate.drop(fault.reason, fault.detail)
      return
    }
    gate.asked = { packet, refusal }
    admit(gate, packet)
  }

  function roomForWill(gate: Gate, packet: ConnectPacket): Refusal | null {
    const bytes = wills.take(packet)
    gate.willBytes = bytes ?? 0
    return bytes === null ? { returnCode: 3, reason: 'wills_full' } : null
  }

  function beginVersion5(gate: Gate, packet: ConnectPacket): void {
    const request = connectRequestOf(packet)
    const { inFlightMax, topicAliasesMax } = options
    gate.version5 = createVersion5({ request, inFlightMax, topicAliasesMax }, counts)
    gate.keepaliveMs = grantedKeepaliveMs(request.keepaliveMs, options)
    limits.onRefused(gate.connection, (reason) =>
      gate.refuse(refusalPacketOf({ reason, returnCode: 3 }, request)),
    )
  }

  function disconnected(gate: Gate, { code, expiryMs }: Disconnect): void {
    const { link, version5 } = gate
    if (version5 !== null && expiryMs !== null && link?.session)
      version5.sessionExpiryMs = sessions.changeExpiry(link.session, expiryMs)
    // [MQTT-3.14.4-3]: only 0x00 deletes the will.
    gate.disconnect = code === reasonCode.success ? 'deletes will' : 'keeps will'
    gate.disconnected()
  }

  function ended(gate: Gate): void {
    const withDisconnect = gate.disconnect !== null
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
