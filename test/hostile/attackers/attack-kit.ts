// attack-kit.ts: what attackers need: connections from many addresses, over TCP, TLS and WebSocket, writing as fast
// as the other side reads, and counts. Loopback has 16 million addresses, so an attacker can be one address or
// thousands.

import { connect as connectTcp, type Socket } from 'node:net'
import { setMaxListeners } from 'node:events'
import { connect as connectTls } from 'node:tls'
import { generate, type IConnectPacket } from 'mqtt-packet'
import { connectBytes, type PublishOptions } from '../../support/mqtt-device.ts'
import type { Random } from '../../support/random.ts'
import { upgradeRequest } from '../../support/websocket-client.ts'
import { isSecure, isWebSocket, type Route } from '../route.ts'
import { createFrameParser, framesOf } from './websocket-frames.ts'

export type Attack = {
  name: string
  /** What it does, as the end of "the attacker ...". */
  does: string
  /** On some listeners, or with one version of MQTT only. */
  needs?: 'tls' | 'websocket' | 'version5'
  /** What RssAnon may grow by, where the clients are legitimate and more than a few. */
  growthMbMax?: { plain: number; tls: number }
  /** What may stay of it. */
  keptMbMax?: { plain: number; tls: number }
  run(kit: AttackKit): Promise<unknown>
}

export type AttackTarget = Route & {
  port: number
  /** Of the broker that the gateway has a bridge to. */
  sitePort: number
  opsPort: number
  seconds: number
  seed: number
  /** Of the fuzz. */
  packets: number
}

export type AttackCounts = {
  opened: number
  /** Connections that the gateway ended or refused. */
  ended: number
  /** CONNACK with another code than 0. */
  refused: number
  sentBytes: number
  /** Of the fuzz. */
  packets: number
}

export type OpenOptions = {
  /** False: nothing is read, so that the gateway cannot write. */
  reads?: boolean
  /** Number of the stranger's address; 0 is the address that all share. */
  stranger?: number
  /** Connects from the address of the honest clients. */
  asNeighbour?: boolean
  /** Neither TLS nor WebSocket, on any listener. */
  raw?: boolean
  /** False: no request for a WebSocket; `write` writes bytes and no frames. */
  upgrades?: boolean
  port?: number
  onChunk?: (chunk: Buffer) => void
}

export type AttackKit = {
  readonly target: AttackTarget
  readonly random: Random
  readonly counts: AttackCounts
  readonly over: boolean
  /** An open connection; null where it was refused or the time is over. */
  open(options?: OpenOptions): Promise<Socket | null>
  /** The same, with CONNECT written. It waits for the CONNACK only where it reads. */
  join(clientId: string, options?: OpenOptions, packet?: Partial<IConnectPacket>): Promise<Socket | null>
  /** The bytes of a PUBLISH, in the version of the target. */
  publish(options: PublishOptions): Buffer
  /** In frames over WebSocket. Resolves when the socket takes more; false when it has ended or the time is over. */
  write(socket: Socket, bytes: Buffer): Promise<boolean>
  /** The same without frames. */
  writeBytes(socket: Socket, bytes: Buffer): Promise<boolean>
  /** Ends early when the time is over. */
  pause(ms: number): Promise<void>
  /** Runs `work` again and again, `count` at the same time, until the time is over. */
  crowd(count: number, work: (index: number, turn: number) => Promise<unknown>): Promise<void>
}

const openMs = 10_000
/** What a stored session asks for with MQTT 5. */
const sessionExpiryInterval = 86_400

export function suits({ needs }: Attack, { transport, version }: Route): boolean {
  if (needs === 'tls') return isSecure(transport)
  if (needs === 'websocket') return isWebSocket(transport)
  return needs === undefined || version === 5
}

