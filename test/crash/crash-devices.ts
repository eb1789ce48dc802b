// crash-devices.ts: the devices of a crash run. Each keeps only what was not acknowledged. After a lost
// connection it sends that again, in order and with DUP, and continues. They publish as many messages as they
// are allowed to.
//
// Half of them speak MQTT 5, half of those over WebSocket: in stored sessions, clean ones, and sessions that each
// connection begins anew. With QoS 2 in a stored session, PUBREL is sent again too. CONNACK must name a session that
// is stored, and no other one.

import { setTimeout as pauseMs } from 'node:timers/promises'
import { openLink, type Link, type Ports } from './crash-link.ts'
import { bytesOf, doomedDevice, messageOf, topicOf, type Message } from './crash-message.ts'

export type FleetCounts = { published: number; acked: number; resent: number; outOfOrder: number }

export type Fleet = {
  readonly counts: Readonly<FleetCounts>
  /** Answers and sessions that break the protocol. */
  readonly wrong: readonly string[]
  /** All published messages, with whether each was acknowledged. */
  messages(): Iterable<{ message: Message; acked: boolean }>
  /** Lets the devices publish `more` messages in total. */
  grant(more: number): void
  /** Resolves when everything that was granted is acknowledged. */
  quiet(): Promise<void>
  /** Calls `listener` after every ack. */
  onAck(listener: (() => void) | null): void
  /**
   * Connects all devices and publishes, over lost connections, as long as the daemon is `alive`; resolves
   * then.
   */
  serve(ports: Ports, alive: () => boolean): Promise<void>
  /** Something that was granted is not acknowledged yet. */
  readonly busy: boolean
  /** Ends all connections. */
  disconnect(): void
}

const reconnectMs = 10

type Vehicle = {
  name: string
  qos: 1 | 2
  window: number
  version: 4 | 5
  overWebSocket: boolean
  /** Of 3.1.1 and `clean`: no session survives its connection. `renewed`: each connection begins another one. */
  kind: 'clean' | 'stored' | 'renewed'
  /** Whether CONNACK must name a session; null where the last CONNACK may have been lost. */
  hasSession: boolean | null
  sent: Message[]
  unacked: Map<number, Message>
  /** QoS 2 in a stored session: PUBREC came, PUBCOMP did not. */
  unreleased: Set<number>
}

const expiryS = 86_400
/** CONNACK, while the store is being reopened. */
const sessionNotStored = 0x88
/** What a device of MQTT 5 uses at most, whatever the gateway allows. */
const windowMax = 16

