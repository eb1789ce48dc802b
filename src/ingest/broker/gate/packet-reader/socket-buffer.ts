// socket-buffer.ts: the buffer of a socket's stream, for bytes that cannot be read at once. It replaces the
// function `push` of the socket, by which Node adds bytes.
//
// It has a bound: Node stops reading the network when the buffer is at its high-water mark. So bytes are
// taken by the function of the stream: that of the socket reads the network again whenever it is called. And
// no more is taken than will be read: Node fills the buffer again although most of what was taken is put
// back.

import type { DeviceSocket } from '../device-socket.ts'
import { Readable } from 'node:stream'
import { readIntoSharedBuffer } from './shared-read-buffer.ts'

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
  /** Bytes are in the buffer, or may be read again. */
  readWaiting(): void
  /**
   * Bytes have come, which are valid until it returns. True: the network is read on. `isShared`: it may be
   * stopped, and `readNetwork` starts it again.
   */
  takeChunk(chunk: Buffer, isShared: boolean): boolean
}

/** Chunks in the buffer: each costs some hundred bytes, however small it is. */
const chunksMax = 32

const callsKey = Symbol('calls')

type GateSocket = DeviceSocket & { [callsKey]: SocketBufferCalls }

// read(null) returns everything in the buffer; @types/node lacks the null and the type of the result. A
// method, so that null may be added to its parameter.
type Stream = { read(this: DeviceSocket, size?: number | null): Buffer | null }
const readStream: Stream['read'] = Readable.prototype.read
const push = Readable.prototype.push

/** All sockets have the same functions: one of each for each connection is memory. */
export function createSocketBuffer(socket: DeviceSocket, calls: SocketBufferCalls): SocketBuffer {
  Object.assign(socket, { [callsKey]: calls, push: pushChunk })
  socket.on('readable', onReadable)
  return new StreamBuffer(socket, readIntoSharedBuffer(socket, takeShared))
}

function onReadable(this: DeviceSocket): void {
  ;(this as GateSocket)[callsKey].readWaiting()
}

/** Node calls it with null at the end, and with each chunk where it does not read into the shared buffer. */
function pushChunk(this: GateSocket, chunk: unknown, encoding?: BufferEncoding): boolean {
  return chunk instanceof Buffer ? this[callsKey].takeChunk(chunk, false) : push.call(this, chunk, encoding)
}

function takeShared(this: DeviceSocket, chunk: Buffer): boolean {
  return (this as GateSocket)[callsKey].takeChunk(chunk, true)
}

class StreamBuffer implements SocketBuffer {
  private readonly socket: DeviceSocket
  private readonly isShared: boolean
  private chunks = 0

  constructor(socket: DeviceSocket, isShared: boolean) {
    this.socket = socket
    this.isShared = isShared
  }

  get isEmpty(): boolean {
    return this.socket.readableLength === 0
  }

  get isLost(): boolean {
    return this.socket.destroyed || this.socket.errored !== null
  }

  take(bytesMax: number): Buffer | null {
    this.chunks = 0
    // All of it is read without a number: Node emits `end` only after a read that asks for more.
    const isAll = this.socket.readableLength <= bytesMax
    const taken = readStream.call(this.socket, isAll ? null : bytesMax)
    this.readNetwork()
    return taken
  }

  add(chunk: Buffer): boolean {
    const more = push.call(this.socket, this.isShared ? Buffer.from(chunk) : chunk)
    this.chunks += 1
    if (this.chunks <= chunksMax) return more
    // One chunk of them all.
    const all = readStream.call(this.socket, null)
    this.chunks = 1
    if (all !== null) this.socket.unshift(all)
    return more
  }

  /** Back into the stream and not into a buffer of our own: its `end` must wait for these bytes. */
  putBack(bytes: Buffer, start: number): void {
    if (start === bytes.length) return
    this.chunks += 1
    this.socket.unshift(bytes.subarray(start))
  }

  /**
   * The stream alone does not do it: it takes a read for running from its call until the next push, also
   * where the socket has stopped reading since then.
   */
  readNetwork(): void {
    const { socket } = this
    if (!this.isLost && socket.readableLength < socket.readableHighWaterMark) socket._read(0)
  }
}
