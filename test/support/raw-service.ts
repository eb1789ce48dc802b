// raw-service.ts: a service on loopback that reads as much of each connection as a test wants and answers what the test
// wants, over plain TCP or TLS.

import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { Certificate } from './certificates.ts'

export type RawConnection = {
  socket: Socket
  /** All bytes that were read from it. */
  received(): Buffer
  /** Bytes of the request body that were read. */
  bodyBytes(): number
}

export type RawService = { url: string; connections: RawConnection[] }

type Options = {
  tls?: Certificate
  /** Called after each part that was read. */
  onData?: (connection: RawConnection) => void
}

export async function startRawService({ tls, onData }: Options = {}): Promise<RawService> {
  const connections: RawConnection[] = []
  const serve = (socket: Socket) => {
    const parts: Buffer[] = []
    let bytes = 0
    let headBytes = -1
    const connection: RawConnection = {
      socket,
      received: () => Buffer.concat(parts),
      bodyBytes: () => (headBytes < 0 ? 0 : bytes - headBytes),
    }
    connections.push(connection)
    socket.on('error', () => undefined)
    socket.on('data', (part: Buffer) => {
      parts.push(part)
      bytes += part.length
      if (headBytes < 0) {
        const end = Buffer.concat(parts).indexOf('\r\n\r\n')
        if (end >= 0) headBytes = end + 4
      }
      onData?.(connection)
    })
  }
  const server = tls ? createTlsServer(tls, serve) : createServer(serve)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        for (const { socket } of connections) socket.destroy()
        server.close(() => resolve())
      }),
  )
  const { port } = server.address() as AddressInfo
  return { url: tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`, connections }
}

/** An HTTP answer with a JSON body. */
export function httpAnswer(status: number, body: unknown, headers = ''): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return `HTTP/1.1 ${status} X\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${headers}\r\n${text}`
}
