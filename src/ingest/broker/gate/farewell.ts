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
  /** Ends the connection once everything is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

type Deps = { socket: DeviceSocket; clock: Clock; stopReading: () => void }

export function createFarewell({ socket, clock, stopReading }: Deps): Farewell {
  let leaving = false
  let ended = false
  socket.once('close', () => {
    ended = true
  })
  return {
    get ended() {
      return ended
    },
    get leaving() {
      return leaving
    },
    leave,
    end,
  }

  function leave(last: Buffer | null): void {
    leaving = true
    if (last === null) {
      socket.destroy()
      return
    }
    stopReading()
    socket.write(last)
    socket.destroySoon()
  }

  function end(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (ended) {
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
