// listeners.ts: the listening sockets of the broker, `mqtt://` over TCP and `mqtts://` over TLS.

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { codeOf, GatewayError, messageOf } from '../../../std/gateway-error.ts'
import type { Secret } from '../../../std/secret.ts'

export type TlsOptions = {
  /** PEM texts: certificate chain and private key of the gateway. */
  cert: string
  key: Secret
  /** Authorities of client certificates; where set, a client without one of theirs is refused. */
  clientCa: string | null
}

export type ListenerOptions = { host: string; port: number; tls: TlsOptions | null }

export type Listener = {
  /** Its address, with the port that the system chose. */
  readonly url: string
  /** Takes no further connection; open ones stay. */
  close(): void
}

export type ListenerDeps = {
  /** Called with each connected socket; for TLS after the handshake. */
  connected: (socket: Socket, certificateName: string | null) => void
  /** Whether one more connection is allowed. */
  admits: (socket: Socket) => boolean
  failed: (fault: GatewayError) => void
}

/**
 * What one socket buffers before TCP slows the device down, besides one read of at most 64 KiB. Small,
 * because thousands of sockets may fill it while reading is paused.
 */
const bufferBytes = 16 * 1024

/** Rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
export function openListener(
  deps: ListenerDeps,
  { host, port, tls }: ListenerOptions,
  handshakeTimeoutMs: number,
): Promise<Listener> {
  const scheme = tls === null ? 'mqtt' : 'mqtts'
  const hostText = host.includes(':') ? `[${host}]` : host
  const urlOf = (port: number) => `${scheme}://${hostText}:${port}`
  // Acks are small and sent alone: with Nagle's algorithm each would wait for the device's delayed TCP ack.
  const socketOptions = { noDelay: true, highWaterMark: bufferBytes, allowHalfOpen: false }

  const server = tls === null ? createServer(socketOptions) : createSecureServer()
  server.on('connection', (socket: Socket) => {
    // A broken handshake, or an error before the broker handles errors, must not end the process.
    socket.on('error', () => socket.destroy())
    if (!deps.admits(socket)) socket.destroy()
    else if (tls === null) deps.connected(socket, null)
  })
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(unavailable(urlOf(port), error)))
    server.listen({ host, port }, () => {
      server.removeAllListeners('error')
      server.on('error', (error) => deps.failed(unavailable(urlOf(port), error)))
      const { port: chosen } = server.address() as AddressInfo
      resolve({ url: urlOf(chosen), close: () => void server.close() })
    })
  })

  function createSecureServer(): Server {
    const { cert, key, clientCa } = tls!
    const secure = createTlsServer({
      ...socketOptions,
      cert,
      key: key.reveal(),
      handshakeTimeout: handshakeTimeoutMs,
      ...(clientCa === null ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
    })
    secure.on('secureConnection', (socket) => {
      if (!socket.destroyed) deps.connected(socket, certificateNameOf(socket))
    })
    secure.on('tlsClientError', (_error, socket) => socket.destroy())
    return secure
  }
}

/** The common name of a certificate that a configured authority signed. */
function certificateNameOf(socket: TLSSocket): string | null {
  if (!socket.authorized) return null
  const name = socket.getPeerCertificate().subject.CN
  return typeof name === 'string' && name !== '' ? name : null
}

function unavailable(url: string, error: unknown): GatewayError {
  const what = `Cannot listen on ${url}.`
  const why = `${messageOf(error)}.`
  if (codeOf(error) === 'EADDRINUSE')
    return new GatewayError('ADDRESS_IN_USE', {
      what,
      why,
      act: 'Stop the other process (`ss -ltnp` lists it), or choose another port in ingest.broker.listeners.',
      cause: error,
    })
  return new GatewayError('ADDRESS_UNAVAILABLE', {
    what,
    why,
    act:
      'Choose an address of this machine in ingest.broker.listeners (`ip address` lists them). ' +
      'Ports below 1024 need a privilege.',
    cause: error,
  })
}
