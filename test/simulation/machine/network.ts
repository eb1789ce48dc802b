// network.ts: connections between the daemon and the world. The daemon has sockets (sim-socket.ts), the world
// has bare ends: bytes come, bytes go, the connection ends in one of the ways in which TCP connections end.
//
//   world.connect(port)     a device or an operator connects to a listener of the daemon
//   world.serve(host, port) the world answers where the daemon connects to
//
// What the network does to all connections of an address: delay, cut (reset at once), silence (nothing
// arrives, nobody is told), refusal of new ones.

import type { Kernel } from './kernel.ts'
import { createSimSocket, readBytesMax, type SimSocket } from './sim-socket.ts'

/** The end of a connection outside of the daemon. */
export type WorldEnd = {
  /** `arrived`: called when the daemon has it. */
  write(bytes: Buffer, arrived?: () => void): void
  /** Closes in order: what was written arrives before. */
  end(): void
  /** The other side gets ECONNRESET. */
  reset(): void
  onData: (bytes: Buffer) => void
  /** Once, whoever ended it. `isReset`: not in order. */
  onClose: (isReset: boolean) => void
  /** The daemon cannot give more than this many bytes that nobody read. */
  pauseReading(): void
  resumeReading(): void
  readonly isOpen: boolean
  /** The daemon runs, and has not closed it: the world hears of that later. */
  readonly isOpenThere: boolean
}

export type SimListener = {
  host: string
  port: number
  /** UNIX socket. */
  path: string | null
  accept: (socket: SimSocket) => void
  mayConnect: (address: string) => boolean
  highWaterMark: number
}

type Path = {
  delayMs: number
  isRefusing: boolean
  readonly isSilent: boolean
  /** Nothing arrives until it ends; what was sent then arrives, as TCP sends it again. */
  silence(): () => void
}

export type Network = {
  listen(listener: Omit<SimListener, 'port'> & { port: number }): SimListener
  unlisten(listener: SimListener): void
  /** From the daemon. Throws nothing: a failure is an error of the socket. */
  connectFromDaemon(target: { host: string; port: number; path: string | null }): SimSocket
  world: {
    /** Null where nobody listens, or the daemon refuses the address. */
    connect(target: { port?: number; path?: string; from?: string }): WorldEnd | null
    serve(host: string, port: number, accept: (end: WorldEnd) => void): void
    /** Of the daemon's connections to `host`; `devices`: of those to the daemon. */
    path(host: 'devices' | (string & {})): Path
    /** Resets all connections of a path. */
    cut(host: 'devices' | (string & {})): void
  }
  /** The process ended: its connections are reset by the kernel. With the power the world hears nothing. */
  processEnds(options: { power: boolean }): void
  switchOff(): void
  readonly open: number
}

const firstPort = 40_000

export function createNetwork(kernel: Kernel): Network {
  const listeners = new Set<SimListener>()
  const servers = new Map<string, (end: WorldEnd) => void>()
  const paths = new Map<string, OwnPath>()
  const pairs = new Set<Pair>()
  /** Also those that have ended: modules of the daemon keep some of their sockets. */
  const made: Pair[] = []
  let lastPort = firstPort

  return {
    listen(listener) {
      const chosen = { ...listener, port: listener.port === 0 ? (lastPort += 1) : listener.port }
      for (const { port, path } of listeners)
        if (path === chosen.path && (path !== null || port === chosen.port))
          throw coded('EADDRINUSE', 'listen')
      listeners.add(chosen)
      return chosen
    },
    unlisten: (listener) => void listeners.delete(listener),
    connectFromDaemon,
    world: {
      connect,
      serve: (host, port, accept) => void servers.set(`${host}:${port}`, accept),
      path: pathOf,
      cut(host) {
        for (const pair of pairs) if (pair.host === host) pair.reset()
      },
    },
    processEnds({ power }) {
      for (const pair of pairs) pair.processEnds(power)
      pairs.clear()
      listeners.clear()
    },
    switchOff() {
      for (const pair of made.splice(0)) pair.release()
      pairs.clear()
      listeners.clear()
      servers.clear()
      paths.clear()
    },
    get open() {
      return pairs.size
    },
  }

  function pathOf(host: string): OwnPath {
    let path = paths.get(host)
    if (path === undefined) paths.set(host, (path = newPath(kernel)))
    return path
  }

  function connect({
    port,
    path,
    from = '10.0.0.1',
  }: {
    port?: number
    path?: string
    from?: string
  }): WorldEnd | null {
    const listener = [...listeners].find((one) =>
      path === undefined ? one.path === null && one.port === port : one.path === path,
    )
    if (listener === undefined || !listener.mayConnect(from)) return null
    const socket = createSimSocket(kernel, { highWaterMark: listener.highWaterMark })
    const pair = pairOf(socket, path === undefined ? 'devices' : 'operator')
    const remotePort = (lastPort += 1)
    Object.assign(socket, {
      remoteAddress: path === undefined ? from : undefined,
      remotePort,
      remoteFamily: 'IPv4',
      localAddress: '10.0.0.2',
      localPort: listener.port,
    })
    const way = pathOf(pair.host)
    kernel.at(way.delayMs, () =>
      way.pass(() => {
        if (!listeners.has(listener) || !pair.end.isOpen) return
        pair.accepted()
        listener.accept(socket)
      }),
    )
    return pair.end
  }

  function connectFromDaemon({
    host,
    port,
    path,
  }: {
    host: string
    port: number
    path: string | null
  }): SimSocket {
    const socket = createSimSocket(kernel, { highWaterMark: 65_536, isConnecting: true })
    const network = pathOf(host)
    if (network.isSilent) return socket
    kernel.schedule(network.delayMs * 2, () => {
      if (socket.destroyed || network.isSilent) return
      const accept = path === null ? servers.get(`${host}:${port}`) : undefined
      if (accept === undefined || network.isRefusing) {
        const address = path === null ? { address: host, port } : { address: path }
        socket.destroy(Object.assign(coded('ECONNREFUSED', 'connect'), address))
        return
      }
      const pair = pairOf(socket, host)
      pair.accepted()
      Object.assign(socket, {
        remoteAddress: '10.1.0.1',
        remotePort: port,
        remoteFamily: 'IPv4',
        localAddress: '10.0.0.2',
        localPort: (lastPort += 1),
      })
      accept(pair.end)
      socket.connected()
    })
    return socket
  }

  function pairOf(socket: SimSocket, host: string): Pair {
    const pair = createPair(kernel, { socket, host, path: pathOf(host), closed: () => pairs.delete(pair) })
    pairs.add(pair)
    made.push(pair)
    return pair
  }
}

