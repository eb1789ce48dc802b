// tls-root-cause.ts: what a connection failed of in the first place. Where a peer says in a TLS alert why it hangs up, undici
// tells only that the other side closed: the alert comes first, as an error of the socket, and is forgotten.

import type { buildConnector } from 'undici'

export type TlsRootCause = {
  connector: buildConnector.connector
  /** The first error of the socket that a failure speaks of; else the failure itself. */
  of(this: void, failure: unknown): unknown
}

/** Bound: one entry for each connection that just failed. */
export function createTlsRootCause(connect: buildConnector.connector): TlsRootCause {
  const faults = new Map<number, Error>()

  return {
    connector: (asked, callback) =>
      connect(asked, (...ended) => {
        const [error, socket] = ended
        if (error === null) {
          // A destroyed socket knows its port no more.
          const { localPort = 0 } = socket
          socket.once('error', (fault) => faults.set(localPort, fault))
          // Whoever was told of the failure has looked by then.
          socket.once('close', () => setImmediate(() => faults.delete(localPort)))
        }
        callback(...ended)
      }),
    of: (failure) => faults.get(localPortOf(failure)) ?? failure,
  }
}

/** undici names the connection in the errors that it makes of its end. */
function localPortOf(failure: unknown): number {
  const { socket } = Object(failure) as { socket?: { localPort?: number } }
  return socket?.localPort ?? -1
}
