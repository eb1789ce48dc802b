// simulate.ts: the entry file of the simulator: vehicles that publish real MQTT, for trying out and for load.
//
// Guarantees
//   A message counts as `acked` only when its PUBACK arrived. A device that loses its connection reconnects
//   with
//   back-off and jitter, and sends unacknowledged messages again with DUP. The simulator loses nothing, so a
//   missing message was lost after its PUBACK.
//   The tracks depend on `random` and the clock alone: the same seed and times give the same readings
//   whatever
//   the network does. Back-off and the order of connections use random streams of their own.
//
// Timing
//   `ratePerS` is the rate of all devices together; they take turns. Messages are due on a fixed grid, so a
//   slow
//   broker does not lower the offered rate. A latency starts when the vehicle makes the message, so waiting
//   for a
//   connection is part of it.
//
// Failures
//   The broker is away or holds its acks: each device keeps `unackedPerDeviceMax` messages. When every device
//   is
//   full, no message is made and `stalled` counts those that were due. No message is dropped.
//   The process was suspended (a laptop's lid): it catches up with at most one second of messages.

import { pause, type Clock } from '../std/clock.ts'
import type { NewId } from '../domain/ids.ts'
import { drawSeed, seededRandom } from './seeded-random.ts'
import { createDevice, type Device } from './mqtt-device.ts'
import { publicationOf, type FormatName } from './formats/formats.ts'
import { createLatency, type LatencySummary } from './ack-latency.ts'
import { createVehicle, type Vehicle } from './vehicle.ts'

export { seededRandom } from './seeded-random.ts'
export { formatNames, type FormatName } from './formats/formats.ts'
export { createLatency, type LatencySummary } from './ack-latency.ts'

export type FleetDeps = {
  clock: Clock
  random: () => number
  /** Part of each MQTT client id, so that two simulations on one broker do not disconnect each other. */
  newId: NewId
}

export type FleetOptions = {
  /** mqtt://, mqtts://, ws:// or wss://; may contain user and password. */
  brokerUrl: string
  /** Named `truck-1` to `truck-N`. */
  devices: number
  /** Messages per second, all devices together. */
  ratePerS: number
  /** Number of messages; without it the simulation runs until it is stopped. */
  count?: number
  /** Default `telemetry-v1`. */
  format?: FormatName
  /** 4, the default, is MQTT 3.1.1. */
  protocolVersion?: 4 | 5
  onAck?: (ack: { device: string; latencyMs: number }) => void
}

export type FleetStats = {
  devices: number
  connected: number
  /** Messages made by the vehicles; published = acked + unacked. */
  published: number
  acked: number
  unacked: number
  /** Messages sent again with DUP. */
  resent: number
  /** Connections after the first of each device. */
  reconnects: number
  /** Messages that were due while every device was full. */
  stalled: number
  latency: LatencySummary
  /** Why the last connection was lost or failed. */
  lastProblem: string | null
}

export type Fleet = {
  start(): void
  /** True once `count` messages are acknowledged; false when `signal` aborts first. */
  whenAcked(signal: AbortSignal): Promise<boolean>
  /** Makes no new message, waits for unacknowledged ones until `deadline` aborts, then disconnects. */
  stop(deadline: AbortSignal): Promise<void>
  stats(): FleetStats
  /** The client id is one of a vehicle. */
  hasClient(clientId: string): boolean
}

/** Messages that one device keeps while the broker does not ack: 15 minutes at one per second. */
const unackedPerDeviceMax = 1000
const inFlightPerDeviceMax = 64
/** Delay between the connection attempts of two devices, to spread them; `connectSpreadMaxMs` in total. */
const connectSpreadMs = 2
const connectSpreadMaxMs = 5000
/** The resolution of timers. */
const tickMs = 5
const catchUpMaxMs = 1000

type Truck = { name: string; vehicle: Vehicle; device: Device }

