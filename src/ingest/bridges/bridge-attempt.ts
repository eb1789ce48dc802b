// bridge-attempt.ts: one connection to a broker, from the socket over CONNACK and SUBACK to its end: a stream
// and a client object of mqtt.js. bridge-link.ts makes the next one; bridge-check.ts makes one to try.

import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { MqttClient } from 'mqtt'
import type { IConnackPacket } from 'mqtt-packet'
import { pause, type Clock } from '../../std/clock.ts'
import { noteAttempts } from '../../std/network-faults/address-attempts.ts'
import type { Partition } from '../message-sources/message-sources.ts'
import { openSocket } from './bridge-socket.ts'
import {
  ConnectionFault,
  disconnectFault,
  faultOf,
  refusedFrom,
  subscriptionFault,
  supportFault,
  type Fault,
  type FaultPlace,
  type Granted,
} from './bridge-faults/bridge-faults.ts'
import { connectOptions, filtersOf, subscribe, unsubscribe } from './mqtt-session.ts'
import type { PublishPacket } from './publish-frames.ts'
import { createPublishStream, type PublishStream } from './publish-stream.ts'
import type { BridgeOptions } from './types.ts'

/** `P`: what the messages are handed over to. */
export type Attempt<P = Partition> = {
  client: MqttClient
  socket: Duplex
  stream: PublishStream
  partition: P
  /** How far it is; for the words of a fault. */
  place: FaultPlace
  /** Monotonic, when it was subscribed. */
  openedAtMs: number | null
  sessionPresent: boolean
  /** Why it ends; the first reason counts. */
  fault: Fault | null
  ended: boolean
}

type Handlers<P> = {
  clock: Clock
  partition: P
  room: () => number
  take: (attempt: Attempt<P>, packet: PublishPacket) => void
  /**
   * CONNACK and SUBACK came, and grant at least one filter; of a check, all. `removed`: filters that were
   * unsubscribed.
   */
  opened: (connack: IConnackPacket, granted: readonly Granted[], removed: readonly string[]) => void
  /** It may be called several times. */
  end: (attempt: Attempt<P>, fault: Fault) => void
}

type AttemptOptions = BridgeOptions & { clientId: string; isCheck: boolean }

const answerMs = 1000
/** If no message comes for this time, a member that left its group has received all of its share. */
const quietMs = 300
const leaveMs = 5000
const never = new AbortController().signal

/** Throws for a certificate or key that cannot be used. */
export function openAttempt<P>(
  { clock, partition, room, take, opened, end }: Handlers<P>,
  options: AttemptOptions,
): Attempt<P> {
  const { made: socket, attempts } = noteAttempts(() =>
    openSocket(options.url, options.tls, options.connectTimeoutMs),
  )
  const stream = createPublishStream(
    {
      socket,
      room,
      greeted: (sessionPresent) => void (made.sessionPresent = sessionPresent),
      publish: (packet) => take(made, packet),
      fault: (code, start) => noteFault(made, faultOf(new ConnectionFault(code, start), made.place)),
    },
    options,
  )
  // mqtt.js tells of no error without a code, such as those of WebSocket.
  socket.once('error', (error) => noteFault(made, faultOf(error, made.place)))
  // mqtt.js destroys the socket before it says that there is no CONNACK.
  let isConnected = false
  if (socket instanceof Socket) socket.once('connect', () => (isConnected = true))
  const client = new MqttClient(() => stream.duplex, connectOptions(options, options.clientId))
  const made: Attempt<P> = {
    client,
    socket,
    stream,
    partition,
    place: placeOf(options),
    openedAtMs: null,
    sessionPresent: false,
    fault: null,
    ended: false,
  }
  const fail = (error: unknown) => end(made, made.fault ?? faultOf(error, made.place))
  client.on('connect', (connack) => {
    made.place.stage = 'subscribing'
    start(connack).catch(fail)
  })
  client.on('packetreceive', (packet) => {
    if (packet.cmd !== 'connack' && packet.cmd !== 'disconnect') return
    made.place.reasonString = packet.properties?.reasonString ?? null
    made.place.serverReference = packet.properties?.serverReference ?? null
  })
  // The broker must close the socket then; one that does not counts as disconnected all the same.
  client.on('disconnect', ({ reasonCode = 0 }) => end(made, disconnectFault(reasonCode, made.place)))
  client.on('error', (error) => {
    const isMute = error.message === 'connack timeout' && !isConnected
    fail(isMute ? new ConnectionFault('ETIMEDOUT', '', attempts()) : error)
  })
  client.on('close', () => fail(new ConnectionFault('CLOSED')))
  return made

  async function start(connack: IConnackPacket): Promise<void> {
    const missing = supportFault(connack, options)
    if (missing !== null) return end(made, missing)
    // Also with a session: the config may have other topics than before, and Mosquitto 2.0 forgets shared
    // subscriptions when it restarts, while it keeps the session.
    const granted = await subscribe(client, options).finally(limitWait())
    if (made.ended) return
    const refused = subscriptionFault(granted, made.place)
    const hasAny = granted.some(({ code }) => code < refusedFrom)
    if (refused !== null && (options.isCheck || !hasAny)) return end(made, refused)
    const removed = connack.sessionPresent ? await removeFilters(made, clock, options) : []
    if (made.ended) return
    made.place.stage = 'open'
    made.openedAtMs = clock.monotonic()
    opened(connack, granted, removed)
  }

  /** mqtt.js waits for SUBACK without end. While there is no room, nothing is read, so it may be there. */
  function limitWait(): () => void {
    let cancel = clock.after(options.connectTimeoutMs, function ended() {
      if (room() > 0) fail(new ConnectionFault('NO_SUBACK'))
      else cancel = clock.after(options.connectTimeoutMs, ended)
    })
    return () => cancel()
  }
}

