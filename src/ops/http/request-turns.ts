// request-turns.ts: requests wait for each other, so that many of them cost the devices no time.
//
// Node parses all requests in a chunk of a connection at once and hands each over before the one before it is
// answered: 64 KiB hold a thousand. A status takes milliseconds, and no device would get an acknowledgement
// until the last of them is made. So
//
//   a connection has one request at a time: one that comes before the answer to the last one ends it
//   between the beginnings of two answers the event loop turns, for all connections together
//
// The number of those that wait is the number of connections, which listening.ts bounds.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type RequestTurns = {
  /** False: the connection was ended, because its last request is not answered. */
  begin(socket: Socket, response: ServerResponse): boolean
  /** Resolves when the next answer may be made. */
  next(): Promise<void>
}

export function createRequestTurns(): RequestTurns {
  const busy = new WeakSet<Socket>()
  let last = Promise.resolve()

  return {
    begin(socket, response) {
      if (socket.destroyed) return false
      if (busy.has(socket)) {
        socket.destroy()
        return false
      }
      busy.add(socket)
      const end = () => void busy.delete(socket)
      response.once('finish', end).once('close', end)
      return true
    },
    next() {
      last = last.then(turn)
      return last
    },
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
