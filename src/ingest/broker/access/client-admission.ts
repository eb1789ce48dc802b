// client-admission.ts: answers a CONNECT that follows the rules: who is it (access.ts), is there room
// (connection-limits), is the client id free (clients), and is its session stored.

import type { X509Certificate } from 'node:crypto'
import type { Client } from 'aedes'
import { clientNameOf } from '../../../domain/message.ts'
import type { Intake } from '../../intake/intake.ts'
import type { ClientConnect, Clients, Protocol } from '../clients/clients.ts'
import type { ProtocolUses, ProtocolVersion } from '../clients/protocol-uses.ts'
import { shareKeyOf, type ConnectionLimits } from '../connection-limits/connection-limits.ts'
import type { ClientReports } from '../client-reports.ts'
import type { Gate } from '../gate/gate.ts'
import type { OpenedSession, StoredSessions } from '../stored-sessions/stored-sessions.ts'
import type { Access, Admitted, Judgement } from './access.ts'
import { acceptingConnack, plainConnack, refusalPacketOf, type ConnackTerms } from '../connack-packet.ts'
import type { DelayedWills } from '../version5/delayed-wills.ts'
import type { Version5 } from '../version5/version5.ts'
import type { Refusal } from './connect-rules.ts'

export type ClientAdmission = {
  /**
   * For aedes: calls `accept`, with the CONNACK at the gate, or has the gate refuse the client.
   */
  authenticate(gate: Gate, client: Client, accept: () => void): void
}

type Deps = {
  access: Access
  limits: Pick<ConnectionLimits, 'accept'>
  sessions: Pick<StoredSessions, 'open' | 'closed'>
  clients: Pick<Clients, 'mayConnect' | 'connected'>
  uses: Pick<ProtocolUses, 'of'>
  reports: Pick<ClientReports, 'refuse' | 'connected'>
  wills: Pick<DelayedWills, 'clientConnected'>
  intake: Pick<Intake, 'links'>
  /** The open connection that aedes has under this name (`clientNameOf`). */
  holderOf: (clientName: string) => Gate | undefined
}

/** A client id that an open connection has which has proved an identity; this one has not. */
const inUse: Refusal = { reason: 'client_id_in_use', returnCode: 2 }
/** Between its judgement and its session. */
const withdrawn: Refusal = { reason: 'bad_credentials', returnCode: 4 }

