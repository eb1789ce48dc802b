// chunk-pieces.ts: hands the bytes of a connection to the parser in small pieces. Node parses a whole chunk
// of 64 KiB at once, and a thousand requests in it cost several milliseconds and megabytes also where the
// connection was ended after the second one (request-turns.ts). In pieces, the rest is not parsed.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Some tens of the shortest requests, or a usual one. */
const pieceBytes = 2048

export function parseInPieces(server: Server, event: 'connection' | 'secureConnection'): void {
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
