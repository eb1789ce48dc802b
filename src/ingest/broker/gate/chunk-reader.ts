// chunk-reader.ts: takes what the network delivers, before it reaches the stream of the socket.
//
//   nothing waits before it, and messages may be read   to the fast path at once
//   a packet that is not complete                       waits here and not in the stream, which keeps each
//                                                       chunk of it
//   anything else                                       into the buffer of the stream, in its place

import type { PartialPacket } from './partial-packet/partial-packet.ts'
import type { SocketBuffer } from './socket-buffer.ts'

export type ChunkReader = {
  /** False: Node is to stop reading the network. */
  read(chunk: Buffer): boolean
}

type Deps = {
  waiting: Pick<SocketBuffer, 'isEmpty' | 'add'>
  partial: PartialPacket
  connection: { readonly closed: boolean }
  /** Of the framing. */
  sizeAt: (bytes: Uint8Array, offset: number) => number
  mayRead: () => boolean
  mayBypassStream: () => boolean
  /** Takes whole packets from the start; returns where it stopped. */
  takeFast: (bytes: Buffer) => number
}

export function createChunkReader(deps: Deps): ChunkReader {
  const { waiting, partial, connection, sizeAt, mayRead, mayBypassStream, takeFast } = deps
  return { read }

  function read(chunk: Buffer): boolean {
    if (!mayBypassStream()) return waiting.isEmpty && mayRead() ? keepPartial(chunk) : waiting.add(chunk)
    let bytes = chunk
    if (partial.started) {
      const taken = partial.append(chunk)
      // A dropped socket needs no rest.
      if (connection.closed || !partial.isWhole) return true
      const whole = partial.take()
      bytes = chunk.subarray(taken)
      if (takeFast(whole) === 0) {
        if (connection.closed) return true
        const more = waiting.add(whole)
        return bytes.length === 0 ? more : waiting.add(bytes)
      }
      if (bytes.length > 0 && !mayBypassStream()) return connection.closed || waiting.add(bytes)
    }
    const start = takeFast(bytes)
    if (start === bytes.length || connection.closed) return true
    const rest = bytes.subarray(start)
    const size = sizeAt(rest, 0)
    // After a violation, portionOf ends the connection.
    if (size >= 0 && (size === 0 || size > rest.length)) {
      partial.begin(rest)
      return true
    }
    return waiting.add(rest)
  }

  function keepPartial(chunk: Buffer): boolean {
    if (partial.started) {
      const taken = partial.append(chunk)
      if (connection.closed || !partial.isWhole) return true
      const more = waiting.add(partial.take())
      return taken === chunk.length ? more : waiting.add(chunk.subarray(taken))
    }
    const size = sizeAt(chunk, 0)
    if (size !== 0 && size <= chunk.length) return waiting.add(chunk)
    partial.begin(chunk)
    return true
  }
}