export function createClientAdmission(deps: Deps, terms: ConnackTerms): ClientAdmission {
  const { access, limits, sessions, clients, uses, reports, wills, intake, holderOf } = deps
  return { authenticate }

  function authenticate(gate: Gate, client: Client, accept: () => void): void {
    if (gate.asked === null) return
    const { packet, refusal } = gate.asked
    gate.asked = null
    const { id: clientId } = client
    const { certificateName, address, listener } = gate
    const { userName: givenName, password, clean } = packet
    /** What it has proved: by its certificate, and then as the judgement says. */
    let proved = certificateName
    if (refusal !== null) refuseConnect(refusal)
    else {
      const given = { userName: givenName, password }
      access.judge({ ...given, listener, certificateName, address, isClosed: () => gate.closed }, judged)
    }

    function judged(judgement: Judgement): void {
      if (judgement.kind === 'refused') refuseConnect(judgement.refusal)
      if (judgement.kind === 'refused' || gate.closed) return
      const { identity } = judgement
      proved = identity
      if (!clients.mayConnect(clientId, identity)) {
        refuseConnect(inUse)
        return
      }
      const reason = limits.accept(gate.connection, { clientId, identity, reader: gate })
      if (reason === null) openSession(judgement)
      else refuseConnect({ reason, returnCode: 3 })
    }

    function refuseConnect(found: Refusal): void {
      const userName = access.shownName({ listener, userName: givenName })
      reports.refuse(found.reason, { clientId, identity: proved, userName, address })
      gate.refuse(refusalPacketOf(found, gate.version5 && gate.version5.request))
    }

    function openSession(admitted: Admitted): void {
      const { identity } = admitted
      const opening = sessions.open({
        clientId,
        identity,
        owner: identity ?? shareKeyOf(gate.address),
        start: clean ? 'clean' : 'resume',
        expiryMs: gate.version5?.request.sessionExpiryMs ?? (clean ? 0 : Number.POSITIVE_INFINITY),
      })
      // Outside of the promise: an error of aedes is not one of the session.
      void opening.then(
        (opened) => setImmediate(admit, opened, admitted),
        () => setImmediate(refuseConnect, { reason: 'session_not_stored', returnCode: 3 }),
      )
    }

    /** The rules may have changed meanwhile. */
    function admit(
      { session, present, expiryMs }: OpenedSession,
      { identity, userName, by }: Admitted,
    ): void {
      const isWithdrawn = !access.mayStay({ listener, admittedBy: by })
      if (gate.closed || isWithdrawn) {
        sessions.closed(session)
        if (!gate.closed) refuseConnect(withdrawn)
        return
      }
      gate.connack = connackOf(present, expiryMs)
      if (gate.connack === null) {
        sessions.closed(session)
        return
      }
      gate.link = intake.links.connect(clientId, identity)
      gate.link.session = session
      gate.expectReleases(session.unreleasedCount)
      gate.admittedBy = by
      gate.sender = { clientId, userName, certificateName, identity, address }
      gate.use = uses.of(versionNames[gate.version], gate.transport)
      gate.use.accepted += 1
      gate.use.open += 1
      gate.traffic = clients.connected(gate.sender, address, protocolOf(gate, present))
      wills.clientConnected(gate.sender, present)
      reports.connected(gate)
      // aedes ends the connection that has the name below, and that of an anonymous client is ended here.
      client.id = clientNameOf({ clientId, identity })
      if (identity !== null) holderOf(clientId)?.port?.close()
      accept()
    }

    /** Null where the client has no room for it. */
    function connackOf(sessionPresent: boolean, sessionExpiryMs: number): Gate['connack'] {
      const { version5, keepaliveMs } = gate
      // MQTT 3.1 has no such flag.
      if (version5 === null) return () => plainConnack(0, sessionPresent && gate.version === 4)
      const { request } = version5
      const granted = { sessionExpiryMs, keepaliveMs, sessionPresent }
      const connack = acceptingConnack({ request, ...granted, clientId }, terms)
      if (connack === null) {
        const detail = `It takes packets of ${request.packetBytesMax} bytes, and CONNACK is larger.`
        gate.drop('packet_too_large', detail)
        return null
      }
      version5.sessionExpiryMs = sessionExpiryMs
      return () => {
        version5.isAnswered = true
        return connack
      }
    }
  }
}

const versionNames: Readonly<Record<Gate['version'], ProtocolVersion>> = { 3: '3.1', 4: '3.1.1', 5: '5' }

function protocolOf(gate: Gate, sessionPresent: boolean): Protocol {
  const { version5, transport, keepaliveMs, peerCertificate } = gate
  const version = versionNames[gate.version]
  return {
    protocol: transport === 'TCP' ? `MQTT ${version}` : `MQTT ${version} over ${transport}`,
    connect: version5 && connectOf(version5, keepaliveMs, sessionPresent),
    certificate: certificateOf(peerCertificate?.()),
  }
}

function certificateOf(own: X509Certificate | undefined): Protocol['certificate'] {
  return own === undefined
    ? null
    : { startsAt: own.validFromDate.getTime(), endsAt: own.validToDate.getTime() }
}

function connectOf(
  { request, sessionExpiryMs }: Version5,
  keepaliveMs: number,
  sessionPresent: boolean,
): ClientConnect {
  return {
    keepaliveAsked: request.keepaliveMs / 1000,
    keepalive: keepaliveMs / 1000,
    sessionExpiryAsked: finiteOrNull(request.sessionExpiryMs / 1000),
    sessionExpiry: finiteOrNull(sessionExpiryMs / 1000),
    cleanStart: request.cleanStart,
    sessionPresent,
    receiveMaximum: request.receiveMaximum,
    topicAliasMaximum: request.topicAliasMaximum,
    maximumPacketSize: finiteOrNull(request.packetBytesMax),
    willDelay: request.will && request.will.delayMs / 1000,
    userProperties: request.userProperties,
  }
}

const finiteOrNull = (value: number) => (Number.isFinite(value) ? value : null)
