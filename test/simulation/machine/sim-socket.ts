// sim-socket.ts: a socket as the daemon and its packages see it: a Duplex with what they call on a socket of
// Node. Its bytes go through network.ts.

import { Duplex } from 'node:stream'
import type { Cancel, Kernel } from './kernel.ts'

/** The connection behind a socket. */
type Carrier = {
  wantsMore: () => void
  write: (bytes: Buffer, done: () => void) => void
  closed: (isReset: boolean) => void
}

/** As Node reads at once. */
export const readBytesMax = 16 * 1024

const kBuffer = Symbol('kBuffer')
const kBufferCb = Symbol('kBufferCb')

export class SimSocket extends Duplex {
  /** With both, what arrives is in this memory while the function runs, and no longer. */
  [kBuffer]: Buffer | null = null;
  [kBufferCb]: ((count: number) => boolean) | null = null
  /** Of a socket that a server has accepted. */
  _handle: { useUserBuffer(): void } | null = null
  connecting: boolean
  bytesRead = 0
  bytesWritten = 0
  remoteAddress: string | undefined
  remotePort: number | undefined
  remoteFamily: string | undefined
  localAddress: string | undefined
  localPort: number | undefined
  timeout = 0
  private readonly kernel: Kernel
  private carrier: Carrier | null = null
  private cancelIdle: Cancel = () => undefined
  private readonly life: number

  constructor(kernel: Kernel, options: { highWaterMark: number; isConnecting?: boolean }) {
    super({ highWaterMark: options.highWaterMark, allowHalfOpen: false, decodeStrings: true })
    this.kernel = kernel
    this.life = kernel.life
    this.connecting = options.isConnecting === true
  }

  get readyState(): string {
    if (this.connecting) return 'opening'
    return this.destroyed ? 'closed' : 'open'
  }

  get pending(): boolean {
    return this.connecting
  }

  get bufferSize(): number {
    return this.writableLength
  }

  attach(carrier: Carrier): void {
    this.carrier = carrier
  }

  /** The machine is off: nothing knows what it was connected to. */
  release(): void {
    this.carrier = null
    this.removeAllListeners()
  }

  connected(): void {
    this.connecting = false
    this.emit('connect')
    this.emit('ready')
    this.emit('waiting')
  }

  override push(chunk: Buffer | null | undefined): boolean {
    if (chunk) this.bytesRead += chunk.length
    this.touched()
    return super.push(chunk)
  }

  /** At most `readBytesMax`. False: no more is wanted now. */
  arrived(bytes: Buffer): boolean {
    const buffer = this[kBuffer]
    const take = this[kBufferCb]
    if (buffer === null || take === null) return this.push(bytes)
    this.bytesRead += bytes.length
    this.touched()
    bytes.copy(buffer)
    const isMoreWanted = take.call(this, bytes.length)
    buffer.fill(0xee)
    return isMoreWanted
  }

  override _read(): void {
    this.carrier?.wantsMore()
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.connecting) {
      this.once('waiting', () => this._write(chunk, _encoding, done))
      return
    }
    this.touched()
    this.bytesWritten += chunk.length
    // The writer may use its memory again once the kernel has taken the bytes.
    if (this.isAlive()) this.carrier?.write(Buffer.from(chunk), done)
  }

  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'buffer', done)
  }

  override _final(done: (error?: Error | null) => void): void {
    // The kernel tells the end of our bytes; without half-open connections the socket closes with it.
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.cancelIdle()
    if (this.isAlive()) this.carrier?.closed(error !== null || this.isResetting)
    done(error)
  }

  private isResetting = false

  resetAndDestroy(): this {
    this.isResetting = true
    this.destroy()
    return this
  }

  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  setTimeout(ms: number, callback?: () => void): this {
    this.timeout = ms
    if (callback !== undefined) {
      if (ms === 0) this.removeListener('timeout', callback)
      else this.once('timeout', callback)
    }
    this.touched()
    return this
  }

  private touched(): void {
    this.cancelIdle()
    if (this.timeout > 0 && !this.destroyed)
      this.cancelIdle = this.kernel.schedule(this.timeout, () => this.emit('timeout'))
  }

  /** Its process has not ended. */
  isAlive(): boolean {
    return this.life === this.kernel.life
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  address(): object {
    return { address: this.localAddress, port: this.localPort, family: 'IPv4' }
  }
}

export function createSimSocket(
  kernel: Kernel,
  options: { highWaterMark: number; isConnecting?: boolean },
): SimSocket {
  return new SimSocket(kernel, options)
}
