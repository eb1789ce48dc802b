// crash-devices.ts: the devices of a crash run. Each keeps only what was not acknowledged. After a lost
// connection it sends that again, in order and with DUP, and continues. They publish as many messages as they
// are allowed to.

import { setTimeout as pauseMs } from 'node:timers/promises'
import { createDevice, type Device } from '../support/mqtt-device.ts'
import { bytesOf, doomedDevice, messageOf, topicOf, type Message } from './crash-message.ts'

export type FleetCounts = { published: number; acked: number; resent: number; outOfOrder: number }

export type Fleet = {
  readonly counts: Readonly<FleetCounts>
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
  serve(port: number, alive: () => boolean): Promise<void>
  /** Something that was granted is not acknowledged yet. */
  readonly busy: boolean
  /** Ends all connections. */
  disconnect(): void
}

const reconnectMs = 10

type Vehicle = { name: string; qos: 1 | 2; window: number; sent: Message[]; unacked: Map<number, Message> }

export function createFleet(options: { devices: number; window: number }): Fleet {
  const vehicles: Vehicle[] = Array.from({ length: options.devices }, (_, index) => ({
    name: index === 0 ? doomedDevice : `truck-${index}`,
    qos: index % 4 === 3 ? 2 : 1,
    // This device is slower: its payloads are retried and become dead letters.
    window: index === 0 ? 1 : options.window,
    sent: [],
    unacked: new Map(),
  }))
  const counts: FleetCounts = { published: 0, acked: 0, resent: 0, outOfOrder: 0 }
  const links = new Set<Device>()
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

  function publishNext(vehicle: Vehicle, link: Device): number {
    const message = messageOf(vehicle.name, vehicle.sent.length + 1, vehicle.qos)
    vehicle.sent.push(message)
    counts.published += 1
    const messageId = ((message.n - 1) % 65_535) + 1
    vehicle.unacked.set(messageId, message)
    link.publish({ topic: topicOf(message), payload: bytesOf(message), qos: message.qos, messageId })
    return messageId
  }

  /** Ends with the daemon. */
  async function drive(vehicle: Vehicle, port: number, alive: () => boolean): Promise<void> {
    while (alive()) {
      const link = await createDevice({ port, clientId: vehicle.name }).catch(() => null)
      if (link !== null) await useLink(vehicle, link)
      // The sockets close shortly before the exit of the process is reported.
      await pauseMs(reconnectMs)
    }
  }

  async function useLink(vehicle: Vehicle, link: Device): Promise<void> {
    links.add(link)
    try {
      await link.connect()
      await talk(vehicle, link)
    } catch (error) {
      if (!link.closed) throw error
    } finally {
      link.destroy()
      links.delete(link)
    }
  }

  async function talk(vehicle: Vehicle, link: Device): Promise<void> {
    const awaited: number[] = []
    for (const [messageId, message] of vehicle.unacked) {
      const { qos } = message
      link.publish({ topic: topicOf(message), payload: bytesOf(message), qos, messageId, dup: true })
      awaited.push(messageId)
      counts.resent += 1
    }
    let looked = 0
    for (;;) {
      while (awaited.length < vehicle.window && counts.published < granted)
        awaited.push(publishNext(vehicle, link))
      if (awaited.length === 0) {
        await Promise.race([new Promise<void>((resolve) => void wakers.push(resolve)), link.gone()])
        if (link.closed) return
        continue
      }
      await link.acked(looked + 1)
      for (; looked < link.acks.length; looked += 1) {
        const ack = link.acks[looked]!
        // PUBREC acknowledges the message. PUBREL and PUBCOMP only end its exchange.
        if (ack.cmd !== 'pubcomp') noteAck(vehicle, ack.messageId, awaited)
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
    async serve(port, alive) {
      await Promise.all(vehicles.map((vehicle) => drive(vehicle, port, alive)))
    },
    disconnect() {
      for (const link of links) link.destroy()
    },
  }
}