export function placeOf(options: AttemptOptions): FaultPlace {
  const { url, tls, clientId, userName, isVersion5, isCheck } = options
  return {
    url,
    tls,
    clientId,
    userName,
    isVersion5,
    stage: 'connecting',
    isCheck,
    reasonString: null,
    serverReference: null,
  }
}

/** A session keeps the filters of before. After SUBACK: no message of both is missed. */
async function removeFilters(
  { client }: Attempt<unknown>,
  clock: Clock,
  options: AttemptOptions,
): Promise<readonly string[]> {
  const { formerFilters, clientId } = options
  const filters = filtersOf(options)
  const removed = (formerFilters?.get(clientId) ?? []).filter((filter) => !filters.includes(filter))
  if (removed.length === 0) return []
  const done = unsubscribe(client, removed).then(
    () => true,
    () => false,
  )
  if (!(await Promise.race([done, pause(clock, answerMs, never).then(() => false)]))) return []
  formerFilters?.delete(clientId)
  return removed
}

/** The first reason counts. */
export function noteFault(attempt: Attempt<unknown>, fault: Fault): void {
  attempt.fault ??= fault
}

/** DISCONNECT, so that the broker ends the connection and not the session. Resolves when it is closed. */
export async function endSession({ client, stream }: Attempt<unknown>, clock: Clock): Promise<void> {
  const closed = new Promise<void>((resolve) => stream.duplex.once('close', () => resolve()))
  client.end(false)
  await Promise.race([closed, pause(clock, answerMs, never)])
  stream.duplex.destroy()
}

/**
 * Leaves the share group, and takes what the broker has given to this member before. `kept`: it is still a
 * member. `left_with_rest`: the session may have more for it.
 */
export async function leaveGroup(
  made: Attempt,
  { clock, room }: { clock: Clock; room: () => number },
  options: BridgeOptions,
): Promise<'kept' | 'left_group' | 'left_with_rest'> {
  const { client, partition } = made
  const deadlineMs = clock.monotonic() + leaveMs
  const left = unsubscribe(client, filtersOf(options)).then(() => true)
  try {
    if (!(await Promise.race([left, pause(clock, answerMs, never).then(() => false)]))) return 'kept'
  } catch {
    // The broker refuses it, or the connection ended meanwhile.
    return 'kept'
  }
  const leftAtMs = clock.monotonic()
  while (!made.ended && clock.monotonic() < deadlineMs) {
    const isQuiet = clock.monotonic() - Math.max(leftAtMs, partition.lastTakenAtMs) >= quietMs
    // The broker may wait for acknowledgements, or the gateway for room.
    if (isQuiet && room() === 0) break
    if (isQuiet && partition.taken === partition.acked) return 'left_group'
    await pause(clock, quietMs / 3, never)
  }
  return 'left_with_rest'
}