export function createFleet({ clock, random, newId }: FleetDeps, options: FleetOptions): Fleet {
  const count = options.count ?? Number.POSITIVE_INFINITY
  const latency = createLatency()
  const making = new AbortController()
  const connecting = new AbortController()
  const watchers = new Set<() => void>()
  const counts = { published: 0, acked: 0, resent: 0, reconnects: 0, stalled: 0 }
  let lastProblem: string | null = null
  let turn = 0
  let ending: Promise<unknown> = Promise.resolve()
  const clientIds = new Set<string>()
  const trucks: readonly Truck[] = Array.from({ length: options.devices }, (_, index) => addTruck(index + 1))

  return {
    start() {
      // Neither rejects unless the code is wrong, and that must end the process.
      ending = Promise.all([
        makeMessages(),
        ...trucks.map(({ device }, index) => keepConnected(device, index)),
      ])
    },
    whenAcked: (signal) => until(() => counts.acked >= count, signal),
    async stop(deadline) {
      making.abort()
      await until(() => counts.acked === counts.published, deadline)
      connecting.abort()
      await ending
    },
    stats,
    hasClient: (clientId) => clientIds.has(clientId),
  }

  function addTruck(number: number): Truck {
    const name = `truck-${number}`
    const vehicle = createVehicle(seededRandom(drawSeed(random)), { device: name, startAt: clock.now() })
    const clientId = `${name}-${newId().slice(0, 8)}`
    clientIds.add(clientId)
    const device = createDevice(
      {
        clock,
        random: seededRandom(drawSeed(random)),
        onAck: (latencyMs) => acked(name, latencyMs),
        onSent: (dup) => void (counts.resent += dup ? 1 : 0),
        onConnected: (again) => void (counts.reconnects += again ? 1 : 0),
        onProblem: (problem) => void (lastProblem = problem),
      },
      {
        brokerUrl: options.brokerUrl,
        clientId,
        protocolVersion: options.protocolVersion ?? 4,
        unackedMax: unackedPerDeviceMax,
        inFlightMax: inFlightPerDeviceMax,
        keepaliveS: 30,
        connectTimeoutMs: 10_000,
        backoff: { firstMs: 500, mostMs: 15_000 },
      },
    )
    return { name, vehicle, device }
  }

  async function keepConnected(device: Device, index: number): Promise<void> {
    const spreadMs = Math.min(connectSpreadMs, connectSpreadMaxMs / options.devices)
    await pause(clock, index * spreadMs, connecting.signal)
    await device.run(connecting.signal)
  }

  /** Ends when `count` messages are made, or at stop. */
  async function makeMessages(): Promise<void> {
    const gapMs = 1000 / options.ratePerS
    let dueMs = clock.monotonic()
    while (!making.signal.aborted && counts.published < count) {
      const nowMs = clock.monotonic()
      dueMs = Math.max(dueMs, nowMs - catchUpMaxMs)
      while (dueMs <= nowMs && counts.published < count) {
        if (!makeMessage()) counts.stalled += 1
        dueMs += gapMs
      }
      await pause(clock, Math.max(tickMs, dueMs - nowMs), making.signal)
    }
  }

  /** The next vehicle in turn that has room; false when all are full. */
  function makeMessage(): boolean {
    for (let tried = 0; tried < trucks.length; tried += 1) {
      const truck = trucks[turn % trucks.length]
      turn = (turn + 1) % trucks.length
      if (truck === undefined || truck.device.unacked >= unackedPerDeviceMax) continue
      counts.published += 1
      const reading = truck.vehicle.drive(clock.now())
      truck.device.offer(publicationOf(options.format ?? 'telemetry-v1', reading))
      return true
    }
    return false
  }

  function acked(device: string, latencyMs: number): void {
    counts.acked += 1
    latency.record(latencyMs)
    options.onAck?.({ device, latencyMs })
    for (const check of watchers) check()
  }

  /** True when `holds` becomes true, which only an ack can cause; false when `signal` aborts first. */
  function until(holds: () => boolean, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const check = () => {
        if (!holds() && !signal.aborted) return
        watchers.delete(check)
        signal.removeEventListener('abort', check)
        resolve(holds())
      }
      watchers.add(check)
      signal.addEventListener('abort', check, { once: true })
      check()
    })
  }

  function stats(): FleetStats {
    const connected = trucks.filter(({ device }) => device.connected).length
    const { published, acked } = counts
    return {
      devices: trucks.length,
      connected,
      ...counts,
      unacked: published - acked,
      latency: latency.summary(),
      lastProblem,
    }
  }
}
