// listeners.ts: the listening sockets of the broker: `mqtt://` over TCP, `mqtts://` over TLS, `ws://` and
// `wss://` over WebSocket (websocket.ts).
//
//   accept -> limits -> (PROXY protocol header -> limits by the client's address) -> (TLS) -> (WebSocket)
//          -> broker
//
// A flood of connections meets the limits first, where refusing one costs the accept and a close. With
// `proxyTrusted`, connections come from balancers at these addresses alone, and each begins with a header
// that names the client (proxy-connection.ts).

import type { X509Certificate } from 'node:crypto'
import { createServer, type Socket, BlockList, type SocketAddress } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { codeOf, GatewayError, messageOf } from '../../../std/gateway-error.ts'
import type { Clock } from '../../../std/clock.ts'
import { listen } from '../../../std/listening-port/listening-port.ts'
import { carrierOf, isPortCheck, tlsFailureOf, type TlsFailure } from '../../../std/tls/tls.ts'
import {
  plainAddress,
  type Connection,
  type ConnectionLimits,
} from '../connection-limits/connection-limits.ts'
import type { StateSource } from '../../../domain/condition-state.ts'
import { createCertificateCheck, type CertificateCheck } from '../access/certificate-check.ts'
import type { DeviceSocket } from '../gate/device-socket.ts'
import { listenUrlText } from './listen-url.ts'
import { createHandshakeFailures, type TlsUse } from './handshake-failures.ts'
import { createTrust, readProxyHeader, type ProxyResult, type Subnet } from './proxy-connection.ts'
import { beginTls, certificateNameOf, createTlsServer, type ListenerTls } from './tls-server.ts'
import type { UpgradeOptions } from './websocket/upgrade-rules.ts'
import { createWebSocketListener } from './websocket/websocket.ts'

export type ListenerOptions = {
  host: string
  port: number
  tls: ListenerTls | null
  /** Null for MQTT without WebSocket. */
  webSocket?: UpgradeOptions | null
  /** Balancers that send the PROXY protocol; where set, no other address may connect. */
  proxyTrusted?: readonly Subnet[]
}

export type Listener = StateSource & {
  /** Its address, with the port that the system chose. */
  url(): string
  isOpen(): boolean
  /** Why it is not open, or could not accept the last connection; null where neither is so. */
  fault(): GatewayError | null
  /** Of accepted certificates; null where authorities and revocation lists are those in force. */
  checkOf(next: ListenerTls | null): CertificateCheck | null
  /** For the next handshakes; throws where the new texts cannot be used, and keeps the old ones. */
  renew(tls: ListenerTls | null): void
  /** Takes no further connection; open ones stay. */
  close(): void
}

export type ListenerDeps = {
  /** Called with each connected socket; for TLS and WebSocket after the handshake. */
  connected: (socket: DeviceSocket, origin: ConnectionOrigin) => void
  limits: Pick<ConnectionLimits, 'mayConnect' | 'admit' | 'admitProxy' | 'clientNamed' | 'refuse' | 'end'>
  clock: Clock
  /** It is open: at the start, or when its address can be used. */
  opened: (url: string) => void
  /** A connection ended in its TLS handshake or before its CONNECT, and not because of a limit. */
  handshakeFailed: (reason: TlsFailure, address: string | null) => void
}

type ConnectionOrigin = {
  certificateName: string | null
  connection: Connection
  tls: TlsUse | null
  peerCertificate: (() => X509Certificate | undefined) | null
}

/**
 * What one socket buffers before TCP slows the device down, besides one read of at most 64 KiB. Small,
 * because thousands of sockets may fill it while reading is paused.
 */
const bufferBytes = 16 * 1024

/** Connections that the system keeps until they are accepted, so that those of a whole fleet wait there. */
const backlog = 4096

