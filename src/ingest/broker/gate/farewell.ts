// farewell.ts: how the gateway ends a connection. A connection that is leaving takes nothing more: what
// follows a fault in the same portion is not read, and what was read is not answered.

import type { Clock } from '../../../std/clock.ts'
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

type Deps = { socket: DeviceSocket; clock: Clock; reader: { stopReading(): void } }

export function createFarewell(deps: Deps): Farewell {
  return new ConnectionEnd(deps)
}

/** A class, because there is one for each connection (gate.ts). */
class ConnectionEnd implements Farewell {
  leaving = false
  ended = false
  private readonly deps: Deps

  constructor(deps: Deps) {
    this.deps = deps
  }

  closed(): void {
    this.ended = true
  }

  leave(last: Buffer | null): void {
    const { reader, socket } = this.deps
    this.leaving = true
    if (last === null) {
      socket.destroy()
      return
    }
    reader.stopReading()
    socket.write(last)
    socket.destroySoon()
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
      socket.destroySoon()
    })
  }
}