/** `pass` runs what arrives now, or when the silence ends. */
type OwnPath = Path & { pass(arrive: () => void): void }

function newPath(kernel: Kernel): OwnPath {
  let silences = 0
  let waiting: (() => void)[] = []
  return {
    delayMs: 1,
    isRefusing: false,
    get isSilent() {
      return silences > 0
    },
    silence() {
      silences += 1
      return () => {
        silences -= 1
        if (silences > 0) return
        const arrivals = waiting
        waiting = []
        kernel.at(0, () => {
          for (const arrive of arrivals) arrive()
        })
      }
    },
    pass(arrive) {
      if (silences > 0) waiting.push(arrive)
      else arrive()
    },
  }
}

type Pair = ReturnType<typeof createPair>

/** What one direction holds before the writer waits, as the buffers of two kernels. */
const windowBytes = 128 * 1024

function createPair(
  kernel: Kernel,
  { socket, host, path, closed }: { socket: SimSocket; host: string; path: OwnPath; closed: () => void },
) {
  let isOpen = true
  let isAccepted = false
  let isPaused = false
  /** From the daemon, not yet read by the world. */
  let unread: Buffer[] = []
  let unreadBytes = 0
  let wake: (() => void) | null = null
  /** From the world, not yet taken by the socket of the daemon. */
  const incoming: Buffer[] = []
  let hasEnded = false
  let isWanted = true
  let isFeeding = false
  const lastMs = { in: 0, out: 0 }

  const end: WorldEnd = {
    onData: () => undefined,
    onClose: () => undefined,
    get isOpen() {
      return isOpen
    },
    get isOpenThere() {
      return isOpen && isReadable()
    },
    write(bytes, arrived = () => undefined) {
      later('in', () => {
        if (!isReadable()) return
        arrived()
        incoming.push(bytes)
        feed()
      })
    },
    end() {
      later('in', () => {
        if (!isReadable()) return
        hasEnded = true
        feed()
      })
    },
    reset,
    pauseReading() {
      isPaused = true
    },
    resumeReading() {
      isPaused = false
      deliver()
    },
  }

  socket.attach({
    wantsMore() {
      isWanted = true
      feed()
    },
    write(bytes, done) {
      unread.push(bytes)
      unreadBytes += bytes.length
      later('out', deliver)
      if (unreadBytes < windowBytes) done()
      else wake = done
    },
    closed(isReset) {
      // In order: what was written arrives before the end.
      later('out', () => {
        deliver()
        finish(isReset)
      })
    },
  })

  return { end, host, reset, processEnds, accepted: () => void (isAccepted = true), release }

  function release(): void {
    end.onData = end.onClose = () => undefined
    socket.release()
  }

  /** After the delay of the path, and after what was sent before in this direction. */
  function later(direction: 'in' | 'out', arrive: () => void): void {
    lastMs[direction] = Math.max(lastMs[direction], kernel.monotonicMs + path.delayMs)
    kernel.at(lastMs[direction] - kernel.monotonicMs, () => path.pass(arrive))
  }

  /** What arrives for a dead process must wake nothing of it: its code would go on in the next one. */
  function isReadable(): boolean {
    return socket.isAlive() && !socket.destroyed
  }

  function feed(): void {
    if (isFeeding) return
    isFeeding = true
    while (incoming.length > 0 && isWanted) {
      const first = incoming[0]!
      const piece = first.subarray(0, readBytesMax)
      if (piece.length < first.length) incoming[0] = first.subarray(piece.length)
      else incoming.shift()
      isWanted = false
      // It may ask for more meanwhile.
      if (socket.arrived(piece)) isWanted = true
    }
    isFeeding = false
    if (hasEnded && isWanted) {
      hasEnded = false
      socket.push(null)
    }
  }

  function deliver(): void {
    if (isPaused || !isOpen) return
    const parts = unread
    unread = []
    unreadBytes = 0
    for (const part of parts) end.onData(part)
    const resume = wake
    wake = null
    if (socket.isAlive()) resume?.()
  }

  function reset(): void {
    if (!isOpen) return
    // One that ends in the queue of the listener is never seen.
    if (isReadable()) socket.destroy(isAccepted ? coded('ECONNRESET', 'read') : undefined)
    finish(true)
  }

  function finish(isReset: boolean): void {
    if (!isOpen) return
    isOpen = false
    closed()
    end.onClose(isReset)
  }

  function processEnds(power: boolean): void {
    // The kernel of the machine closes them. Without power nobody does; the world finds out when it sends.
    kernel.at(power ? 30_000 : path.delayMs, () => finish(true))
  }
}

function coded(code: string, syscall: string): Error {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall })
}