/** Resolves after the first try: where it failed, the listener opens as soon as it can. */
export async function openListener(
  deps: ListenerDeps,
  { host, port, tls, webSocket = null, proxyTrusted }: ListenerOptions,
  handshakeTimeoutMs: number,
): Promise<Listener> {
  const scheme = webSocket === null ? (tls === null ? 'mqtt' : 'mqtts') : tls === null ? 'ws' : 'wss'
  const urlOf = (port: number) => listenUrlText({ scheme, host, port, path: webSocket?.path ?? null })
  // Acks are small and sent alone: with Nagle's algorithm each would wait for the device's delayed TCP ack.
  const socketOptions = { noDelay: true, highWaterMark: bufferBytes, allowHalfOpen: false }

  const { limits, clock } = deps
  let url = urlOf(port)
  const failures = createHandshakeFailures(clock, () => url)
  let isOpen = false
  let fault: GatewayError | null = null
  const isTrusted = proxyTrusted === undefined ? null : createTrust(proxyTrusted)
  const secure = tls === null ? null : createSecureServer(tls)
  let inForce = tls
  const webSockets =
    webSocket && createWebSocketListener(clock, { ...webSocket, handshakeTimeoutMs, bufferBytes })
  /** Connections in their handshake, by both ends of the socket. */
  const handshakes = new Map<string, Connection>()
  const connectionOf = new WeakMap<Socket, Connection>()
  const streams = new WeakMap<Connection, DeviceSocket>()
  const server = createServer({ ...socketOptions, blockList: createAcceptFilter(mayConnect) }, onSocket)
  const address = { host, port, backlog }
  const listening = await listen(server, address, {
    clock,
    opened(chosen) {
      url = urlOf(chosen)
      isOpen = true
      fault = null
      deps.opened(url)
    },
    failed: (error) => (fault = unavailable(url, error)),
  })
  return {
    url: () => url,
    isOpen: () => isOpen,
    fault: () => fault,
    checkOf(next) {
      const { clientCa = null, clientCrl = null } = inForce ?? {}
      if (next === null || (next.clientCa === clientCa && next.clientCrl === clientCrl)) return null
      return createCertificateCheck(next)
    },
    renew(next) {
      if (next === null) return
      secure?.renew(next)
      // What is said of the last failures is about the certificate of before.
      if (next.cert !== inForce?.cert) failures.startAgain()
      inForce = next
    },
    states: failures.states,
    close() {
      isOpen = false
      listening.close()
      server.close()
    },
  }

  /** Asked for each connection before it gets a socket. */
  function mayConnect(address: string): boolean {
    if (isTrusted === null) return limits.mayConnect(address)
    if (isTrusted(address)) return true
    limits.refuse('proxy_untrusted', address)
    return false
  }

  function onSocket(socket: Socket): void {
    fault = null
    // A broken handshake, or an error before the broker handles errors, must not end the process.
    socket.on('error', destroyAtError)
    const address = plainAddress(socket.remoteAddress)
    const close = () => void socket.destroy()
    if (isTrusted === null) {
      const connection = limits.admit(address, close)
      if (connection === null) return
      // It comes once. `once` would take four times the memory.
      socket.on('close', () => ended(connection))
      begin(socket, connection)
      return
    }
    const connection = limits.admitProxy(address, close)
    if (connection === null) return
    socket.once('close', () => ended(connection))
    readProxyHeader({ socket, clock }, handshakeTimeoutMs, (result) => {
      if (isNamed(connection, result)) begin(socket, connection)
      else socket.destroy()
    })
  }

  /** What came in a WebSocket is read on after the end of the socket, and uses memory as long. */
  function ended(connection: Connection): void {
    const stream = streams.get(connection)
    if (stream === undefined || stream.closed) limits.end(connection)
    else stream.once('close', () => limits.end(connection))
  }

  function isNamed(connection: Connection, result: ProxyResult): boolean {
    if (result.kind === 'client') return limits.clientNamed(connection, result.address ?? connection.address)
    const reason = result.kind === 'missing' ? 'proxy_header_missing' : 'proxy_header_invalid'
    limits.refuse(reason, connection.address)
    return false
  }

  function begin(socket: Socket, connection: Connection): void {
    if (secure === null) {
      connected(socket, { certificateName: null, connection, tls: null, peerCertificate: null })
      return
    }
    const ends = endsOf(socket)
    handshakes.set(ends, connection)
    connectionOf.set(socket, connection)
    socket.once('close', () => {
      if (handshakes.get(ends) === connection) handshakes.delete(ends)
    })
    beginTls(secure.server, socket, bufferBytes)
  }

  /** It gets its sockets from `server`, which has read a PROXY protocol header before. */
  function createSecureServer(tls: ListenerTls) {
    const created = createTlsServer(tls, socketOptions, handshakeTimeoutMs)
    created.server.on('secureConnection', (socket) => {
      const connection = handshakes.get(endsOf(socket))
      if (connection === undefined || socket.destroyed) socket.destroy()
      else
        connected(socket, {
          certificateName: certificateNameOf(socket, tls.certificateName),
          connection,
          tls: useOf(connection),
          peerCertificate: () => socket.getPeerX509Certificate(),
        })
    })
    created.server.on('tlsClientError', (error, socket) => {
      socket.destroy()
      reportFailure(error, socket)
    })
    return created
  }

  function connected(socket: Socket, origin: ConnectionOrigin): void {
    if (webSockets === null) {
      deps.connected(socket, origin)
      return
    }
    const { connection, tls } = origin
    const closedUnused = () => tls?.closedUnused()
    socket.once('close', closedUnused)
    webSockets.begin(socket, {
      opened(stream) {
        socket.off('close', closedUnused)
        streams.set(connection, stream)
        deps.connected(stream, origin)
      },
      refused(reason, found) {
        socket.off('close', closedUnused)
        if (!connection.isRefused) limits.refuse(reason, connection.address, found)
      },
    })
  }

  function useOf(connection: Connection): TlsUse {
    return { connectReceived: failures.startAgain, closedUnused: () => failed('tls_unused', connection) }
  }

  function reportFailure(error: Error, socket: TLSSocket): void {
    const carrier = carrierOf(socket)
    const connection = carrier === null ? undefined : connectionOf.get(carrier)
    const reason = tlsFailureOf(error, socket)
    if (connection !== undefined && !isPortCheck(reason, socket)) failed(reason, connection)
  }

  function failed(reason: TlsFailure, { address, isRefused }: Connection): void {
    if (isRefused) return
    deps.handshakeFailed(reason, address)
    failures.failed(reason, address)
  }
}

