// tls-service.ts: an HTTPS service on loopback that accepts every batch, with the certificate of the test.

import { createServer } from 'node:https'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { Certificate } from './certificates.ts'

export type TlsService = {
  port: number
  url: string
  requests: { path: string; host: string; clientName: string | null; body: string }[]
  /** Connections since the start, the most at once, and those that are open. */
  connections(): { made: number; most: number; open: number }
  /** Valid from the next connection on; open connections are closed. */
  renew(certificate: Certificate): void
}

type Options = Certificate & {
  /** Asks for a certificate of this authority. */
  clientCa?: string
  /** OpenSSL lets no server have weak keys at its usual level. */
  ciphers?: string
  answer?: unknown
  date?: () => Date
  /** Delay of each answer. */
  delayMs?: number
}

export async function startTlsService({
  cert,
  key,
  clientCa,
  ciphers,
  answer,
  date,
  delayMs = 0,
}: Options): Promise<TlsService> {
  const requests: TlsService['requests'] = []
  const sockets = new Set<Socket>()
  let made = 0
  let most = 0
  const mutual = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true }
  const server = createServer({ cert, key, ...mutual, ...(ciphers && { ciphers }) }, (request, response) => {
    let body = ''
    request.on('data', (part: Buffer) => (body += part.toString('latin1')))
    request.on('end', () => {
      const { subject } = 'getPeerCertificate' in request.socket ? peerOf(request.socket) : {}
      requests.push({
        path: request.url ?? '',
        host: request.headers.host ?? '',
        clientName: subject ?? null,
        body,
      })
      if (date) response.setHeader('date', date().toUTCString())
      response.setHeader('content-type', 'application/json')
      setTimeout(() => response.end(JSON.stringify(answer ?? {})), delayMs)
    })
  })
  server.on('secureConnection', (socket) => {
    made += 1
    sockets.add(socket)
    most = Math.max(most, sockets.size)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `https://localhost:${port}`,
    requests,
    connections: () => ({ made, most, open: sockets.size }),
    renew(certificate) {
      server.setSecureContext(certificate)
      for (const socket of sockets) socket.destroy()
    },
  }
}

function peerOf(socket: object): { subject?: string } {
  const { getPeerCertificate } = socket as {
    getPeerCertificate?: () => { subject?: { CN?: string | string[] } } | undefined
  }
  const name = getPeerCertificate?.call(socket)?.subject?.CN
  return typeof name === 'string' ? { subject: name } : {}
}

export type TlsFront = {
  url: string
  /** Forwards connections to the plain service at this URL. */
  lead(url: string): void
  /** From the next connection on. */
  renew(certificate: Certificate): void
  /** Of the certificates of the clients, one for each connection. */
  clientNames: readonly (string | null)[]
  /** Open connections. */
  open(): number
  /** Closes the open connections. */
  close(): void
}

/** TLS in front of a plain service, as a balancer does it. `clientCa`: asks for a certificate of this authority. */
export async function startTlsFront(
  certificate: Certificate,
  { clientCa }: { clientCa?: string } = {},
): Promise<TlsFront> {
  let target = ''
  const sockets = new Set<Socket>()
  const clientNames: (string | null)[] = []
  const mutual = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true }
  const server = createTlsServer({ ...certificate, ...mutual, ALPNProtocols: ['http/1.1'] }, (socket) => {
    clientNames.push(peerOf(socket).subject ?? null)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    const { hostname, port } = new URL(target)
    const onward = connect({ host: hostname, port: Number(port) })
    socket.pipe(onward).pipe(socket)
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on('error', () => undefined)
      one.on('close', () => other.destroy())
    }
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => void server.close())
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    lead: (url) => void (target = url),
    renew: (next) => server.setSecureContext({ ...next, ...mutual }),
    clientNames,
    open: () => sockets.size,
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}
