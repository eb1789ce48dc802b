// mqtt-device.ts: an MQTT client of one simulated vehicle that loses no message, of version 3.1.1 or 5.
//
//   offer -> waiting -> in flight -> acked (forgotten)
//               ^           |
//               '-----------'  connection lost: the same message again, same packet id, with DUP
//
// An mqtt.js client serves one connection only: its own reconnect has no back-off and stops for good after a
// refused CONNECT. Each attempt is a new client, and unacknowledged messages are kept here, in order. The
// packet identifiers are assigned here too: a message keeps its own over reconnects [MQTT-4.4.0-1], and DUP
// is set on every message that was sent before [MQTT-3.3.1-1].
//
// With MQTT 5 no more messages are in flight than the broker takes at a time (receive maximum), and a topic
// is sent once for each connection: mqtt.js replaces it by a topic alias, where the broker has any.

import { Socket } from 'node:net'
import { connect, type IClientOptions, type MqttClient } from 'mqtt'
import { pause, type Clock } from '../std/clock.ts'
import { messageOf } from '../std/gateway-error.ts'
import type { Publication } from './formats/formats.ts'

export type Device = {
  /** Takes a message; false where `unackedMax` messages wait already, and the message is not taken. */
  offer(publication: Publication): boolean
  /** Connects and reconnects until `signal` aborts, then disconnects. */
  run(signal: AbortSignal): Promise<void>
  readonly connected: boolean
  readonly unacked: number
}

export type DeviceDeps = {
  clock: Clock
  random: () => number
  onAck: (latencyMs: number) => void
  onSent: (dup: boolean) => void
  /** `again` after the first connection of this device. */
  onConnected: (again: boolean) => void
  /** A connection was lost or an attempt failed. */
  onProblem: (problem: string) => void
}

export type DeviceOptions = {
  brokerUrl: string
  clientId: string
  /** 4 is MQTT 3.1.1. */
  protocolVersion: 4 | 5
  /** Messages kept until they are acknowledged; at this number the device takes no more. */
  unackedMax: number
  /** Messages sent and not acknowledged on one connection. */
  inFlightMax: number
  keepaliveS: number
  connectTimeoutMs: number
  /** Full jitter: a random delay from zero to `firstMs`, doubled with each failure, at most `mostMs`. */
  backoff: { firstMs: number; mostMs: number }
}

/** Time for a DISCONNECT before the connection is cut. */
const goodbyeMs = 1000

type Unacked = { messageId: number; publication: Publication; offeredAtMs: number; sent: boolean }

export function createDevice(deps: DeviceDeps, options: DeviceOptions): Device {
  const { clock, random } = deps
  /** By packet identifier, oldest first. */
  const unacked = new Map<number, Unacked>()
  /** Those that were not sent on this connection yet, oldest first. */
  let waiting: Unacked[] = []
  let inFlight = 0
  let inFlightMax = options.inFlightMax
  let lastMessageId = 0
  let connections = 0
  let connection: Connection | null = null

  return {
    offer,
    run,
    get connected() {
      return connection !== null
    },
    get unacked() {
      return unacked.size
    },
  }

  function offer(publication: Publication): boolean {
    if (unacked.size >= options.unackedMax) return false
    const messageId = freeMessageId()
    const message = { messageId, publication, offeredAtMs: clock.monotonic(), sent: false }
    unacked.set(messageId, message)
    waiting.push(message)
    sendWaiting()
    return true
  }

  /** 1 to 65,535 [MQTT-2.3.1-1]; `unackedMax` is far below, so the search is short. */
  function freeMessageId(): number {
    do {
      lastMessageId = (lastMessageId % 0xffff) + 1
    } while (unacked.has(lastMessageId))
    return lastMessageId
  }

  function sendWaiting(): void {
    const current = connection
    if (current === null) return
    while (inFlight < inFlightMax) {
      const message = waiting.shift()
      if (message === undefined) return
      inFlight += 1
      deps.onSent(message.sent)
      current.publish(message, () => acked(message))
      message.sent = true
    }
  }

  function acked(message: Unacked): void {
    inFlight -= 1
    unacked.delete(message.messageId)
    deps.onAck(clock.monotonic() - message.offeredAtMs)
    sendWaiting()
  }

  async function run(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      const wasConnected = await holdConnection(signal)
      failures = wasConnected ? 1 : failures + 1
      const { firstMs, mostMs } = options.backoff
      const delayMs = random() * Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30))
      await pause(clock, delayMs, signal)
    }
  }

  /** One attempt, from CONNECT to the end of the connection; true where the broker accepted it. */
  function holdConnection(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const opening = openConnection(options)
      const { client } = opening
      let wasConnected = false
      let problem = 'the broker closed the connection'
      const onAbort = () => hangUp(client, clock, { politely: wasConnected && unacked.size === 0 })
      client.on('connect', ({ properties }) => {
        if (signal.aborted) return
        inFlightMax = Math.min(options.inFlightMax, properties?.receiveMaximum ?? Infinity)
        wasConnected = true
        connection = opening
        inFlight = 0
        waiting = [...unacked.values()]
        connections += 1
        deps.onConnected(connections > 1)
        sendWaiting()
      })
      client.on('error', (error) => {
        problem = messageOf(error)
        // A refused CONNECT and a broken packet leave the socket open.
        hangUp(client, clock, { politely: false })
      })
      client.once('close', () => {
        signal.removeEventListener('abort', onAbort)
        connection = null
        client.end(true)
        if (!signal.aborted) deps.onProblem(problem)
        resolve(wasConnected)
      })
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }
}

type Connection = {
  client: MqttClient
  publish(message: Unacked, onAck: () => void): void
}

function openConnection(options: DeviceOptions): Connection {
  // mqtt.js requests an identifier when it sends a publish, in the order of the calls.
  const messageIds: number[] = []
  const messageIdProvider: IClientOptions['messageIdProvider'] = {
    allocate: () => messageIds.shift() ?? null,
    getLastAllocated: () => null,
    register: () => true,
    deallocate: () => undefined,
    clear: () => undefined,
  }
  const client = connect(options.brokerUrl, {
    clientId: options.clientId,
    protocolVersion: options.protocolVersion,
    ...(options.protocolVersion === 5 && { autoAssignTopicAlias: true }),
    // What must survive a reconnect is kept here. A clean session leaves nothing at the broker.
    clean: true,
    reconnectPeriod: 0,
    keepalive: options.keepaliveS,
    connectTimeout: options.connectTimeoutMs,
    messageIdProvider,
  })
  client.once('connect', () => {
    // Nagle's algorithm would hold small messages back until earlier packets are acknowledged.
    if (client.stream instanceof Socket) client.stream.setNoDelay(true)
  })
  return {
    client,
    publish({ messageId, publication, sent }, onAck) {
      messageIds.push(messageId)
      client.publish(publication.topic, publication.bytes, { qos: 1, dup: sent }, (error) => {
        // After an error the connection is gone. The message stays unacknowledged and is sent on the next
        // one.
        if (!error) onAck()
      })
    },
  }
}

/** Ends in the `close` event of the client: with DISCONNECT where possible, and always within the limit. */
function hangUp(client: MqttClient, clock: Clock, { politely }: { politely: boolean }): void {
  client.end(!politely)
  const cancel = clock.after(goodbyeMs, () => client.stream.destroy())
  client.once('close', cancel)
}
