// types.ts: what the reader of packets needs of the connection, and what it does for it.

import type { DeviceSocket } from '../device-socket.ts'
import type { ReceivedMessage } from '../../../types.ts'
import type { ClientDropReason } from '../../client-faults.ts'
import type { ControlRate } from '../control-rate.ts'
import type { MessageShare } from '../message-share.ts'
import type { ConnectPacket } from '../../packets/connect-packet.ts'
import type { Version } from '../../packets/packets.ts'
import type { Version5 } from '../../version5/version5.ts'
import type { PartialMemory, PartialPacket, PartialPacketOptions } from '../partial-packet/partial-packet.ts'
import type { Turns } from '../turns.ts'
import type { FramingLimits } from './packet-framing.ts'

export type PacketReaderOptions = FramingLimits &
  PartialPacketOptions & {
    /** Messages of one client that wait for their commit. */
    inFlightMax: number
  }

export type PacketReaderDeps = {
  socket: DeviceSocket
  /** Its gate. */
  owner: ReaderOwner
  partial: PartialMemory
  turns: Turns
  rate: ControlRate
  share: MessageShare
  /** Where a message is put before `publish` is called. */
  message: ReceivedMessage
}

export type ReaderOwner = {
  readonly address: string | null
  /** Null for MQTT 3.1 and 3.1.1. */
  readonly version5: Version5 | null
  /** Nothing of it is taken any more. */
  readonly closed: boolean
  /** The client does not read its acks. */
  isBlocked(): boolean
  /** True while no messages may be read; resumeReading is called at its end. */
  readingPaused(): boolean
  /** Its messages have taken long: no more of them may be read before readingPaused() was asked. */
  isTimeSpent(): boolean
  /** Messages that may be read without asking isTimeSpent() after each. */
  messagesAtOnce(): number
  /** The share is used up; resumeReading is called when there is more. */
  pauseReading(): void
  /** The whole CONNECT came. */
  connectCame(packet: ConnectPacket): void
  publish(messageId: number): void
  ping(): void
  drop(reason: ClientDropReason, detail?: string, code?: number): void
  /** A packet at `start`, not PUBLISH and not PINGREQ. Returns its end. */
  takePacket(bytes: Buffer, start: number): number
}

export type PacketReader = {
  /** Of its CONNECT. */
  readonly version: Version
  /** CONNECT was answered: packets behind it may be read. */
  startReading(): void
  stopReading(): void
  /** Reads on where reading had paused. */
  resumeReading(): void
  countInFlight(): void
  countAcked(): void
  /** Acks were written: reads on where their number was the bound. */
  resumeIfFull(): void
  /** Nothing but the client decides when the next byte is read. */
  isReading(): boolean
  /** Bytes have come since the last call. */
  sawBytes(): boolean
  /** The first part of a packet, if there is one. */
  readonly partial: PartialPacket | null
  discardPartial(): void
  /** Nothing more is taken: what comes is read and dropped (packet-reader.ts). */
  discardAll(): void
}
