// ack-output.ts: what one connection is sent by the gateway itself: PUBACK, PUBREC, PUBCOMP and PINGRESP,
// written once per commit, in the order in which they became due. PINGRESP goes the same way, because it
// confirms to the client, and by the next PINGREQ to the gateway (untimed-resends.ts), all acks before it.

import type { CancelTimer, Clock } from '../../../../std/clock.ts'
import { pubrec, type AckWriter } from './ack-writer.ts'
import type { DeviceSocket } from '../device-socket.ts'

export type AckOutput = {
  /** `code`: a reason code of MQTT 5, which leaves out 0; 3.1.1 has none. */
  addAck(head: number, messageId: number, code: number): void
  /** False where the answer to the PINGREQ before it is not written yet. */
  addPingResponse(): boolean
  write(): void
  /** The client does not read what it is sent, also by aedes. `resumeReading` is called when it does. */
  isBlocked(): boolean
  /** The socket is closed. */
  close(): void
}

type AckOutputOptions = { ackTimeoutMs: number }

type Deps = {
  socket: DeviceSocket
  clock: Clock
  writer: AckWriter
  /** `writeAcks` is called by the writer. */
  gate: {
    /** Null for MQTT 3.1 and 3.1.1. */
    readonly version5: { readonly quota: { free(): void } } | null
    writeAcks(): void
    resumeReading(): void
    /** The client did not read for `ackTimeoutMs`. */
    acksNotRead(): void
  }
}

const pingResponse = 0xd0
const ackBytes = 4
/** Reason codes of MQTT 5 that refuse. */
const refusingFrom = 0x80
/** The buffer of a commit begins with what the last one needed, up to this. */
const startBytesMax = 1024

export function createAckOutput(deps: Deps, options: AckOutputOptions): AckOutput {
  return new Output(deps, options)
}

/** A connection that waits for nothing has no buffer: the socket gets each one as it is. */
class Output implements AckOutput {
  private readonly socket: DeviceSocket
  private readonly deps: Omit<Deps, 'socket'>
  private readonly options: AckOutputOptions
  private bytes: Buffer | null = null
  private end = 0
  private startBytes = ackBytes
  private blocked = false
  private pingUnwritten = false
  private cancelTimeout: CancelTimer | null = null

  constructor({ socket, ...deps }: Deps, options: AckOutputOptions) {
    this.socket = socket
    this.deps = deps
    this.options = options
  }

  addAck(head: number, messageId: number, code: number): void {
    if (this.socket.destroyed) return
    const bytes = this.add(head, code === 0 ? 2 : 3)
    const { end } = this
    bytes[end] = messageId >> 8
    bytes[end + 1] = messageId & 0xff
    this.end = end + 2
    const { version5 } = this.deps.gate
    if (version5 === null) return
    // The last packet of a message: a PUBREC is the last one only where it refuses.
    if (head !== pubrec || code >= refusingFrom) version5.quota.free()
    if (code === 0) return
    bytes[end + 2] = code
    this.end = end + 3
  }

  addPingResponse(): boolean {
    if (this.socket.destroyed) return false
    this.add(pingResponse, 0)
    const first = !this.pingUnwritten
    this.pingUnwritten = true
    return first
  }

  private add(head: number, remainingLength: number): Buffer {
    const { end } = this
    if (end === 0) this.deps.writer.add(this.deps.gate)
    let bytes = this.bytes ?? Buffer.allocUnsafe(this.startBytes)
    if (end + 2 + remainingLength > bytes.length) {
      const larger = Buffer.allocUnsafe(bytes.length * 2 + ackBytes)
      bytes.copy(larger, 0, 0, end)
      bytes = larger
    }
    this.bytes = bytes
    bytes[end] = head
    bytes[end + 1] = remainingLength
    this.end = end + 2
    return bytes
  }

  write(): void {
    const { bytes, end, socket } = this
    this.bytes = null
    this.end = 0
    this.pingUnwritten = false
    if (bytes === null || socket.destroyed) return
    this.startBytes = Math.min(startBytesMax, Math.max(ackBytes, end))
    if (!socket.write(end === bytes.length ? bytes : bytes.subarray(0, end))) this.block()
  }

  isBlocked(): boolean {
    // aedes writes to the socket too, and reads on however much of that waits.
    if (!this.blocked && this.socket.writableNeedDrain) this.block()
    return this.blocked
  }

  private block(): void {
    if (this.blocked) return
    this.blocked = true
    const { clock, gate } = this.deps
    this.cancelTimeout = clock.after(this.options.ackTimeoutMs, () => gate.acksNotRead())
    this.socket.once('drain', () => {
      this.blocked = false
      this.close()
      gate.resumeReading()
    })
  }

  close(): void {
    this.cancelTimeout?.()
  }
}
