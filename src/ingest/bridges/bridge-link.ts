// bridge-link.ts: one connection of a bridge: keeps it open, and says why where it is not (bridges.ts has the
// states). One client object of mqtt.js, one stream and one partition for each attempt.
//
// Stop: release() leaves the share group where the config asks for it, and takes what the broker still has
// for this member; then nothing more is taken. close() writes the last acknowledgements and DISCONNECT.

import type { IConnackPacket } from 'mqtt-packet'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { createLinkStatus } from '../message-sources/link-status.ts'
import type { LinkView, MessageFeed } from '../message-sources/message-sources.ts'
import { createReconnectDelay } from '../message-sources/reconnect-delay.ts'
import { emptyMessage } from '../message-sources/source-message.ts'
import { endSession, leaveGroup, openAttempt, placeOf, type Attempt } from './bridge-attempt.ts'
import {
  faultOf,
  refusedFrom,
  subscriptionFault,
  type Fault,
  type Granted,
} from './bridge-faults/bridge-faults.ts'
import { urlText } from './bridge-address.ts'
import { subscribe } from './mqtt-session.ts'
import type { PublishPacket } from './publish-frames.ts'
import { positionOf } from './publish-stream.ts'
import type { SessionRisks } from './session-risks/session-risks.ts'
import type { BridgeOptions } from './types.ts'
import { createShortConnections } from './session-risks/short-connections.ts'
import { createWindowWatch } from './session-risks/window-watch.ts'

export type BridgeLink = {
  start(): void
  want(messages: number): void
  acknowledge(position: number): void
  flush(): void
  giveBack(): void
  reconnect(): void
  release(): Promise<void>
  close(): Promise<void>
  /** False where it is not connected. */
  publish(topic: string, bytes: Buffer): boolean
  view(): LinkView
  retainedIgnored(): number
}

type Deps = {
  clock: Clock
  emit: Emit
  random: () => number
  feed: MessageFeed
  risks: SessionRisks
  /** Read for each connection. */
  credentials: Pick<BridgeOptions, 'userName' | 'password' | 'tls'>
}

const notStored: Fault = {
  reason: 'not_stored',
  detail: 'A message could not be stored.',
  act: 'Follow the condition of the spool. The broker delivers the message again.',
}
const wasSilent: Fault = {
  reason: 'silent',
  detail: 'No message came for longer than silent_after.',
  act: 'Nothing: the bridge connects again. If devices should publish, check them and `topics` of the bridge.',
}

