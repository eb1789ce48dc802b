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
import type { AckWriter } from './ack-writer.ts'

export type Acks = Pick<AckOrder, 'expectAck' | 'ack' | 'expectRelease' | 'isIdle'> &
  Pick<AckOutput, 'addPingResponse' | 'write'> & {
    /** Nothing may be read until the client reads what it is sent. */
    isBlocked(): boolean
  }

type Deps = {
  socket: DeviceSocket
  clock: Clock
  writer: AckWriter
  /** Its acks are written by the writer. */
  gate: { writeAcks(): void }
  /** Called after `isBlocked`. */
  resume: () => void
  /** The client did not read for `ackTimeoutMs`. */
  timedOut: () => void
}

export function createAcks(deps: Deps, options: { ackTimeoutMs: number }): Acks {
  const output = createAckOutput(deps, options)
  const order = createAckOrder({ add: output.addAck, resume: deps.resume })
  return {
    expectAck: order.expectAck,
    ack: order.ack,
    expectRelease: order.expectRelease,
    get isIdle() {
      return order.isIdle
    },
    addPingResponse: output.addPingResponse,
    write: output.write,
    isBlocked: () => order.isFull || output.isBlocked(),
  }
}
