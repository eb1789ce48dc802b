// acks.ts: what the gateway answers to the packets of one connection: PUBACK, PUBREC, PUBCOMP and PINGRESP.
//
//   spool's commit -> ack-writer.ts (a slot for each message) -> publish-handler -> gate
//     -> ack-order.ts (PUBCOMP in its place) -> ack-output.ts (the bytes) -> one write per socket and commit
//
// Guarantees: acknowledgements leave in the order in which their messages came [MQTT-4.6.0-2], each after the
// write that it confirms. A client that does not read them is not read either, and is dropped after
// `ackTimeoutMs`. Bounds: as many acks as messages may be in flight, and the PUBRELs of ack-order.ts.

import type { Clock } from '../../../../std/clock.ts'
import type { DeviceSocket } from '../device-socket.ts'
import { createAckOrder, type AckOrder } from './ack-order.ts'
import { createAckOutput, type AckOutput } from './ack-output.ts'
import type { AckHead, AckWriter } from './ack-writer.ts'

export type Acks = Pick<AckOrder, 'expectAck' | 'ack' | 'expectRelease' | 'isIdle'> &
  Pick<AckOutput, 'addPingResponse' | 'write' | 'close'> & {
    /** Nothing may be read until the client reads what it is sent. */
    isBlocked(): boolean
  }

type Deps = {
  socket: DeviceSocket
  clock: Clock
  writer: AckWriter
  gate: {
    /** Null for MQTT 3.1 and 3.1.1. */
    readonly version5: { readonly quota: { free(): void } } | null
    /** Called by the writer. */
    writeAcks(): void
    /** Called after `isBlocked`. */
    resumeReading(): void
    /** The client did not read for `ackTimeoutMs`. */
    acksNotRead(): void
  }
}

export function createAcks(deps: Deps, options: { ackTimeoutMs: number }): Acks {
  return new ConnectionAcks(deps, options)
}

/** A class, because there is one for each connection (gate.ts). */
class ConnectionAcks implements Acks {
  private readonly output: AckOutput
  private readonly order: AckOrder

  constructor(deps: Deps, options: { ackTimeoutMs: number }) {
    this.output = createAckOutput(deps, options)
    this.order = createAckOrder({ output: this.output, gate: deps.gate })
  }

  expectAck(): void {
    this.order.expectAck()
  }

  ack(head: AckHead, messageId: number, code: number): void {
    this.order.ack(head, messageId, code)
  }

  expectRelease(messageId: number): { released(): void } {
    return this.order.expectRelease(messageId)
  }

  get isIdle(): boolean {
    return this.order.isIdle
  }

  addPingResponse(): boolean {
    return this.output.addPingResponse()
  }

  write(): void {
    this.output.write()
  }

  isBlocked(): boolean {
    return this.order.isFull || this.output.isBlocked()
  }

  close(): void {
    this.output.close()
  }
}