/** One function for all sockets. */
function destroyAtError(this: Socket): void {
  this.destroy()
}

/** No two open connections have the same. A TLS socket does not tell which socket it was created for. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress}|${remotePort}|${localAddress}|${localPort}`
}

function unavailable(url: string, error: unknown): GatewayError {
  const what = `Cannot listen on ${url}.`
  const why = `${messageOf(error)}.`
  if (codeOf(error) === 'EADDRINUSE')
    return new GatewayError('ADDRESS_IN_USE', {
      what,
      why,
      act:
        'Stop the other process (`ss -ltnp` lists it): the gateway tries again until the port is free. Or choose another ' +
        'port in ingest.broker.listeners and restart the gateway.',
      cause: error,
    })
  return new GatewayError('ADDRESS_UNAVAILABLE', {
    what,
    why,
    act:
      'Choose an address of this machine in ingest.broker.listeners (`ip address` lists them) and restart the gateway. ' +
      'Where the address is yet to come, do nothing: the gateway tries again. Ports below 1024 need a privilege.',
    cause: error,
  })
}

// Refuses a connection by its address before Node creates a socket for it. In a flood of
// thousands per second the sockets would be most of the work, and 40,000 of them leave 60 MB more in the
// heap, which V8 gives back late.
//
// net.Server asks its `blockList`, a net.BlockList, at this place.

class AcceptFilter extends BlockList {
  readonly #mayConnect: (address: string) => boolean

  constructor(mayConnect: (address: string) => boolean) {
    super()
    this.#mayConnect = mayConnect
  }

  override check(given: string | SocketAddress): boolean {
    const address = typeof given === 'string' ? given : given.address
    return !this.#mayConnect(plainAddress(address) ?? address)
  }
}

/** `mayConnect` is called once for each connection. */
function createAcceptFilter(mayConnect: (address: string) => boolean): BlockList {
  return new AcceptFilter(mayConnect)
}