export function createBridgeLink(deps: Deps, options: BridgeOptions & { clientId: string }): BridgeLink {
  const { clock, feed, risks, credentials } = deps
  const { clientId, name: messageSource } = options
  const shortConnections = createShortConnections(clock, (found) => risks.shortConnections(clientId, found))
  const windowWatch = createWindowWatch(clock, (messages) => risks.window(clientId, messages))
  const message = emptyMessage()
  const status = createLinkStatus(deps, { messageSource, clientId })
  const delay = createReconnectDelay(deps, options)
  let attempt: Attempt | null = null
  let wanted = 0
  /** This process was subscribed with this client id. */
  let wasOpen = false
  /** So was this process or the one before. */
  let hadSession = (options.formerFilters?.get(clientId) ?? []).length > 0
  /** Monotonic: the last try since then that nothing listened for. */
  let refusedAtMs: number | null = null
  let retainedIgnored = 0
  let cancelRetry: CancelTimer = () => {}
  let cancelPause: CancelTimer | null = null
  let cancelAsk: CancelTimer = () => {}
  let stopping = false
  /** How its session is left at the stop. */
  let left: Awaited<ReturnType<typeof leaveGroup>> = 'kept'

  return {
    start: connect,
    want,
    acknowledge: (position) => attempt?.stream.acknowledge(position),
    flush,
    giveBack: () => endNow(notStored),
    reconnect() {
      delay.reset()
      endNow(wasSilent)
    },
    release,
    close,
    publish(topic, bytes) {
      if (status.state() !== 'connected' || attempt === null || stopping) return false
      attempt.client.publish(topic, bytes, { qos: 0 })
      return true
    },
    view: status.view,
    retainedIgnored: () => retainedIgnored,
  }

  // ---- connecting

  function connect(): void {
    if (stopping || attempt !== null) return
    if (wanted === 0) {
      // Nothing could be taken in. `want` continues.
      status.set('paused')
      cancelPause ??= clock.after(options.pauseAfterMs, reportPaused)
      return
    }
    status.set('connecting')
    const partition = feed.assign(clientId)
    const now = { ...options, ...credentials, isCheck: false }
    try {
      attempt = openAttempt({ clock, partition, room: () => feed.room(partition), take, opened, end }, now)
    } catch (error) {
      // A certificate or key that cannot be used.
      feed.revoke(partition)
      retry(faultOf(error, placeOf(now)))
    }
  }

  function opened(
    connack: IConnackPacket,
    granted: readonly Granted[],
    removedFilters: readonly string[],
  ): void {
    judge(granted)
    risks.connected(clientId, connack, hadSession)
    if (wasOpen && refusedAtMs !== null && connack.sessionPresent)
      risks.brokerRestarted(clientId, clock.monotonic() - refusedAtMs)
    refusedAtMs = null
    wasOpen = true
    hadSession = true
    shortConnections.opened()
    status.connected(urlText(options.url), { present: connack.sessionPresent, removedFilters })
    want(wanted)
  }

  /** One filter must not stop the others: what is refused is asked for again, while they bring messages. */
  function judge(granted: readonly Granted[]): void {
    const made = attempt
    if (made === null || stopping) return
    const refusal = subscriptionFault(granted, made.place)
    risks.granted(clientId, granted, refusal)
    if (refusal === null) return
    cancelAsk = clock.after(options.reconnectMaxMs, () => {
      const open = granted.filter(({ code }) => code < refusedFrom)
      const refused = granted.filter((one) => !open.includes(one)).map(({ filter }) => filter)
      subscribe(made.client, options, refused).then(
        (answers) => made.ended || judge([...open, ...answers]),
        () => undefined, // The connection ended, which says so itself.
      )
    })
  }

  /**
   * A retained message of a new session is taken. What was not acknowledged when the connection ended comes
   * in the kept session, with DUP. By MQTT 5 a kept session has nothing else: the subscription asks for
   * retained messages only where it is new (mqtt-session.ts). By 3.1.1 the broker sends all of them again,
   * without DUP.
   */
  function mayBeNew({ sessionPresent }: Attempt, { dup }: PublishPacket): boolean {
    return options.retained === 'once' && (!sessionPresent || dup || options.isVersion5)
  }

  function take(made: Attempt, packet: PublishPacket): void {
    const isOld = packet.retain && !mayBeNew(made, packet)
    if (isOld) retainedIgnored += 1
    message.topic = packet.topic
    message.bytes = packet.bytes
    message.qos = packet.qos
    message.retain = packet.retain
    message.redelivered = packet.dup
    message.userProperties = packet.userProperties
    message.properties = packet.properties
    message.ignoredFor = isOld ? 'retained' : null
    message.refusal = packet.refusal
    if (packet.refusal !== null) risks.refusedMessage(clientId, packet.refusal)
    feed.take(made.partition, positionOf(packet), message)
    windowWatch.taken(made.partition.taken - made.partition.acked)
    status.took(made.partition.lastTakenAtMs)
  }

  function flush(): void {
    if (attempt === null) return
    attempt.stream.flush()
    attempt.stream.resume()
    windowWatch.flushed()
  }

  // ---- room

  function want(messages: number): void {
    wanted = messages
    if (messages > 0) {
      cancelPause?.()
      cancelPause = null
      if (status.state() === 'paused') connect()
      else attempt?.stream.resume()
    } else if ((status.state() === 'connected' || status.state() === 'connecting') && !stopping)
      cancelPause ??= clock.after(options.pauseAfterMs, pauseLink)
  }

  function pauseLink(): void {
    cancelPause = null
    const made = attempt
    if (made === null || stopping) return
    status.set('paused')
    reportPaused()
    void disconnect(made)
  }

  function reportPaused(): void {
    cancelPause = null
    status.reportPaused()
  }

  // ---- the end of a connection

  function endNow(fault: Fault): void {
    if (attempt !== null) end(attempt, fault)
  }

  function end(made: Attempt, fault: Fault): void {
    if (made.ended) return
    detach(made)
    made.client.end(true)
    made.stream.duplex.destroy()
    if (stopping) return
    if (made.openedAtMs !== null) {
      const openMs = clock.monotonic() - made.openedAtMs
      delay.ended(openMs)
      shortConnections.lost(openMs, fault)
    }
    retry(fault)
  }

  /** Nothing of it is acknowledged from here on. */
  function detach(made: Attempt): void {
    made.ended = true
    cancelAsk()
    feed.revoke(made.partition)
    if (attempt === made) attempt = null
    cancelPause?.()
    cancelPause = null
  }

  function retry(fault: Fault): void {
    const { isRefused = false } = fault
    if (isRefused) refusedAtMs = clock.monotonic()
    const retryInMs = delay.next(isRefused)
    status.lost(fault, retryInMs)
    cancelRetry = clock.after(retryInMs, connect)
  }

  function disconnect(made: Attempt): Promise<void> {
    made.stream.discard()
    detach(made)
    return endSession(made, clock)
  }

  // ---- stop

  async function release(): Promise<void> {
    if (stopping) return
    stopping = true
    cancelRetry()
    cancelAsk()
    cancelPause?.()
    shortConnections.close()
    const made = attempt
    if (made === null || made.openedAtMs === null) return
    if (options.leavesGroup)
      left = await leaveGroup(made, { clock, room: () => feed.room(made.partition) }, options)
    made.stream.discard()
  }

  async function close(): Promise<void> {
    await release()
    const made = attempt
    if (made !== null && made.openedAtMs !== null) await disconnect(made)
    else if (made !== null) endNow(wasSilent)
    status.released(options.keepsSession ? left : 'none')
  }
}
