// socket-buffer.ts: the buffer of a socket's stream, for bytes that cannot be read at once. It replaces two
// functions of the socket: `read`, by which aedes takes bytes, and `push`, by which Node adds them.
//
// It has a bound: Node stops reading the network when the buffer is at its high-water mark. So bytes are
// taken by the function of the stream: that of the socket reads the network again whenever it is called. And
// no more is taken than will be read: Node fills the buffer again although most of what was taken is put
// back.

import { Readable } from 'node:stream'
import { readIntoSharedBuffer, type TakeBytes } from './shared-read-buffer.ts'
import type { DeviceSocket } from './device-socket.ts'

export type SocketBuffer = {
  readonly isEmpty: boolean
  /**
   * Nothing may be read any more. After a failed write the stream drops what it is given, one tick before it
   * is destroyed: what is still in it is then not the rest of what was read.
   */
  readonly isLost: boolean
  /** At most `bytesMax`; null where there is nothing. */
  take(bytesMax: number): Buffer | null
  /** Copies `chunk` to the end. False: Node is to stop reading the network. */
  add(chunk: Buffer): boolean
  /** Puts what is behind `start` before all that waits. */
  putBack(bytes: Buffer, start: number): void
  /** Has Node read the network again, if there is room. */
  readNetwork(): void
}

export type SocketBufferCalls = {
  /** aedes asks for bytes. */
  read: () => Buffer | null
  /**
   * Bytes have come, which are valid until it returns. True: the network is read on. `isShared`: it may be
   * stopped, and `readNetwork` starts it again.
   */
  takeChunk: (chunk: Buffer, isShared: boolean) => boolean
}

/** Chunks in the buffer: each costs some hundred bytes, however small it is. */
const chunksMax = 32

export function createSocketBuffer(
  socket: DeviceSocket,
  { read, takeChunk }: SocketBufferCalls,
): SocketBuffer {
  // read(null) returns everything in the buffer; @types/node lacks the null and the type of the result.
  const readStream: { read(size?: number | null): Buffer | null }['read'] =
    Readable.prototype.read.bind(socket)
  const push = socket.push.bind(socket)
  const takeShared: TakeBytes = (chunk) => takeChunk(chunk, true)
  let chunks = 0

  // Only aedes calls it with null; the stream itself with a number or nothing.
  socket.read = (size?: number | null) => (size === null ? read() : readStream(size))
  // Node calls it with null at the end, and with each chunk where it does not read into the shared buffer.
  socket.push = (chunk: unknown, encoding?: BufferEncoding) =>
    chunk instanceof Buffer ? takeChunk(chunk, false) : push(chunk, encoding)
  const isShared = readIntoSharedBuffer(socket, takeShared)

  return {
    get isEmpty() {
      return socket.readableLength === 0
    },
    get isLost() {
      return isLost()
    },
    take(bytesMax) {
      chunks = 0
      const bytes = socket.readableLength
      const taken = readStream(bytes === 0 ? null : Math.min(bytes, bytesMax))
      readNetwork()
      return taken
    },
    add(chunk) {
      const more = push(isShared ? Buffer.from(chunk) : chunk)
      chunks += 1
      if (chunks <= chunksMax) return more
      // One chunk of them all.
      const all = readStream(null)
      chunks = 1
      if (all !== null) socket.unshift(all)
      return more
    },
    // Back into the stream and not into a buffer of our own: its `end` must wait for these bytes.
    putBack(bytes, start) {
      if (start === bytes.length) return
      chunks += 1
      socket.unshift(bytes.subarray(start))
    },
    readNetwork,
  }

  /**
   * The stream alone does not do it: it takes a read for running from its call until the next push, also
   * where the socket has stopped reading since then.
   */
  function readNetwork(): void {
    if (!isLost() && socket.readableLength < socket.readableHighWaterMark) socket._read(0)
  }

  function isLost(): boolean {
    return socket.destroyed || socket.errored !== null
  }
}
