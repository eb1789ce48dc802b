// device-socket.ts: what the broker uses of the socket of a device: one of TCP or TLS, or another stream.
//
// `push` is replaced by socket-buffer.ts.

import type { Duplex } from 'node:stream'
import type { ClientDropReason, DisconnectReason } from '../client-faults.ts'

export type DeviceSocket = Duplex & {
  /** Ends it once everything is written. */
  destroySoon(): void
  /** Probes of TCP, for clients that promise no packets. @types/node lacks the last two for net.Socket. */
  setKeepAlive(enable: boolean, afterMs: number, intervalMs: number, count: number): unknown
  /** Where the stream is in a WebSocket. */
  readonly webSocket?: WebSocketFrames
}

export type WebSocketFrames = {
  /** Why the gateway is about to end it; chooses the code of the close frame. */
  closeReason: ClientDropReason | DisconnectReason | null
  watch(watcher: FrameWatcher): void
}

export type FrameWatcher = {
  /** A ping, a pong or a frame without payload came: it costs as much as a control packet. */
  countControlFrame(): void
  drop(reason: ClientDropReason, detail?: string): void
}
