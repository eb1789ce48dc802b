// untimed-fleet.ts: devices of a crash run whose messages cannot be told apart by a device time, or whose
// sessions must survive. Each publishes one message after the other while the other devices are busy.
//
//   parked-1, parked-2   QoS 1, equal bytes, always packet identifier 1. No reading may be lost; where the gateway
//                        cannot decide, a reading comes twice
//   stored-1             QoS 2 in a persistent session, equal bytes, always packet identifier 1: exactly once.
//                        CONNACK must find the session
//   clean-1              QoS 2 in clean sessions, identifiers count up, equal bytes: no reading may be lost
//   parked-5, stored-5, clean-5
//                        the same with MQTT 5, the first two in sessions of a day, the second one over WebSocket
//   brief-5              MQTT 5, QoS 1, a session of 1 s, to which it comes back later: CONNACK must name none
//   tank-1               QoS 1, one value per message (coalesce), identifiers count up: no value may be lost
//   Depot/plant/P1       Sparkplug B over QoS 1, with device times: exactly once

import { setTimeout as pauseMs } from 'node:timers/promises'
import { sparkplugPayload, types } from '../support/sparkplug-payload.ts'
import { openLink, type Link, type Ports } from './crash-link.ts'

type Kind = {
  name: string
  qos: 1 | 2
  clean: boolean
  /** Of MQTT 5; 0 for a session that ends with its connection. Null for 3.1.1. */
  expiryS: number | null
  overWebSocket?: boolean
  /** The packet identifier of the n-th message. */
  idOf: (n: number) => number
  topicOf: (n: number) => string
  bytesOf: (n: number) => string | Buffer
  /** What the service receives of the n-th message; the same for all of a parked vehicle. */
  keyOf: (n: number) => string
  exactly: boolean
}

export type Received = {
  deviceIdentifier: { id: string }
  signalTimestamp: number
  signals?: { type: string; value: string }[]
}

const firstTs = Date.UTC(2026, 0, 1)
const counted = (n: number) => 1000 + (n % 60_000)
const always1 = () => 1
const parkedBytes = () => '{"lat":52.5,"lon":13.4}'

type ParkedKind = Pick<Kind, 'qos' | 'clean' | 'idOf' | 'exactly'> & Partial<Kind>

function parked(name: string, rest: ParkedKind): Kind {
  const topicOf = () => `parked/${name}`
  return { name, expiryS: null, topicOf, bytesOf: parkedBytes, keyOf: () => name, ...rest }
}

const dayS = 86_400
const briefS = 1
/** A session of `briefS` has expired then, also where it counts from the start of the daemon. */
const pastBriefMs = 1500

const plant = 'Depot/plant/P1'

const kinds: readonly Kind[] = [
  parked('parked-1', { qos: 1, clean: true, idOf: always1, exactly: false }),
  parked('parked-2', { qos: 1, clean: false, idOf: always1, exactly: false }),
  parked('stored-1', { qos: 2, clean: false, idOf: always1, exactly: true }),
  parked('clean-1', { qos: 2, clean: true, idOf: counted, exactly: false }),
  parked('parked-5', { qos: 1, clean: false, expiryS: dayS, idOf: always1, exactly: false }),
  parked('stored-5', {
    qos: 2,
    clean: false,
    expiryS: dayS,
    overWebSocket: true,
    idOf: always1,
    exactly: true,
  }),
  parked('clean-5', { qos: 2, clean: true, expiryS: 0, idOf: counted, exactly: false }),
  parked('brief-5', { qos: 1, clean: false, expiryS: briefS, idOf: counted, exactly: false }),
  {
    name: 'tank-1',
    qos: 1,
    expiryS: null,
    clean: true,
    idOf: counted,
    topicOf: (n) => `tanks/tank-1/${n % 2 === 0 ? 'level' : 'heat'}`,
    bytesOf: (n) => JSON.stringify({ value: n }),
    keyOf: (n) => `tank-1 ${n}`,
    exactly: false,
  },
  {
    name: plant,
    qos: 1,
    expiryS: null,
    clean: true,
    idOf: counted,
    topicOf: (n) => `spBv1.0/Depot/${n % 5 === 1 ? 'DBIRTH' : 'DDATA'}/plant/P1`,
    bytesOf: sparkplugOf,
    keyOf: (n) => `${plant} ${firstTs + n * 10}`,
    exactly: true,
  },
]

function sparkplugOf(n: number): Buffer {
  const ts = firstTs + n * 10
  const isBirth = n % 5 === 1
  const metric = (alias: number, name: string, double: number) => ({
    alias,
    ts,
    double,
    ...(isBirth ? { name, type: types.double } : {}),
  })
  const metrics = [metric(1, 'GPS/Latitude', 50 + (n % 1000) / 1000), metric(2, 'GPS/Longitude', 13)]
  return sparkplugPayload({ ts, seq: n % 256, metrics })
}

type Vehicle = {
  kind: Kind
  published: number
  open: number | null
  releasing: boolean
  /** Whether CONNACK must name a session; null where the last CONNACK may have been lost. */
  hasSession: boolean | null
}

export type UntimedCounts = { published: number; twice: Record<string, number> }

