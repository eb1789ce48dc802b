// types.ts: what a gate needs, and what it does for the broker.

import type { X509Certificate } from 'node:crypto'
import type { Clock } from '../../../std/clock.ts'
import type { Sender } from '../../../domain/message.ts'
import type { Intake } from '../../intake/intake.ts'
import type { ClientLink, ReceivedMessage } from '../../types.ts'
import type { Refusal } from '../access/connect-rules.ts'
import type { AdmittedBy } from '../access/withdrawal.ts'
import type { AedesPort } from '../aedes-port.ts'
import type { ClientDropReason } from '../client-faults.ts'
import type { Connection } from '../connection-limits/connection-limits.ts'
import type { ProtocolUse, Transport } from '../clients/protocol-uses.ts'
import type { ClientTraffic } from '../clients/types.ts'
import type { TlsUse } from '../listeners/handshake-failures.ts'
import type { ConnectPacket } from '../packets/connect-packet.ts'
import type { Version } from '../packets/packets.ts'
import type { Decisions } from '../publish-rules/publish-rules.ts'
import type { Version5 } from '../version5/version5.ts'
import type { AckHead, AckWriter } from './acks/ack-writer.ts'
import type { DeviceSocket } from './device-socket.ts'
import type { PacketReaderDeps, PacketReaderOptions } from './packet-reader/types.ts'
import type { SilenceOptions } from './silence.ts'
import type { Turns } from './turns.ts'

export type GateOptions = PacketReaderOptions &
  SilenceOptions & {
    /** How long a client may leave its acks unread. */
    ackTimeoutMs: number
    /** From the connection to the last byte of its CONNECT. */
    connectTimeoutMs: number
    controlPacketsPerSecondMax: number
  }

export type GateOwn = {
  readonly socket: DeviceSocket
  readonly connection: Connection
}

export type GateDeps = {
  clock: Clock
  writer: AckWriter
  /** Shared by all gates. */
  turns: Turns
  partial: PacketReaderDeps['partial']
  /** True while no gate may read messages; resumeReading is called at its end. */
  readingPaused: (gate: Gate) => boolean
  load: Intake['load']
  /** Has read its share while the intake is busy; resumeReading is called when it is not. */
  pause: (gate: Gate) => void
  /** The reader puts each message into `message`, which all gates share, and calls `publish`. */
  message: ReceivedMessage
  publish: (gate: Gate, messageId: number) => void
  connectCame: (gate: Gate, packet: ConnectPacket) => void
  /** A PINGREQ; its answer and all acks before it are about to be written. */
  onPing: (gate: Gate) => void
  /** A packet at `start`, not PUBLISH and not PINGREQ. Returns its end. */
  takePacket: (gate: Gate, bytes: Buffer, start: number) => number
  /** The client has closed its side, or it is about to be closed: it may connect again. */
  onHalfClosed: (gate: Gate) => void
  onDrop: (gate: Gate, reason: ClientDropReason, detail: string) => void
  /** Its socket is closed. */
  onClose: (gate: Gate) => void
}

export type Gate = {
  /** For aedes, from its CONNECT on. */
  port: AedesPort<Gate> | null
  /** Its CONNECT, until it is answered. `refusal`: for what it says. */
  asked: { packet: ConnectPacket; refusal: Refusal | null } | null
  /** Makes the CONNACK that accepts its client, until it is written. */
  connack: (() => Buffer) | null
  /** Of its CONNECT. */
  readonly version: Version
  readonly connection: Connection
  readonly address: string | null
  /** Name in the client's certificate. */
  certificateName: string | null
  /** The number of its listener. */
  listener: number
  transport: Transport
  /** The counts of its version and transport, from its accepted CONNECT to its end. */
  use: ProtocolUse | null
  /** What its client sent, from its accepted CONNECT on. */
  traffic: ClientTraffic | null
  /** Known once the client's CONNECT was accepted. */
  sender: Sender | null
  /** What admitted it then. */
  admittedBy: AdmittedBy | null
  /** What TLS knows of the client; null without TLS. */
  peerCertificate: (() => X509Certificate | undefined) | null
  link: ClientLink | null
  /** What it may publish to (publish-rules.ts). */
  decisions: Decisions | null
  /** What differs with MQTT 5; null for other versions, and before CONNECT. */
  version5: Version5 | null
  /** What its will takes of the budget for all (will-budget.ts). */
  willBytes: number
  /** For TLS, until its CONNECT comes. */
  tls: TlsUse | null
  /** The connection is closed or about to close: nothing of it is taken any more. */
  readonly closed: boolean
  /** Acknowledgements are sent still, also after the client has sent DISCONNECT. */
  readonly answers: boolean
  /** Dropped by the gateway; the reason was reported. */
  readonly dropped: boolean
  readonly dropReason: ClientDropReason | null
  /** It has sent DISCONNECT: its will is not taken where that deletes it. */
  disconnect: 'deletes will' | 'keeps will' | null
  /** The client has closed its side or sent DISCONNECT, and all before was read. It may read or not. */
  readonly halfClosed: boolean
  /** When its CONNECT was accepted, monotonic; 0 before. */
  acceptedAtMs: number
  /** From its CONNECT; 0 for none. */
  keepaliveMs: number
  /** Further PUBREL packets of an earlier connection that do not count as control packets. */
  expectReleases(count: number): void
  /** Writes `connack`: packets behind CONNECT are read from then on. */
  startReading(): void
  /** Nothing more is read; acks are still written. */
  stopReading(): void
  /** A message that requires an ack was accepted. */
  countInFlight(): void
  /** Its ack with a reason code (0: taken); written with the others of this commit. */
  queueAck(head: AckHead, messageId: number, code: number): void
  /** A PUBREL came; PUBCOMP follows `released`, if it is one, in the order of the packets. */
  release(messageId: number, released: Promise<unknown> | null): void
  /** A PINGREQ came. */
  ping(): void
  /** SUBACK or UNSUBACK. */
  write(answer: Buffer): void
  writeAcks(): void
  /** Reads on where reading had paused. */
  resumeReading(): void
  /** Ends the connection where the client was silent for too long. */
  passTime(elapsedMs: number): void
  /** The client has sent DISCONNECT: the socket is closed when what was read before is acknowledged. */
  disconnected(): void
  /** `code`: for MQTT 5, where another than that of the reason says it better (PacketFault). */
  drop(reason: ClientDropReason, detail?: string, code?: number): void
  /** Refuses its CONNECT; without an answer where it is null. */
  refuse(answer: Buffer | null): void
  /**
   * aedes has ended the connection: a later one of its client takes its place. A client of MQTT 5 gets
   * DISCONNECT.
   */
  portEnded(): void
  /** Ends the connection once everything is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}
