// attempt.ts: what an attempt is, and how one at the MQTT listener is made: raw bytes, and
// the reason that the daemon counts where it refuses or closes. One attempt at a time, so that the counts are its own.

import { connect as connectTcp } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { parser, type IConnectPacket, type Packet } from 'mqtt-packet'
import { createWebSocketStream, WebSocket } from 'ws'
import type { Certificate } from '../../support/certificates.ts'
import { connectBytes } from '../../support/mqtt-device.ts'
import { readServerPacket, type ServerPacket } from '../../support/mqtt5-reader.ts'
import { fleetUser, type HostileWorld } from '../hostile-world.ts'
import { isSecure, isWebSocket, schemes, type Transport } from '../route.ts'

export type Attempt = {
  who: string
  where: 'mqtt' | 'ops' | 'files'
  what: string
  /** What `act` must see, word for word. */
  expected: string
  /** MQTT attempts are made over each transport, unless some are named. */
  only?: readonly Transport[]
  act(world: HostileWorld, transport: Transport): Promise<string>
}

export type Trial = {
  /** The first packet; null: none. A client of the fleet with its password where it is left out. */
  connect?: Partial<IConnectPacket> | Buffer | null
  clientId?: string
  /** Written in one piece with CONNECT, before its answer. */
  atOnce?: Buffer
  /** Written after CONNACK. */
  sends?: Buffer
  /** Nothing is asked after `sends`: the connection is ended without DISCONNECT. */
  leaves?: boolean
  /** The payload of this number must be, or must not be, at the service at the end. */
  payload?: number
  port?: number
  /** Of the client, for TLS. */
  certificate?: Certificate
  /** To a listener of another kind. */
  speaks?: Transport
  /** Of the packets; default: MQTT 3.1.1. */
  version?: 5
}

export const withPassword = (clientId: string, packet: Partial<IConnectPacket> = {}) =>
  connectBytes(clientId, {
    username: fleetUser.name,
    password: Buffer.from(fleetUser.password),
    ...packet,
  })

const pingreq = Buffer.from([0xc0, 0])
const answerMs = 4000
let clients = 0
let trials = 0

/** What the client sees, in order: `CONNACK 0, PUBACK, alive`, or `CONNACK 4, closed (bad_credentials)`. */
export async function tryMqtt(world: HostileWorld, transport: Transport, trial: Trial): Promise<string> {
  const countsBefore = await reasonCounts(world)
  trials += 1
  // The wait for the answer to a wrong password grows with each one of an address.
  const localAddress = `127.90.${trials >> 8}.${trials & 0xff}`
  const socket = openStream(trial.speaks ?? transport, {
    port: trial.port ?? world.port(transport),
    localAddress,
    ...trial.certificate,
  })
  const link = watch(socket, trial.version ?? 4)
  const { connect, clientId = `trial-${(clients += 1)}` } = trial
  const first =
    connect === null
      ? Buffer.alloc(0)
      : connect instanceof Buffer
        ? connect
        : connect === undefined
          ? withPassword(clientId)
          : connectBytes(clientId, connect)
  socket.write(Buffer.concat([first, trial.atOnce ?? Buffer.alloc(0)]))
  if (connect !== null) await link.until((seen) => seen.length > 0)
  if (trial.sends !== undefined) socket.write(trial.sends)
  if (trial.leaves) {
    await pause(100)
    socket.destroy()
  } else {
    if (connect !== null && !link.closed) socket.write(pingreq)
    const sent = Buffer.concat([trial.atOnce ?? Buffer.alloc(0), trial.sends ?? Buffer.alloc(0)])
    const acks = acksOf(sent, trial.version ?? 4)
    // PINGRESP need not wait for the commit that the acknowledgements wait for.
    await link.until(
      (seen) => seen.includes('alive') && seen.filter((word) => word.startsWith('PUB')).length >= acks,
    )
  }
  const words = link.seen.filter((word) => word !== 'alive')
  if (trial.leaves) words.push('left')
  else if (link.closed) words.push(await closedWhy(world, countsBefore))
  else words.push(link.seen.includes('alive') ? 'alive' : 'no answer')
  socket.destroy()
  if (trial.payload !== undefined)
    words.push((await isDelivered(world, trial.payload)) ? 'delivered' : 'not delivered')
  return words.join(', ')
}

function openStream(
  transport: Transport,
  to: { port: number; localAddress: string } & Partial<Certificate>,
): Duplex {
  if (isWebSocket(transport)) {
    const url = `${schemes[transport]}://127.0.0.1:${to.port}/mqtt`
    const options = { ...to, perMessageDeflate: false, rejectUnauthorized: false }
    return createWebSocketStream(new WebSocket(url, 'mqtt', options))
  }
  const all = { ...to, host: '127.0.0.1', noDelay: true }
  return isSecure(transport) ? connectTls({ ...all, rejectUnauthorized: false }) : connectTcp(all)
}

