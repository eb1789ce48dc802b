// ack-output.ts: what one connection is sent by the gateway itself: PUBACK, PUBREC, PUBCOMP and PINGRESP,
// written once per commit, in the order in which they became due. PINGRESP goes the same way, because it
// confirms to the client, and by the next PINGREQ to the gateway (untimed-resends.ts), all acks before it.

import type { CancelTimer, Clock } from '../../../../std/clock.ts'
import type { AckWriter } from './ack-writer.ts'
import type { DeviceSocket } from '../device-socket.ts'

export type AckOutput = {
  /** `code`: a reason code of MQTT 5, which leaves out 0; 3.1.1 has none. */
  addAck(head: number, messageId: number, code: number): void
  /** False where the answer to the PINGREQ before it is not written yet. */
  addPingResponse(): boolean
  write(): void
  /** The client does not read what it is sent, also by aedes. `resume` is called when it does. */
  isBlocked(): boolean
}

type Deps = {
  socket: DeviceSocket
  clock: Clock
  writer: AckWriter
  /** Its acks are written by the writer. */
  gate: { writeAcks(): void }
  resume: () => void
  /** The client did not read for `ackTimeoutMs`. */
  timedOut: () => void
}

const pingResponse = 0xd0
const startBytes = 256

export function createAckOutput(deps: Deps, { ackTimeoutMs }: { ackTimeoutMs: number }): AckOutput {
  const { socket, clock, writer, gate } = deps
  let bytes = Buffer.allocUnsafe(startBytes)
  let end = 0
  let blocked = false
  let pingUnwritten = false
  let cancelTimeout: CancelTimer | null = null
  socket.once('close', () => cancelTimeout?.())

  function addAck(head: number, messageId: number, code: number): void {
    if (socket.destroyed) return
    add(head, code === 0 ? 2 : 3)
    bytes[end] = messageId >> 8
    bytes[end + 1] = messageId & 0xff
    end += 2
    if (code === 0) return
    bytes[end] = code
    end += 1
  }

  function addPingResponse(): boolean {
    if (socket.destroyed) return false
    add(pingResponse, 0)
    const first = !pingUnwritten
    pingUnwritten = true
    return first
  }

  function add(head: number, remainingLength: number): void {
    if (end === 0) writer.add(gate)
    if (end + 2 + remainingLength > bytes.length) {
      const larger = Buffer.allocUnsafe(bytes.length * 2)
      bytes.copy(larger)
      bytes = larger
    }
    bytes[end] = head
    bytes[end + 1] = remainingLength
    end += 2
  }

  function write(): void {
    const count = end
    end = 0
    pingUnwritten = false
    if (count === 0 || socket.destroyed) return
    // A copy: the socket keeps what it cannot write at once.
    if (!socket.write(Buffer.from(bytes.subarray(0, count)))) block()
  }

  function isBlocked(): boolean {
    // aedes writes to the socket too, and reads on however much of that waits.
    if (!blocked && socket.writableNeedDrain) block()
    return blocked
  }

  function block(): void {
    if (blocked) return
    blocked = true
    cancelTimeout = clock.after(ackTimeoutMs, deps.timedOut)
    socket.once('drain', () => {
      blocked = false
      cancelTimeout?.()
      deps.resume()
    })
  }

  return { addAck, addPingResponse, write, isBlocked }
}
