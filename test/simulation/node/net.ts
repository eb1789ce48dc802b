// net.ts: node:net on the simulated network.

import * as real from 'node:net'
import { EventEmitter } from 'node:events'
import { addAbortSignal } from 'node:stream'
import { machine } from '../machine/current.ts'
import type { SimListener } from '../machine/network.ts'
import { SimSocket } from '../machine/sim-socket.ts'

export * from 'node:net'

type ConnectOptions = { host?: string; port?: number | string; path?: string; signal?: AbortSignal }

export function connect(...given: unknown[]): SimSocket {
  const [first, second] = given
  const options: ConnectOptions =
    typeof first === 'object' && first !== null
      ? first
      : typeof first === 'string' && !/^\d+$/.test(first)
        ? { path: first }
        : { port: Number(first), ...(typeof second === 'string' ? { host: second } : {}) }
  const callback = given.findLast((one) => typeof one === 'function') as (() => void) | undefined
  const { host = 'localhost', port = 0, path = null, signal } = options
  const socket = machine().network.connectFromDaemon({ host, port: Number(port), path })
  if (signal !== undefined) addAbortSignal(signal, socket)
  if (callback !== undefined) socket.once('connect', callback)
  return socket
}

type ServerOptions = { highWaterMark?: number; blockList?: { check(address: string): boolean } }
type ListenOptions = { host?: string; port?: number; path?: string }

export class Server extends EventEmitter {
  listening = false
  maxConnections = Infinity
  private listener: SimListener | null = null
  private readonly sockets = new Set<SimSocket>()
  private readonly options: ServerOptions

  constructor(
    options: ServerOptions | ((socket: SimSocket) => void) = {},
    onConnection?: (socket: SimSocket) => void,
  ) {
    super()
    this.options = typeof options === 'function' ? {} : options
    const handler = typeof options === 'function' ? options : onConnection
    if (handler !== undefined) this.on('connection', handler)
  }

  listen(given: ListenOptions | string | number, callback?: () => void): this {
    const options =
      typeof given === 'object' ? given : typeof given === 'string' ? { path: given } : { port: given }
    if (callback !== undefined) this.once('listening', callback)
    listenOn(
      {
        options,
        highWaterMark: this.options.highWaterMark ?? 65_536,
        mayConnect: (address) => this.options.blockList?.check(address) !== true,
      },
      {
        accept: (socket) => this.accepted(socket),
        listening: (listener) => {
          this.listener = listener
          this.listening = true
          this.emit('listening')
        },
        failed: (error) => this.emit('error', error),
      },
    )
    return this
  }

  address(): object | string | null {
    return this.listener === null ? null : addressOf(this.listener)
  }

  close(callback?: (error?: Error) => void): this {
    if (this.listener !== null) machine().network.unlisten(this.listener)
    this.listener = null
    this.listening = false
    if (callback !== undefined) this.once('close', callback)
    this.endWhenEmpty()
    return this
  }

  getConnections(callback: (error: Error | null, count: number) => void): void {
    machine().kernel.schedule(0, () => callback(null, this.sockets.size))
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  private accepted(socket: SimSocket): void {
    if (this.sockets.size >= this.maxConnections) {
      socket.destroy()
      return
    }
    this.sockets.add(socket)
    socket._handle = { useUserBuffer: () => undefined }
    socket.once('close', () => {
      this.sockets.delete(socket)
      this.endWhenEmpty()
    })
    this.emit('connection', socket)
  }

  private endWhenEmpty(): void {
    if (this.listener !== null || this.sockets.size > 0) return
    machine().kernel.schedule(0, () => this.emit('close'))
  }
}

export function createServer(
  options?: ServerOptions | ((socket: SimSocket) => void),
  onConnection?: (socket: SimSocket) => void,
): Server {
  return new Server(options, onConnection)
}

/** As a server of Node: the outcome comes a turn later. */
export function listenOn(
  {
    options: { host = '0.0.0.0', port = 0, path },
    highWaterMark,
    mayConnect,
  }: { options: ListenOptions; highWaterMark: number; mayConnect: (address: string) => boolean },
  {
    accept,
    listening,
    failed,
  }: {
    accept: (socket: SimSocket) => void
    listening: (listener: SimListener) => void
    failed: (error: unknown) => void
  },
): void {
  const { network, disk, kernel } = machine()
  kernel.schedule(0, () => {
    try {
      const place = { host, port, path: path ?? null }
      if (path !== undefined) disk.makeSocket(path)
      const listener = network.listen({ ...place, accept, mayConnect, highWaterMark })
      listening(listener)
    } catch (error) {
      failed(error)
    }
  })
}

export function addressOf({ host, port, path }: SimListener): object | string {
  return path ?? { address: host, port, family: 'IPv4' }
}

export { connect as createConnection, SimSocket as Socket, SimSocket as Stream }

const all = {
  ...real,
  connect,
  createConnection: connect,
  createServer,
  Server,
  Socket: SimSocket,
  Stream: SimSocket,
}
export default all
export { all as 'module.exports' }
