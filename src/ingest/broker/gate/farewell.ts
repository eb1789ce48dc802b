// farewell.ts: how the gateway ends a connection. A connection that is leaving takes nothing more: what
// follows a fault in the same portion is not read, and what was read is not answered.
//
// Without a last packet the socket is destroyed at once. With one (DISCONNECT of MQTT 5, a refusing CONNACK),
// the client must be able to read it: bytes of a client that are unread when its socket is closed have the
// kernel reset the connection, and a reset may delete what the client has not read yet. So the last packet is
// sent with FIN, and what the client still sends is read and dropped until it closes its side.
//
// Bounds: `lingerMs` in time, and in bytes `bytesMax` (packet-reader.ts). The connection counts in all
// limits until its end.

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { DeviceSocket } from './device-socket.ts'

export type Farewell = {
  /** True from the first moment; the socket may still be open. */
  readonly leaving: boolean
  /** The end of the socket was seen. `socket.closed` is true before that, while aedes still reports why. */
  readonly ended: boolean
  /** Closes the connection at once, or after `last` was sent. */
  leave(last: Buffer | null): void
  /** The socket is closed. */
  closed(): void
  /** Ends the connection once everything is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

type Deps = { socket: DeviceSocket; clock: Clock; reader: { discardAll(): void } }

const lingerMs = 1000

export function createFarewell(deps: Deps): Farewell {
  return new ConnectionEnd(deps)
}

/** A class, because there is one for each connection (gate.ts). */
class ConnectionEnd implements Farewell {
  leaving = false
  ended = false
  private readonly deps: Deps
  private cancelLinger: CancelTimer | null = null

  constructor(deps: Deps) {
    this.deps = deps
  }

  closed(): void {
    this.ended = true
    this.cancelLinger?.()
  }

  leave(last: Buffer | null): void {
    const { clock, reader, socket } = this.deps
    this.leaving = true
    if (last === null || socket.destroyed) {
      socket.destroy()
      return
    }
    socket.write(last)
    // Where the client has closed its side, nothing of it is to come.
    if (socket.readableEnded) socket.destroySoon()
    else socket.end()
    this.cancelLinger = clock.after(lingerMs, () => socket.destroy())
    reader.discardAll()
  }

  end(timeoutMs: number): Promise<void> {
    const { clock, socket } = this.deps
    return new Promise((resolve) => {
      if (this.ended) {
        resolve()
        return
      }
      const cancel = clock.after(timeoutMs, () => socket.destroy())
      socket.once('close', () => {
        cancel()
        resolve()
      })
      if (socket.webSocket && !this.leaving) socket.webSocket.closeReason = 'gateway_stopping'
      if (!this.leaving) socket.destroySoon()
    })
  }
}
