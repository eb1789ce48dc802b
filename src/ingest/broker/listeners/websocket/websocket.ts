// websocket.ts: MQTT over WebSocket: the HTTP request at the begin of a connection, and what follows.
//
//   socket (plain or TLS) -> node:http -> upgrade-rules.ts -> ws: 101 -> frame-stream.ts -> gate
//                                                '-> 400, 403, 404, 426, and the end
//
//   upgrade-rules.ts     which requests become a WebSocket
//   frame-reader.ts      the bytes of MQTT in the frames
//   frame-stream.ts      a WebSocket as a stream
//   close-codes.ts       why it ends, as the code of the close frame
//   websocket-config.ts  the config
//
// A connection has one request. It must be complete within `handshakeTimeoutMs`, and its head is at most
// 8 KiB. `X-Forwarded-For` and the like are not read: everybody can send them. Behind a proxy, the
// address of the client comes by the PROXY protocol.

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer, type ServerOptions } from 'ws'
import { createServer, STATUS_CODES } from '../../../../std/node-http.ts'
import type { CancelTimer, Clock } from '../../../../std/clock.ts'
import { codeOf } from '../../../../std/gateway-error.ts'
import type { RefusalReason } from '../../client-faults.ts'
import { closeTimeoutMs, FrameStream } from './frame-stream.ts'
import {
  noUpgrade,
  notValid,
  subprotocol,
  upgradeRefusal,
  type UpgradeOptions,
  type UpgradeRefusal,
} from './upgrade-rules.ts'

export type WebSocketListenerOptions = UpgradeOptions & {
  /** From the connection to the end of its request. */
  handshakeTimeoutMs: number
  /** What one stream buffers before the network is not read. */
  bufferBytes: number
}

/** One of the two is called, or none where the connection ends before. */
export type WebSocketCalls = {
  opened(stream: FrameStream): void
  /** `found`: what of the request is the reason, where that is one value. */
  refused(reason: RefusalReason, found: string | null): void
}

type Handshake = { calls: WebSocketCalls; cancelTimeout: CancelTimer }

const headBytesMax = 8192
/** Of a control frame: ws gets no other one. */
const controlBytesMax = 125

export function createWebSocketListener(
  clock: Clock,
  options: WebSocketListenerOptions,
): { begin(socket: Socket, calls: WebSocketCalls): void } {
  /** Connections whose request was not answered. */
  const handshakes = new WeakMap<object, Handshake>()
  // It listens to nothing: it gets its connections from the listener, and its own timeouts do not run.
  const http = createServer({ maxHeaderSize: headBytesMax, insecureHTTPParser: false })
  // @types/ws lacks closeTimeout.
  const serverOptions: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: controlBytesMax,
    closeTimeout: closeTimeoutMs,
    handleProtocols: () => subprotocol,
  }
  const webSockets = new WebSocketServer(serverOptions)
  http.on('upgrade', onUpgrade)
  // Node also reads an upgrade to another protocol, or one without `Connection: upgrade`, as none.
  http.on('request', ({ socket }: IncomingMessage) => refuse(socket, noUpgrade))
  http.on('connect', (_request, socket) => refuse(socket as Socket, notValid('CONNECT is not possible.')))
  http.on('clientError', (error, socket) => {
    if (codeOf(error) === 'ECONNRESET') socket.destroy()
    else refuse(socket as Socket, faultOf(error))
  })
  webSockets.on('wsClientError', ({ message }, socket) => refuse(socket as Socket, notValid(`${message}.`)))
  return { begin }

  function begin(socket: Socket, calls: WebSocketCalls): void {
    const cancelTimeout = clock.after(options.handshakeTimeoutMs, () => {
      if (take(socket)) calls.refused('websocket_timeout', null)
      socket.destroy()
    })
    handshakes.set(socket, { calls, cancelTimeout })
    socket.once('close', cancelTimeout)
    http.emit('connection', socket)
  }

  /** Null where its request was answered before. */
  function take(socket: object): Handshake | null {
    const handshake = handshakes.get(socket) ?? null
    handshakes.delete(socket)
    return handshake
  }

  function onUpgrade(request: IncomingMessage, stream: object, head: Buffer): void {
    const socket = stream as Socket
    const refusal = upgradeRefusal(request, options)
    if (refusal !== null) {
      refuse(socket, refusal)
      return
    }
    webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      const handshake = take(socket)
      const frames = new FrameStream(webSocket, socket, options.bufferBytes)
      if (handshake === null) {
        frames.destroy()
        return
      }
      handshake.cancelTimeout()
      socket.off('close', handshake.cancelTimeout)
      handshake.calls.opened(frames)
    })
  }

  /** The timeout stays until the connection is closed: a client may leave the answer unread. */
  function refuse(socket: Socket, refusal: UpgradeRefusal): void {
    const handshake = take(socket)
    if (handshake === null) return
    handshake.calls.refused(refusal.reason, refusal.found ?? null)
    socket.on('error', () => socket.destroy())
    socket.end(answerOf(refusal), () => socket.destroy())
  }
}

function faultOf(error: Error): UpgradeRefusal {
  if (codeOf(error) === 'HPE_HEADER_OVERFLOW')
    return notValid('The head of the request is larger than 8 KiB.')
  return { ...notValid('The request is not HTTP.'), reason: 'not_http' }
}

function answerOf({ status, text, headers }: UpgradeRefusal): string {
  const body = `${text}\n`
  const all = {
    ...headers,
    Connection: 'close',
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
