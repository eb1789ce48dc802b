// tls-root-cause.ts: the first error of a connection. Where a peer says in a TLS alert why it closes the
// connection, undici reports only that the other side closed: the alert comes first, as an error of the
// socket, and is lost.

import type { buildConnector } from 'undici'

export type TlsRootCause = {
  connector: buildConnector.connector
  /** The first error of the socket that `failure` is about; else `failure` itself. */
  of(this: void, failure: unknown): unknown
}

/** Bound: one entry for each connection that just failed. */
export function createTlsRootCause(connect: buildConnector.connector): TlsRootCause {
  const causes = new Map<number, Error>()

  return {
    connector: (options, callback) =>
      connect(options, (...result) => {
        const [error, socket] = result
        if (error === null) {
          // A destroyed socket no longer knows its port.
          const { localPort = 0 } = socket
          socket.once('error', (cause) => causes.set(localPort, cause))
          // By that time the failure has been reported.
          socket.once('close', () => setImmediate(() => causes.delete(localPort)))
        }
        callback(...result)
      }),
    of: (failure) => causes.get(localPortOf(failure)) ?? failure,
  }
}

/** undici names the connection in the errors that it creates at its end. */
function localPortOf(failure: unknown): number {
  const { socket } = Object(failure) as { socket?: { localPort?: number } }
  return socket?.localPort ?? -1
}