export type UntimedFleet = {
  serve(ports: Ports, alive: () => boolean): Promise<void>
  /** Publishes nothing more; resolves when everything is acknowledged. */
  finish(): Promise<void>
  disconnect(): void
  /** Notes what the service accepted; false if it is of another fleet. */
  accepted(payload: Received): boolean
  /** What is wrong, and what came twice. */
  check(): { violations: string[]; counts: UntimedCounts }
}

const betweenMs = 20

export function createUntimedFleet(isBusy: () => boolean): UntimedFleet {
  const vehicles = kinds.map((kind): Vehicle => ({
    kind,
    published: 0,
    open: null,
    releasing: false,
    hasSession: false,
  }))
  const received = new Map<string, number>()
  const violations: string[] = []
  const links = new Set<Link>()
  let finishing = false

  async function drive(vehicle: Vehicle, ports: Ports, alive: () => boolean): Promise<void> {
    while (alive()) {
      const { name: clientId, clean, expiryS, overWebSocket = false } = vehicle.kind
      const version = expiryS === null ? 4 : 5
      // What it publishes waits no longer than the run lasts.
      if (expiryS === briefS && !finishing) await pauseMs(pastBriefMs)
      if (!alive()) return
      const options = { ports, clientId, version, overWebSocket, clean, expiryS: expiryS ?? 0 } as const
      const link = await openLink(options).catch(() => null)
      if (link !== null) {
        links.add(link)
        try {
          await talk(vehicle, link)
        } catch (error) {
          if (!link.closed && link.wrong.length === 0) throw error
        } finally {
          violations.push(...link.wrong.map((what) => `answers: ${what}`))
          link.destroy()
          links.delete(link)
        }
      }
      await pauseMs(10)
    }
  }

  async function talk(vehicle: Vehicle, link: Link): Promise<void> {
    const { kind } = vehicle
    const { hasSession } = vehicle
    const isKept = !kind.clean && kind.expiryS !== briefS
    // It may be stored although its CONNACK is lost.
    if (isKept && hasSession === false) vehicle.hasSession = null
    const { returnCode, sessionPresent } = await link.connect()
    if (returnCode !== 0) return
    if (hasSession === true && !sessionPresent) violations.push(`session lost: that of ${kind.name}`)
    // While the run finishes, a brief one may come back in time.
    if (hasSession === false && sessionPresent && !finishing)
      violations.push(`session present: ${kind.name} has none`)
    vehicle.hasSession = isKept
    let dup = true
    for (;;) {
      if (vehicle.releasing) await release(vehicle, link)
      if (vehicle.open !== null) await publish(vehicle, link, dup)
      dup = false
      await pauseMs(betweenMs)
      if (link.closed) return
      if (finishing || !isBusy() || vehicle.open !== null || vehicle.releasing) continue
      vehicle.published += 1
      vehicle.open = vehicle.published
    }
  }

  async function publish(vehicle: Vehicle, link: Link, dup: boolean): Promise<void> {
    const { kind, open } = vehicle
    if (open === null) return
    const { qos } = kind
    const acks = link.acks.length + 1
    const message = {
      topic: kind.topicOf(open),
      payload: kind.bytesOf(open),
      qos,
      messageId: kind.idOf(open),
      properties: null,
    }
    link.publish({ ...message, dup })
    await link.acked(acks)
    // With QoS 2 the message is the gateway's at PUBREC, and its identifier free at PUBCOMP.
    vehicle.releasing = qos === 2
    if (qos === 1) vehicle.open = null
    else await release(vehicle, link)
  }

  async function release(vehicle: Vehicle, link: Link): Promise<void> {
    const { kind, open } = vehicle
    const acks = link.acks.length + 1
    link.release(kind.idOf(open ?? 0))
    await link.acked(acks)
    vehicle.releasing = false
    vehicle.open = null
  }

  function accepted({ deviceIdentifier: { id }, signalTimestamp, signals = [] }: Received): boolean {
    const vehicle = vehicles.find(({ kind }) => kind.name === id)
    if (vehicle === undefined) return false
    if (id === 'tank-1') for (const { value } of signals) note(`tank-1 ${value}`)
    else note(id === plant ? `${plant} ${signalTimestamp}` : id)
    return true
  }

  function note(key: string): void {
    received.set(key, (received.get(key) ?? 0) + 1)
  }

  function check() {
    const twice: Record<string, number> = {}
    for (const { kind, published } of vehicles) {
      const sent = new Map<string, number>()
      for (let n = 1; n <= published; n += 1) sent.set(kind.keyOf(n), (sent.get(kind.keyOf(n)) ?? 0) + 1)
      let more = 0
      for (const [key, count] of sent) {
        const came = received.get(key) ?? 0
        if (came < count)
          violations.push(`untimed lost: ${key} was published ${count} times and came ${came}`)
        more += Math.max(0, came - count)
      }
      twice[kind.name] = more
      if (kind.exactly && more > 0)
        violations.push(`untimed twice: ${kind.name} came ${more} times too often`)
    }
    const published = vehicles.reduce((sum, vehicle) => sum + vehicle.published, 0)
    return { violations, counts: { published, twice } }
  }

  return {
    async serve(ports, alive) {
      await Promise.all(vehicles.map((vehicle) => drive(vehicle, ports, alive)))
    },
    async finish() {
      finishing = true
      while (vehicles.some(({ open, releasing }) => open !== null || releasing)) await pauseMs(betweenMs)
    },
    disconnect() {
      for (const link of links) link.destroy()
    },
    accepted,
    check,
  }
}
