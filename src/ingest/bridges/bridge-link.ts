// bridge-link.ts: one connection of a bridge: keeps it open, and says why where it is not (bridges.ts has the
// states). One client object of mqtt.js, one stream and one partition for each attempt.
//
// Stop: release() leaves the share group where the config asks for it, and takes what the broker still has
// for this member; then nothing more is taken. close() writes the last acknowledgements and DISCONNECT.

import type { IConnackPacket } from 'mqtt-packet'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { LinkState, LinkView, MessageFeed } from '../message-sources/message-sources.ts'
import type { SourceMessage } from '../message-sources/types.ts'
import { endSession, leaveGroup, openAttempt, placeOf, type Attempt } from './bridge-attempt.ts'
import { faultOf, type Fault, type Granted } from './bridge-faults/bridge-faults.ts'
import { urlText } from './bridge-socket.ts'
import type { PublishPacket } from './publish-frames.ts'
import { positionOf } from './publish-stream.ts'
import type { SessionRisks } from './session-risks/session-risks.ts'
import type { BridgeOptions } from './types.ts'
import { createReconnectDelay } from './reconnect-delay.ts'
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

/** After a connection that was open for at least this time, the back-off starts again. */
const stableMs = 10_000

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
  const { clock, emit, random, feed, risks, credentials } = deps
  const { clientId, name: messageSource } = options
  const shortConnections = createShortConnections(clock, (times) => risks.shortConnections(clientId, times))
  const windowWatch = createWindowWatch(clock, (messages) => risks.window(clientId, messages))
  const message: SourceMessage = {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 0,
    retain: false,
    redelivered: false,
    storedAt: null,
    userProperties: null,
    ignoredFor: null,
    refusal: null,
  }
  const delay = createReconnectDelay(
    { clock, random },
    { firstMs: options.reconnectFirstMs, maxMs: options.reconnectMaxMs },
  )
  let attempt: Attempt | null = null
  let state: LinkState = 'waiting'
  let sinceMs = clock.monotonic()
  let since = clock.now()
  let wanted = 0
  let losses = 0
  let lastFault: string | null = null
  let sessionPresent: boolean | null = null
  /** This process was subscribed with this client id. */
  let wasOpen = false
  /** Monotonic: the last try since then that nothing listened for. */
  let refusedAtMs: number | null = null
  let retainedIgnored = 0
  let messages = 0
  let lastMessageMs: number | null = null
  let cancelRetry: CancelTimer = () => {}
  let cancelPause: CancelTimer | null = null
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
      if (state !== 'connected' || attempt === null || stopping) return false
      attempt.client.publish(topic, bytes, { qos: 0 })
      return true
    },
    view,
    retainedIgnored: () => retainedIgnored,
  }

  function view(): LinkView {
    return { clientId, state, since, sinceMs, sessionPresent, losses, lastFault, messages, lastMessageMs }
  }

  function setState(next: LinkState): void {
    state = next
    sinceMs = clock.monotonic()
    since = clock.now()
  }

  // ---- connecting

  function connect(): void {
    if (stopping || attempt !== null) return
    if (wanted === 0) {
      // Nothing could be taken in. `want` continues.
      setState('paused')
      cancelPause ??= clock.after(options.pauseAfterMs, reportPaused)
      return
    }
    setState('connecting')
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
    sessionPresent = connack.sessionPresent
    risks.granted(clientId, granted)
    risks.connected(clientId, connack, wasOpen)
    if (wasOpen && refusedAtMs !== null && connack.sessionPresent)
      risks.brokerRestarted(clientId, clock.monotonic() - refusedAtMs)
    refusedAtMs = null
    wasOpen = true
    shortConnections.opened()
    lastFault = null
    setState('connected')
    emit({
      kind: 'message_source_connected',
      messageSource,
      clientId,
      url: urlText(options.url),
      sessionPresent: connack.sessionPresent,
      removedFilters,
    })
    want(wanted)
  }

  function take(made: Attempt, packet: PublishPacket): void {
    const isOld = packet.retain && (options.retained === 'ignore' || made.sessionPresent)
    if (isOld) retainedIgnored += 1
    message.topic = packet.topic
    message.bytes = packet.bytes
    message.qos = packet.qos
    message.retain = packet.retain
    message.redelivered = packet.dup
    message.userProperties = packet.userProperties
    message.ignoredFor = isOld ? 'retained' : null
    message.refusal = packet.refusal
    if (packet.refusal !== null) risks.refusedMessage(clientId, packet.refusal)
    feed.take(made.partition, positionOf(packet), message)
    windowWatch.taken(made.partition.taken - made.partition.acked)
    messages += 1
    lastMessageMs = made.partition.lastTakenAtMs
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
      if (state === 'paused') connect()
      else attempt?.stream.resume()
    } else if ((state === 'connected' || state === 'connecting') && !stopping)
      cancelPause ??= clock.after(options.pauseAfterMs, pauseLink)
  }

  function pauseLink(): void {
    cancelPause = null
    const made = attempt
    if (made === null || stopping) return
    setState('paused')
    reportPaused()
    void disconnect(made)
  }

  function reportPaused(): void {
    cancelPause = null
    emit({ kind: 'message_source_paused', messageSource, clientId })
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
      if (openMs >= stableMs) delay.reset()
      shortConnections.lost(openMs)
    }
    retry(fault)
  }

  /** Nothing of it is acknowledged from here on. */
  function detach(made: Attempt): void {
    made.ended = true
    feed.revoke(made.partition)
    if (attempt === made) attempt = null
    cancelPause?.()
    cancelPause = null
  }

  function retry({ reason, detail, act, isRefused = false }: Fault): void {
    losses += 1
    lastFault = detail
    if (isRefused) refusedAtMs = clock.monotonic()
    setState('waiting')
    const retryInMs = delay.next(isRefused)
    emit({ kind: 'message_source_lost', messageSource, clientId, reason, detail, act, retryInMs })
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
    if (state !== 'stopped')
      emit({
        kind: 'message_source_released',
        messageSource,
        clientId,
        session: options.keepsSession ? left : 'none',
      })
    setState('stopped')
  }
}
