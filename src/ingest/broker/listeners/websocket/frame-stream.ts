// frame-stream.ts: the bytes of MQTT in a WebSocket as a stream, which the gate reads like a socket.
//
//   in    network -> frame-reader.ts -> push; where the buffer is full, the network is not read
//         ping, pong and close frames -> ws, which answers them
//   out   one frame for each write; the callback of ws is the back-pressure
//
// `ws` has its own reader, which keeps a frame until it is whole, and a client may put all that it has
// to send into one frame. So this file takes the bytes before `ws` does. It depends on one thing that ws
// does not document: it reads its socket by a single listener of `data`.
// test/ingest/broker/listeners/websocket/frame-stream.test.ts fails when an upgrade changes that.
//
// The end:
//   close frame or FIN of the client    what came before is read, then the stream ends; nothing more is sent,
//                                       because a WebSocket has no half-close
//   the network breaks                  destroyed
//   destroySoon                         what is written is sent, then the close frame; the client has
//                                       `closeTimeoutMs` to answer
//   destroy                             the same for the close frame, and nothing is waited for by the gate

import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { FrameWatcher, WebSocketFrames } from '../../gate/device-socket.ts'
import { closeCodeOf, type CloseReason } from './close-codes.ts'
import { createFrameReader, type FrameReader } from './frame-reader.ts'

/** From our close frame to the end of the connection. ws keeps it. */
export const closeTimeoutMs = 1000

type Chunk = { chunk: Buffer }

export class FrameStream extends Duplex implements WebSocketFrames {
  closeReason: CloseReason | null = null
  /** Its part that the gate knows; other sockets have none. */
  readonly webSocket: WebSocketFrames = this
  #watcher: FrameWatcher = { countControlFrame: () => undefined, drop: () => this.destroy() }
  readonly #webSocket: WebSocket
  readonly #socket: Socket
  readonly #reader: FrameReader
  /** Gives bytes to ws. */
  readonly #feed: (bytes: Buffer) => void
  #paused = false
  /** No more bytes of the client are taken. */
  #isOver = false

  constructor(webSocket: WebSocket, socket: Socket, bufferBytes: number) {
    super({ highWaterMark: bufferBytes, allowHalfOpen: true })
    this.#webSocket = webSocket
    this.#socket = socket
    const [feed] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    if (feed === undefined) throw new TypeError('ws does not read its socket by a listener of data')
    socket.off('data', feed)
    this.#feed = feed.bind(socket)
    this.#reader = createFrameReader({
      controlFrame: (bytes) => this.#takeControlFrame(bytes),
      emptyFrame: () => this.#countControlFrame(),
    })
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.once('end', () => this.#end())
    webSocket.on('error', ({ message }) => {
      // ws reads what is left in the buffer of a broken connection, which may begin within a frame.
      if (!socket.destroyed)
        this.#watcher.drop('websocket_protocol', `It broke the WebSocket protocol. ${message}.`)
    })
    webSocket.once('close', () => {
      if (!this.#isOver) this.destroy()
    })
  }

  watch(watcher: FrameWatcher): void {
    this.#watcher = watcher
  }

  // ---- in

  #take(chunk: Buffer): void {
    const length = this.#reader.read(chunk)
    if (length > 0 && !this.#isOver && !this.destroyed && !this.push(chunk.subarray(0, length))) this.#pause()
    const { fault, closeFrame } = this.#reader
    if (fault !== null) this.#watcher.drop(fault.reason, fault.detail)
    else if (closeFrame !== null && !this.destroyed) {
      this.#end()
      this.#feed(closeFrame)
    }
  }

  #takeControlFrame(bytes: Buffer): boolean {
    if (!this.#countControlFrame()) return false
    this.#feed(bytes)
    return !this.destroyed
  }

  #countControlFrame(): boolean {
    this.#watcher.countControlFrame()
    return !this.destroyed
  }

  #pause(): void {
    if (this.#isOver || this.destroyed) return
    this.#paused = true
    this.#socket.pause()
  }

  override _read(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#socket.resume()
  }

  /** What was pushed is still read. */
  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (!this.destroyed) this.push(null)
  }

  // ---- out

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // Where it fails, the connection is at its end, and ws says so.
    this.#webSocket.send(chunk, { binary: true, compress: false, fin: true }, () => done())
  }

  override _writev(chunks: Chunk[], done: () => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'latin1', done)
  }

  override _final(done: () => void): void {
    const { readyState, CLOSED } = this.#webSocket
    if (readyState === CLOSED) {
      done()
      return
    }
    this.#isOver = true
    this.#webSocket.once('close', () => {
      done()
      // Both sides are closed, and nothing that the client sent in between is taken.
      this.destroy()
    })
    this.#webSocket.close(closeCodeOf(this.closeReason))
    // The close frame of the client comes behind what it has sent.
    this.#socket.resume()
  }

  /** As that of net.Socket. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#isOver = true
    // ws destroys the socket after `closeTimeoutMs`, where the client does not read.
    this.#webSocket.close(closeCodeOf(this.closeReason))
    this.#socket.destroySoon()
    done(error)
  }

  setKeepAlive(enable: boolean, afterMs: number, intervalMs: number, count: number): void {
    // @types/node lacks the last two.
    const set: (...values: [boolean, number, number, number]) => unknown = this.#socket.setKeepAlive.bind(
      this.#socket,
    )
    set(enable, afterMs, intervalMs, count)
  }
}
