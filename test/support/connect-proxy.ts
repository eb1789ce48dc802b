// connect-proxy.ts: an HTTP proxy on loopback: CONNECT, with or without a password, and with faults. The proxy resolves
// the names, so a test may use any name.

import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Certificate } from './certificates.ts'

export type ConnectProxy = {
  url: string
  /** The requested targets, in order: `host:port`. */
  asked: string[]
  /** Open tunnels and requests. */
  open(): number
  /** Needs this Proxy-Authorization from now on, and closes what is open. */
  require(authorization: string): void
}

type Options = {
  /** Needs this Proxy-Authorization. */
  authorization?: string
  /** Answers this instead of opening a tunnel; `hang`: no answer. */
  mood?: number | 'hang' | 'cut'
  /** Speaks TLS itself. */
  tls?: Certificate
}

export async function startConnectProxy({
  authorization: first,
  mood,
  tls,
}: Options = {}): Promise<ConnectProxy> {
  let authorization = first
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const server = tls ? createTlsServer(tls) : createServer()
  server.on('connect', (request: IncomingMessage, stream) => {
    const socket = stream as Socket
    const authority = request.url ?? ''
    asked.push(authority)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    if (authorization !== undefined && request.headers['proxy-authorization'] !== authorization)
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n')
    else if (mood === 'cut') socket.destroy()
    else if (mood === 'hang') socket.resume().on('end', () => socket.end())
    else if (mood !== undefined) socket.end(`HTTP/1.1 ${mood} Mood\r\ncontent-length: 2\r\n\r\nno`)
    else join(socket, Number(authority.split(':').at(-1)))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls ? 'https://localhost' : 'http://127.0.0.1'}:${port}`,
    asked,
    open: () => sockets.size,
    require(next) {
      authorization = next
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Every name is this machine. */
function join(socket: Socket, port: number): void {
  const onward = connect({ host: '127.0.0.1', port }, () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    socket.pipe(onward).pipe(socket)
  })
  onward.on('error', () => socket.destroy())
  onward.on('close', () => socket.destroy())
  socket.on('close', () => onward.destroy())
}