export function createFleet(options: { devices: number; window: number }): Fleet {
  const vehicles: Vehicle[] = Array.from({ length: options.devices }, (_, index) => ({
    name: index === 0 ? doomedDevice : `truck-${index}`,
    qos: index > 0 && index % 3 === 0 ? 2 : 1,
    // This device is slower: its payloads are retried and become dead letters.
    window: index === 0 ? 1 : options.window,
    version: index % 2 === 0 ? 4 : 5,
    overWebSocket: index % 4 === 3 || index === 4,
    kind: index % 2 === 0 ? 'clean' : (['stored', 'stored', 'clean', 'renewed'] as const)[(index >> 1) % 4]!,
    hasSession: false,
    sent: [],
    unacked: new Map(),
    unreleased: new Set(),
  }))
  const wrong: string[] = []
  const counts: FleetCounts = { published: 0, acked: 0, resent: 0, outOfOrder: 0 }
  const links = new Set<Link>()
  let granted = 0
  let wakers: (() => void)[] = []
  let quietWaiters: (() => void)[] = []
  let ackListener: (() => void) | null = null

  function grant(more: number): void {
    granted += more
    const waking = wakers
    wakers = []
    for (const wake of waking) wake()
  }

  function publishNext(vehicle: Vehicle, link: Link): number {
    const message = messageOf(vehicle.name, vehicle.sent.length + 1, vehicle)
    vehicle.sent.push(message)
    counts.published += 1
    const messageId = ((message.n - 1) % 65_535) + 1
    vehicle.unacked.set(messageId, message)
    publish(link, message, messageId, false)
    return messageId
  }

  function publish(link: Link, message: Message, messageId: number, dup: boolean): void {
    const { qos, properties } = message
    link.publish({ topic: topicOf(message), payload: bytesOf(message), qos, messageId, dup, properties })
  }

  /** Ends with the daemon. */
  async function drive(vehicle: Vehicle, ports: Ports, alive: () => boolean): Promise<void> {
    while (alive()) {
      const { name: clientId, version, overWebSocket, kind } = vehicle
      const link = await openLink({
        ports,
        clientId,
        version,
        overWebSocket,
        clean: version === 4 || kind === 'renewed',
        expiryS: kind === 'clean' ? 0 : expiryS,
      }).catch(() => null)
      if (link !== null) await useLink(vehicle, link)
      // The sockets close shortly before the exit of the process is reported.
      await pauseMs(reconnectMs)
    }
  }

  async function useLink(vehicle: Vehicle, link: Link): Promise<void> {
    links.add(link)
    try {
      const receiveMaximum = await begin(vehicle, link)
      if (receiveMaximum !== null) await talk(vehicle, link, Math.min(receiveMaximum, windowMax))
    } catch (error) {
      if (!link.closed && link.wrong.length === 0) throw error
    } finally {
      wrong.push(...link.wrong)
      link.destroy()
      links.delete(link)
    }
  }

  /** The receive maximum of the gateway; null where it cannot store the session now. */
  async function begin(vehicle: Vehicle, link: Link): Promise<number | null> {
    const { name, kind, hasSession } = vehicle
    // The session may be stored although its CONNACK is lost.
    if (kind === 'stored' && hasSession === false) vehicle.hasSession = null
    const { returnCode, sessionPresent, receiveMaximum } = await link.connect()
    if (returnCode === sessionNotStored) return null
    if (returnCode !== 0) wrong.push(`${name} got CONNACK ${returnCode}`)
    if (hasSession !== null && hasSession !== sessionPresent)
      wrong.push(`${name} (${kind}) got CONNACK with session present ${sessionPresent}`)
    vehicle.hasSession = kind === 'stored'
    if (!sessionPresent) vehicle.unreleased.clear()
    return receiveMaximum
  }

  async function talk(vehicle: Vehicle, link: Link, receiveMaximum: number): Promise<void> {
    const window = vehicle.version === 5 ? receiveMaximum : vehicle.window
    const { unreleased } = vehicle
    const awaited: number[] = []
    for (const messageId of unreleased) link.release(messageId)
    for (const [messageId, message] of vehicle.unacked) {
      publish(link, message, messageId, true)
      awaited.push(messageId)
      counts.resent += 1
    }
    let looked = 0
    for (;;) {
      while (awaited.length + unreleased.size < window && counts.published < granted)
        awaited.push(publishNext(vehicle, link))
      if (awaited.length === 0 && unreleased.size === 0) {
        await Promise.race([new Promise<void>((resolve) => void wakers.push(resolve)), link.gone()])
        if (link.closed) return
        continue
      }
      await link.acked(looked + 1)
      for (; looked < link.acks.length; looked += 1) {
        const { cmd, messageId } = link.acks[looked]!
        // PUBREC acknowledges the message. PUBREL and PUBCOMP only end its exchange.
        if (cmd === 'pubcomp') unreleased.delete(messageId)
        else noteAck(vehicle, messageId, awaited)
        if (cmd !== 'pubrec') continue
        link.release(messageId)
        // The receive maximum counts until PUBCOMP.
        if (vehicle.version === 5) unreleased.add(messageId)
      }
    }
  }

  function noteAck(vehicle: Vehicle, messageId: number, awaited: number[]): void {
    const place = awaited.indexOf(messageId)
    if (place !== 0) counts.outOfOrder += 1
    if (place < 0) return
    awaited.splice(place, 1)
    vehicle.unacked.delete(messageId)
    counts.acked += 1
    ackListener?.()
    if (!isQuiet()) return
    const waiters = quietWaiters
    quietWaiters = []
    for (const resolve of waiters) resolve()
  }

  function isQuiet(): boolean {
    return counts.acked === granted
  }

  function* messages() {
    for (const { sent, unacked } of vehicles) {
      const open = new Set(unacked.values())
      for (const message of sent) yield { message, acked: !open.has(message) }
    }
  }

  return {
    counts,
    wrong,
    messages,
    grant,
    quiet: () =>
      new Promise((resolve) => {
        if (isQuiet()) resolve()
        else quietWaiters.push(resolve)
      }),
    get busy() {
      return !isQuiet()
    },
    onAck(listener) {
      ackListener = listener
    },
    async serve(ports, alive) {
      await Promise.all(vehicles.map((vehicle) => drive(vehicle, ports, alive)))
    },
    disconnect() {
      for (const link of links) link.destroy()
    },
  }
}
