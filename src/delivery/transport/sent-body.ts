// sent-body.ts: how much of a request body has left this process, and when its memory can be used again.
//
// A batch whose last body byte was never given to the kernel was certainly not processed. And as long as a
// socket still holds a body that it did not write, the memory of this body must not get other bytes.
//
// undici does not report this. So the connector marks each socket (observeWrites): where undici writes the
// bytes of a body, the callback of the write says when the kernel has taken them. Large bodies are given to
// undici in pieces, which it takes one after the other as they are flushed, so that progress is known. When
// an answer comes before the end of such a body, undici closes the connection.

import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'

export type SentBody = {
  /** The body for undici. Pieces need a header with their length. */
  readonly source: Buffer | Iterable<Buffer>
  readonly inPieces: boolean
  /** Bytes that the kernel has taken, or nearly so: a completed write is reported up to one turn later. */
  flushedBytes(): number
  /** The kernel has taken the last byte. */
  flushed(): boolean
  /** The last byte was given to a socket. Without that, the kernel cannot have it. */
  passed(): boolean
  /** No socket holds unwritten bytes of the body. Counts only after the end of the attempt. */
  released(): boolean
  /** Closes the connection that still holds bytes of the body. `released` is called once it is closed. */
  discard(released: () => void): void
}

type Progress = { passed(socket: Socket): void; flushed(socket: Socket): void }

/** About what the kernel takes at once. Smaller pieces cost time, larger ones hide the progress. */
const pieceBytes = 64 * 1024

const progressOf = new WeakMap<object, Progress>()

export function createSentBody(body: Buffer): SentBody {
  let socket: Socket | null = null
  let passedBytes = 0
  let flushedBytes = 0

  const observe = (piece: Buffer) => {
    progressOf.set(piece, {
      passed(by) {
        // Another connection: undici starts again after one that closed before it was used.
        if (by !== socket) passedBytes = flushedBytes = 0
        socket = by
        passedBytes += piece.length
      },
      flushed(by) {
        if (by === socket) flushedBytes += piece.length
      },
    })
    return piece
  }
  const inPieces = body.length > pieceBytes

  return {
    source: inPieces ? { [Symbol.iterator]: pieces } : observe(body),
    inPieces,
    flushedBytes() {
      return flushedBytes
    },
    flushed() {
      return flushedBytes === body.length
    },
    passed() {
      return passedBytes === body.length
    },
    released() {
      return socket === null || socket.closed || flushedBytes === body.length
    },
    discard(released) {
      if (socket === null || socket.closed) {
        released()
        return
      }
      socket.once('close', released)
      socket.destroy()
    },
  }

  function* pieces(): Generator<Buffer> {
    for (let start = 0; start < body.length; start += pieceBytes)
      yield observe(body.subarray(start, start + pieceBytes))
  }
}

/** A connector whose sockets report what they write of each SentBody. */
export function observeWrites(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[0] === null) observeSocket(result[1])
      callback(...result)
    })
}

function observeSocket(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (...args: unknown[]): boolean => {
    const [part] = args
    const progress = typeof part === 'object' && part !== null ? progressOf.get(part) : undefined
    if (progress === undefined) return write(...args)
    progress.passed(socket)
    return write(part, (error?: Error | null) => {
      if (!error) progress.flushed(socket)
    })
  }
}