function watch(socket: Duplex, version: 4 | 5) {
  const seen: string[] = []
  let closed = false
  let wake: () => void = () => undefined
  const take = (word: string) => {
    seen.push(word)
    wake()
  }
  const parse = parser({ protocolVersion: 4 })
  parse.on('packet', (packet) => take(wordOf(packet)))
  let rest: Buffer = Buffer.alloc(0)
  const readStrictly = (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (let packet = readServerPacket(rest); packet !== null; packet = readServerPacket(rest)) {
      rest = rest.subarray(packet.bytes)
      take(wordOf5(packet))
    }
  }
  socket.on('data', (chunk: Buffer) => (version === 5 ? readStrictly(chunk) : parse.parse(chunk)))
  // The stream of a WebSocket waits for both directions.
  socket.on('end', () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    closed = true
    wake()
  })
  return {
    seen,
    get closed() {
      return closed
    },
    /** Ends also with the connection, or when no answer comes. */
    async until(met: (seen: readonly string[]) => boolean): Promise<void> {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, answerMs)
        wake = () => {
          if (!met(seen) && !closed) return
          clearTimeout(timer)
          resolve()
        }
        wake()
      })
    },
  }
}

function wordOf(packet: Packet): string {
  if (packet.cmd === 'connack') return `CONNACK ${packet.returnCode}`
  if (packet.cmd === 'suback') return `SUBACK ${packet.granted.map(Number).join(' ')}`
  return packet.cmd === 'pingresp' ? 'alive' : packet.cmd.toUpperCase()
}

/** `CONNACK 0x00`, `PUBACK 0x10`; a DISCONNECT has its reason code, too. */
function wordOf5({ type, code, codes }: ServerPacket): string {
  if (type === 'pingresp') return 'alive'
  const all = type === 'suback' || type === 'unsuback' ? codes : [code]
  return [type.toUpperCase(), ...all.map((one) => `0x${one.toString(16).padStart(2, '0')}`)].join(' ')
}

/** How many acknowledgements a client gets for these packets. */
function acksOf(bytes: Buffer, protocolVersion: 4 | 5): number {
  let acks = 0
  const parse = parser({ protocolVersion })
  parse.on('packet', (packet) => {
    if ((packet.cmd === 'publish' && packet.qos > 0) || packet.cmd === 'pubrel') acks += 1
  })
  // Malformed packets are what an attempt sends.
  parse.on('error', () => undefined)
  parse.parse(bytes)
  return acks
}

/** By reason, how many connections the daemon refused or closed. */
async function reasonCounts({ opsUrl }: HostileWorld): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text()
  const found = text.matchAll(/^gateway_clients_(?:refused|dropped)_total\{.*reason="(\w+)".*\} (\d+)$/gm)
  return new Map([...found].map(([, reason = '', count]) => [reason, Number(count)]))
}

async function closedWhy(world: HostileWorld, before: ReadonlyMap<string, number>): Promise<string> {
  const now = await reasonCounts(world)
  const more = [...now].filter(([reason, count]) => count > (before.get(reason) ?? 0))
  return more.length === 0 ? 'closed' : `closed (${more.map(([reason]) => reason).join(', ')})`
}

/** The numbers of payloads that attempts publish; each is used once. */
let payloads = 0
export function nextPayload(): number {
  payloads += 1
  return payloads
}

/** A position that the service knows again by its number. */
export function positionOf({ firstTime }: HostileWorld, number: number, more: object = {}): string {
  return JSON.stringify({ ts: firstTime + number, gps: { lat: 51 + number / 1e4, lon: 9 }, ...more })
}

/** Whether the payload is at the service when nothing is open any more. */
async function isDelivered(world: HostileWorld, number: number): Promise<boolean> {
  const deadlineMs = performance.now() + 10_000
  let quiet = 0
  while (quiet < 2 && performance.now() < deadlineMs) {
    const status = await world.status()
    const open = status?.lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
    quiet = open === 0 ? quiet + 1 : 0
    await pause(60)
  }
  return [...world.received.values()].some((numbers) => numbers.includes(number))
}

/** An attempt whose trial does not depend on the world. */
export function trialOf(
  who: string,
  what: string,
  expected: string,
  trial: Trial,
  only?: readonly Transport[],
): Attempt {
  const act = (world: HostileWorld, transport: Transport) => tryMqtt(world, transport, trial)
  return { who, where: 'mqtt', what, expected, act, ...(only && { only }) }
}
