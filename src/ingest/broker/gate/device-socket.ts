// device-socket.ts: what the broker uses of the socket of a device: one of TCP or TLS, or another stream.
//
// `read` and `push` are replaced by socket-buffer.ts. aedes is the only one that calls `read(null)`.

import type { Duplex } from 'node:stream'

export type DeviceSocket = Duplex & {
  /** Ends it once everything is written. */
  destroySoon(): void
  /** Probes of TCP, for clients that promise no packets. @types/node lacks the last two for net.Socket. */
  setKeepAlive(enable: boolean, afterMs: number, intervalMs: number, count: number): unknown
}