export function createAttackKit(target: AttackTarget, random: Random): AttackKit {
  const counts: AttackCounts = { opened: 0, ended: 0, refused: 0, sentBytes: 0, packets: 0 }
  const end = new AbortController()
  // One listener for each connection that waits.
  setMaxListeners(0, end.signal)
  /** Connections that are WebSockets. */
  const webSockets = new WeakSet<Socket>()
  let over = false
  setTimeout(() => {
    over = true
    end.abort()
  }, target.seconds * 1000)

  async function open(options: OpenOptions = {}): Promise<Socket | null> {
    const { reads = true, raw = false, upgrades = true, onChunk = () => undefined } = options
    const isUpgraded = isWebSocket(target.transport) && !raw && upgrades
    const socket = await openSocket(options)
    if (socket === null) return null
    if (isUpgraded) return upgrade(socket, reads, onChunk)
    if (reads) socket.on('data', onChunk)
    return socket
  }

  function openSocket(options: OpenOptions): Promise<Socket | null> {
    const { stranger = 0, asNeighbour = false, raw = false, port = target.port } = options
    if (over) return Promise.resolve(null)
    const to = {
      port,
      host: '127.0.0.1',
      noDelay: true,
      ...(asNeighbour ? {} : { localAddress: addressOf(stranger) }),
    }
    const isPlain = raw || !isSecure(target.transport)
    const socket: Socket = isPlain ? connectTcp(to) : connectTls({ ...to, rejectUnauthorized: false })
    return new Promise((resolve) => {
      const timer = setTimeout(() => socket.destroy(), openMs)
      let isOpen = false
      socket.once(isPlain ? 'connect' : 'secureConnect', () => {
        clearTimeout(timer)
        isOpen = true
        counts.opened += 1
        resolve(socket)
      })
      socket.on('error', () => socket.destroy())
      socket.once('close', () => {
        clearTimeout(timer)
        if (isOpen || !over) counts.ended += 1
        resolve(null)
      })
    })
  }

  /** Null where the request is refused. A close frame of the gateway ends the connection. */
  async function upgrade(
    socket: Socket,
    reads: boolean,
    onChunk: (chunk: Buffer) => void,
  ): Promise<Socket | null> {
    const answer = new Promise<number>((resolve) => {
      const take = createFrameParser({
        answered: resolve,
        payload: onChunk,
        closed: () => socket.destroy(),
      })
      socket.on('data', take)
      socket.once('close', () => resolve(0))
    })
    const isWritten = await writeBytes(socket, upgradeRequest())
    const status = isWritten ? await Promise.race([answer, pause(openMs)]) : 0
    if (status !== 101) {
      socket.destroy()
      return null
    }
    webSockets.add(socket)
    if (!reads) socket.pause()
    return socket
  }

  async function join(
    clientId: string,
    options: OpenOptions = {},
    packet: Partial<IConnectPacket> = {},
  ): Promise<Socket | null> {
    const { reads = true, onChunk } = options
    let answered: (returnCode: number | null) => void = () => undefined
    const answer = new Promise<number | null>((resolve) => {
      answered = resolve
    })
    let isAnswered = false
    const socket = await open({
      ...options,
      onChunk(chunk) {
        if (isAnswered) return onChunk?.(chunk)
        isAnswered = true
        answered(chunk[3] ?? null)
        return undefined
      },
    })
    if (socket === null) return null
    socket.once('close', () => answered(null))
    const stored = packet.clean === false ? { properties: { sessionExpiryInterval } } : {}
    const asVersion = target.version === 5 ? { protocolVersion: 5 as const, ...stored } : {}
    if (!(await write(socket, connectBytes(clientId, { ...asVersion, ...packet })))) return null
    if (!reads) return socket
    const returnCode = await Promise.race([answer, pause(openMs)])
    if (returnCode === 0) return socket
    if (typeof returnCode === 'number') counts.refused += 1
    socket.destroy()
    return null
  }

  function publish(options: PublishOptions): Buffer {
    const { topic, payload, qos = 1, messageId = 1, dup = false, retain = false } = options
    const identified = qos === 0 ? {} : { messageId }
    return generate(
      { cmd: 'publish', topic, payload, qos, dup, retain, ...identified },
      { protocolVersion: target.version },
    )
  }

  function write(socket: Socket, bytes: Buffer): Promise<boolean> {
    return writeBytes(socket, webSockets.has(socket) ? framesOf(bytes, random) : bytes)
  }

  async function writeBytes(socket: Socket, bytes: Buffer): Promise<boolean> {
    if (over || socket.destroyed || !socket.writable) return false
    counts.sentBytes += bytes.length
    if (socket.write(bytes)) return true
    await new Promise<void>((resolve) => {
      const done = () => {
        socket.removeListener('drain', done)
        socket.removeListener('close', done)
        end.signal.removeEventListener('abort', done)
        resolve()
      }
      socket.once('drain', done)
      socket.once('close', done)
      end.signal.addEventListener('abort', done)
    })
    return !over && !socket.destroyed
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (over) {
        resolve()
        return
      }
      const done = () => {
        clearTimeout(timer)
        end.signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      end.signal.addEventListener('abort', done)
    })
  }

  async function crowd(
    count: number,
    work: (index: number, turn: number) => Promise<unknown>,
  ): Promise<void> {
    const one = async (index: number) => {
      for (let turn = 0; !end.signal.aborted; turn += 1) {
        await work(index, turn)
        // A refused attacker tries again at once; the turn lets the others and their sockets go on.
        await new Promise(setImmediate)
      }
    }
    await Promise.all(Array.from({ length: count }, (_, index) => one(index)))
  }

  return {
    target,
    random,
    counts,
    get over() {
      return over
    },
    open,
    join,
    publish,
    write,
    writeBytes,
    pause,
    crowd,
  }
}

/** 127.66.0.1 for all, or one of 127.67.0.0 to 127.127.255.255. */
function addressOf(stranger: number): string {
  if (stranger === 0) return '127.66.0.1'
  return `127.${67 + ((stranger >> 16) & 0x3f)}.${(stranger >> 8) & 0xff}.${stranger & 0xff}`
}

/** `count` times the same bytes. */
export function repeated(bytes: Buffer, count: number): Buffer {
  return Buffer.concat(Array<Buffer>(count).fill(bytes))
}
