// attempt.ts: what an attempt is, and how one at the MQTT listener is made: raw bytes, and
// the reason that the daemon counts where it refuses or closes. One attempt at a time, so that the counts are its own.

import { setTimeout as pause } from 'node:timers/promises'
import { parser, type IConnectPacket } from 'mqtt-packet'
import { connectBytes } from '../../support/mqtt-device.ts'
import { readServerPacket3 } from '../../support/mqtt3-packets.ts'
import { pingPacket } from '../../support/mqtt5-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import { openRawDevice } from '../../support/raw-device.ts'
import { fleetUser, type HostileWorld } from '../hostile-world.ts'
import { urlOf, type Transport } from '../route.ts'

export type Attempt = {
  who: string
  where: 'mqtt' | 'files'
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
}

export const withPassword = (clientId: string, packet: Partial<IConnectPacket> = {}) =>
  connectBytes(clientId, {
    username: fleetUser.name,
    password: Buffer.from(fleetUser.password),
    ...packet,
  })

const nothing = Buffer.alloc(0)
const answerMs = 4000
let clients = 0
let trials = 0

/** What the client sees, in order: `CONNACK 0, PUBACK, alive`, or `CONNACK 4, closed (bad_credentials)`. */
export async function tryMqtt(world: HostileWorld, transport: Transport, trial: Trial): Promise<string> {
  const countsBefore = await reasonCounts(world)
  trials += 1
  const { connect, clientId = `trial-${(clients += 1)}` } = trial
  const { atOnce = nothing, sends = nothing } = trial
  // The wait for the answer to a wrong password grows with each one of an address.
  const from = `127.90.${trials >> 8}.${trials & 0xff}`
  const url = urlOf(transport, world.port(transport))
  const to = { url, from, ca: world.ca }
  const device = await openRawDevice(to, readServerPacket3).catch(() => null)
  const seen = () => device?.received.map(wordOf) ?? []
  /** Ends also with the connection, or when no answer comes. */
  const until = async (met: (words: readonly string[]) => boolean) => {
    await Promise.race([device?.until(() => met(seen())), pause(answerMs, null, { ref: false })]).catch(
      () => null,
    )
  }
  const first = connect === undefined ? withPassword(clientId) : (connect ?? nothing)
  device?.send(first instanceof Buffer ? first : connectBytes(clientId, first), atOnce)
  if (connect !== null) await until((words) => words.length > 0)
  device?.send(sends)
  if (trial.leaves) {
    await pause(100)
    device?.destroy()
  } else {
    if (connect !== null) device?.send(pingPacket)
    const acks = acksOf(Buffer.concat([atOnce, sends]))
    // PINGRESP need not wait for the commit that the acknowledgements wait for.
    await until(
      (words) => words.includes('alive') && words.filter((word) => word.startsWith('PUB')).length >= acks,
    )
  }
  const isAlive = seen().includes('alive')
  const words = seen().filter((word) => word !== 'alive')
  if (trial.leaves) words.push('left')
  else if (device?.closed ?? true) words.push(await closedWhy(world, countsBefore))
  else words.push(isAlive ? 'alive' : 'no answer')
  device?.destroy()
  if (trial.payload !== undefined)
    words.push((await isDelivered(world, trial.payload)) ? 'delivered' : 'not delivered')
  return words.join(', ')
}

function wordOf({ type, code, codes }: ServerPacket): string {
  if (type === 'pingresp') return 'alive'
  const shown = type === 'connack' ? [code] : codes
  return [type.toUpperCase(), ...shown].join(' ')
}

/** How many acknowledgements a client gets for these packets. */
function acksOf(bytes: Buffer): number {
  let acks = 0
  const parse = parser()
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
  return world.service.arrivals.some(({ ts }) => ts === world.firstTime + number)
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
