// listening.ts: the servers of ops: one on TCP, with TLS where it is configured, and one on the control
// socket. Headers, times and connections are bounded: a port scanner must not cost the daemon anything.
//
//   idle-connections.ts   closes idle connections where there are too many
//   malformed-requests.ts answers what is not HTTP
//   control-socket.ts     the UNIX socket: its mode, and what is in its place

import type { Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Clock } from '../../../std/clock.ts'
import { listen } from '../../../std/listening-port/listening-port.ts'
import { createServer } from '../../../std/node-http.ts'
import { codeOf, GatewayError, messageOf } from '../../../std/gateway-error.ts'
import { isPortCheck, tlsFailureOf } from '../../../std/tls/tls.ts'
import { opsUrl, type OpsConfig } from '../../config.ts'
import { listenOnSocket, socketIdentity, type SocketPlace } from './control-socket.ts'
import { answerMalformedRequests } from './malformed-requests.ts'
import { closeIdleConnections, type ConnectionCounters } from './idle-connections.ts'

export type { SocketPlace } from './control-socket.ts'
export type { ConnectionCounters } from './idle-connections.ts'

const limits = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  requireHostHeader: true,
  insecureHTTPParser: false,
} as const
/** Beyond this, idle connections are closed. */
const connectionsMax = 64
/** A connection that does not read for this long is closed. */
const idleMs = 10_000

export type Listener = {
  /** With the port that the system chose; null while it is not open. */
  readonly url: string | null
  /** Its address, and why it is not open; null where it is. */
  readonly fault: { listener: string; fault: GatewayError } | null
  connections: ConnectionCounters
  /** TLS handshakes that failed, by reason. */
  tlsFailures: ReadonlyMap<string, number>
  /** For the next handshakes. Throws CERTIFICATES_INVALID; the former certificate then stays in force. */
  renew(tls: OpsConfig['tls']): void
  close(): Promise<void>
}

/**
 * `answer` gets every request. Resolves after the first try to listen: where it failed, the server opens as
 * soon as it can.
 */
export async function listenOnTcp(
  answer: NonNullable<Parameters<typeof createServer>[1]>,
  clock: Clock,
  { listen: { host, port: wanted }, tls }: Pick<OpsConfig, 'listen' | 'tls'>,
): Promise<Listener> {
  const secure: TlsServer | null = tls
    ? createTlsServer({ ...limits, ...contextOf(tls), handshakeTimeout: 5000 }, answer)
    : null
  const server: Server = secure ?? createServer(limits, answer)
  const tlsFailures = new Map<string, number>()
  secure?.on('tlsClientError', (error, socket) => {
    const reason = tlsFailureOf(error, socket)
    if (!isPortCheck(reason, socket)) tlsFailures.set(reason, (tlsFailures.get(reason) ?? 0) + 1)
  })
  answerMalformedRequests(server)
  server.setTimeout(idleMs)
  parseInPieces(server, tls ? 'secureConnection' : 'connection')
  const connections = closeIdleConnections(server, connectionsMax)
  const urlOf = (port: number) => opsUrl({ host, port }, tls ? 'https' : 'http')
  let url: string | null = null
  let fault: GatewayError | null = null
  const address = { host, port: wanted }
  const listening = await listen(server, address, {
    clock,
    opened(port) {
      url = urlOf(port)
      fault = null
    },
    failed(error) {
      // An open one could not accept a connection (no file descriptors left); the client tries again.
      if (!server.listening) fault = faultOf(error, host, wanted)
    },
  })
  return {
    get url() {
      return url
    },
    get fault() {
      return fault && { listener: urlOf(wanted), fault }
    },
    connections,
    tlsFailures,
    renew,
    close() {
      listening.close()
      return closed(server)
    },
  }

  function renew(next: OpsConfig['tls']): void {
    if (next === undefined) return
    try {
      secure?.setSecureContext(contextOf(next))
    } catch (error) {
      throw new GatewayError('CERTIFICATES_INVALID', {
        what: `The new certificate of ${url ?? urlOf(wanted)} cannot be used.`,
        why: `${messageOf(error)}.`,
        act: 'Correct the files that `ops.tls` names.',
        cause: error,
      })
    }
  }
}

function contextOf({ cert, key }: NonNullable<OpsConfig['tls']>) {
  return { cert, key: key.reveal(), minVersion: 'TLSv1.2' } as const
}

export type SocketListener = {
  path: string
  /** False where the file was deleted or replaced: nobody can connect any more. */
  isThere(): boolean
  close(): Promise<void>
}

/** Rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
export async function listenOnControlSocket(
  answer: NonNullable<Parameters<typeof createServer>[1]>,
  place: SocketPlace,
): Promise<SocketListener> {
  const server = createServer(limits, answer)
  answerMalformedRequests(server)
  server.maxConnections = connectionsMax
  server.setTimeout(idleMs)
  try {
    await listenOnSocket(server, place)
  } catch (error) {
    server.close()
    throw error
  }
  const identity = socketIdentity(place.path)
  return {
    path: place.path,
    isThere: () => socketIdentity(place.path) === identity,
    close: () => closed(server),
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

function faultOf(error: Error, host: string, port: number): GatewayError {
  const what = `Cannot listen for HTTP on ${host}:${port} (ops.listen).`
  if (codeOf(error) === 'EADDRINUSE') {
    return new GatewayError('ADDRESS_IN_USE', {
      what,
      why: 'Another process listens there, perhaps another gateway.',
      act:
        `Find it with \`ss -ltnp 'sport = :${port}'\` and stop it: the gateway tries again until the port is free. Or set ` +
        'ops.listen to another port and restart the gateway.',
      cause: error,
    })
  }
  return new GatewayError('ADDRESS_UNAVAILABLE', {
    what,
    why: messageOf(error),
    act:
      'Set ops.listen to an address of this machine and a port above 1023, and restart the gateway. Where the address is ' +
      'yet to come, do nothing: the gateway tries again.',
    cause: error,
  })
}

// Hands the bytes of a connection to the parser in small pieces. Node parses a whole chunk
// of 64 KiB at once, and a thousand requests in it cost several milliseconds and megabytes also where the
// connection was ended after the second one (request-turns.ts). In pieces, the rest is not parsed.

/** Some tens of the shortest requests, or a usual one. */
const pieceBytes = 2048

function parseInPieces(server: Server, event: 'connection' | 'secureConnection'): void {
  server.on(event, (socket: Socket) => {
    // Without a listener of ours, Node parses what the system has read and does not push it to the stream.
    socket.on('data', () => undefined)
    const pushOn = socket.push.bind(socket)
    socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (!(chunk instanceof Buffer)) return pushOn(chunk, encoding)
      let readsOn = true
      for (let at = 0; at < chunk.length && !socket.destroyed; at += pieceBytes)
        readsOn = pushOn(chunk.subarray(at, at + pieceBytes))
      return readsOn
    }
  })
}
