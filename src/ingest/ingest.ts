// ingest.ts: takes messages from devices over MQTT, and from other brokers, and puts them into the spool.
//
// Promises
//   PUBACK (QoS 1) and PUBREC (QoS 2) are sent after the fsync of the group that holds the message, in the
//   order in which the messages arrived, over all connections.
//   A message that cannot be mapped is kept as a dead letter and acknowledged: it is neither sent again
//   without end nor lost.
//   A message that is sent again has one effect: with a device time by the dedup window of the spool, without
//   one by its packet identifier (intake/untimed-resends.ts), QoS 2 by its packet identifier until PUBREL,
//   over restarts in a stored session (broker/stored-sessions).
//   No client can make the daemon use memory without bound, or disturb another client.
//
// How
//   broker/       sockets, MQTT, limits, acknowledgements      -> intake
//   message-sources/  other message sources: what they promise  -> intake
//   bridges/      MQTT brokers as message sources              -> message-sources
//   intake/       the hot path: map, store, hold, count        -> the spool
//   quarantine/   releases messages that were kept because of their device or its clock
//   remap/        maps kept messages and dead letters again; used by the others
//
// What can go wrong, and what then happens
//   the spool is full, the disk   QoS 1 and 2 wait without acknowledgement, in order and bounded; at the
//   low, the store reopened       bound no socket is read. QoS 0 is dropped, counted and reported. All of it
//                                 resumes automatically
//   the dead letters are full     a message that would become one waits with all that its connection sent
//                                 behind it; other connections continue
//   a write fails                 no acknowledgement; the connections of its messages are closed, so that the
//                                 devices send again
//   a device breaks the protocol  its connection is closed, counted and reported with the reason
//   or a limit                    (client_dropped); MQTT 3.1.1 has no other answer
//   acks of a device are held     PINGREQ is answered up to the first message that must wait. A connection
//                                 that is not read does not expire
//   a CONNECT is refused          CONNACK has the code, client_refused the reason
//   a client subscribes           granted; only rebirth requests of Sparkplug are ever sent
//                                 (rebirth-requests.ts). With `subscriptions: refuse` SUBACK 128
//   a will                        marks the client as lost; ignored or taken like QoS 0 (sources[].wills)
//   a retained message            taken once like any other, not kept
//   a bridge has no connection    its messages wait at its broker; nothing else waits (bridges/bridges.ts)
//   an address cannot be used     LISTENER_FAILED; the other listeners run, and it is tried again until it is
//                                 open (std/listening-port)

import type { State } from '../domain/condition-state.ts'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import {
  createConnectionLimits,
  type ConnectionLimitOptions,
} from './broker/connection-limits/connection-limits.ts'
import {
  createAccess,
  type Access,
  type AccessCounters,
  type AccessOptions,
  type PasswordOptions,
} from './broker/access/access.ts'
import type { CertificateCheck } from './broker/access/certificate-check.ts'
import { withdrawnOf } from './broker/access/withdrawal.ts'
import {
  createBroker,
  type Broker,
  type BrokerClient,
  type BrokerCounters,
  type BrokerOptions,
} from './broker/broker.ts'
import { openBridge, type AnyBridgeOptions } from './bridge-kinds.ts'
import { createCustody, type CustodyDeps, type CustodyOptions, type CustodyView } from './custody/custody.ts'
import {
  createMessageSources,
  embeddedBroker,
  type MessageSourceStatus,
  type SourceEntry,
} from './message-sources/message-sources.ts'
import {
  createIntake,
  type Intake,
  type IntakeCounters,
  type IntakeDeps,
  type IntakeOptions,
} from './intake/intake.ts'
import {
  createStoredSessions,
  type SessionCounters,
  type SessionOptions,
} from './broker/stored-sessions/stored-sessions.ts'
import { createRebirthRequests, type RebirthCounters } from './rebirth-requests.ts'
import {
  openListener,
  type Listener,
  type ListenerDeps,
  type ListenerOptions,
} from './broker/listeners/listeners.ts'

export { brokerAbilities, checkAnyBridge, type AnyBridgeOptions } from './bridge-kinds.ts'
export { filtersOf } from './bridges/mqtt-session.ts'
export type { BridgeOptions } from './bridges/types.ts'
export { createDeferredMessages, type DeferredCounters } from './remap/deferred-messages.ts'
export {
  createQuarantineRelease,
  type QuarantineRelease,
  type ReleaseCounters,
} from './quarantine/quarantine.ts'
export { createClockVerdicts, type ClockVerdictCounters } from './quarantine/clock-verdicts.ts'
export { remapDeadLetters, type RemapReport, type RemapRequest } from './remap/dead-letter-remap.ts'
export {
  createQuarantineDecisions,
  type DecisionCounters,
  type QuarantineDecisions,
} from './quarantine/quarantine-decisions.ts'
export { isShared, type ClientView } from './broker/clients/clients.ts'
export type { ReasonCount } from './intake/reason-counter.ts'
export { createTaps } from './intake/message-tap.ts'
export type { StoreWait } from './intake/store-backpressure.ts'
export type { TapEntry, Taps } from './intake/message-tap.ts'
export type { MessageSourceStatus } from './message-sources/message-sources.ts'

export type { CustodyDeps, CustodyView } from './custody/custody.ts'

export type IngestDeps = IntakeDeps & {
  random?: () => number
  /** For custody `delivered`. */
  custody?: CustodyDeps | undefined
  /** Message sources beside those of the config, with a custody of their own. */
  moreSources?: MoreSources | undefined
}

export type MoreSources = { entries: readonly SourceEntry[]; custody: CustodyOptions | null }

export type IngestCounters = IntakeCounters &
  BrokerCounters &
  SessionCounters &
  AccessCounters &
  RebirthCounters

export type Ingest = {
  /** Opens the listeners. One that cannot be opened is a state, and is tried again. */
  start(): Promise<void>
  /** Puts another mapping in force between two messages; rejects, and keeps the old one, without a store. */
  swap: Intake['swap']
  /**
   * Puts users, tokens, certificates, their revocation lists, and the credentials of bridges in force, and
   * closes the connections that they do not admit any more. Rejects with PASSWORDS_INVALID,
   * CERTIFICATES_INVALID or ACCESS_WITHDRAWN; what cannot be used stays as it was.
   */
  renew(
    options: Pick<IngestOptions, 'access' | 'listeners' | 'bridges'>,
    confirmed?: { isConfirmed: boolean },
  ): Promise<void>
  /** Closes the connections of a client id, user or address; their number. */
  kick(name: string): number
  /** Puts limits in force. Open connections stay. */
  use(limits: LiveLimits): void
  /** Takes no new connection and reads no further packet. What was read is still acknowledged. */
  stopAccepting(): Promise<void>
  /** After the last acks: closes the connections. */
  close(): Promise<void>
  counters(): IngestCounters
  /** The embedded broker, if it listens, and the bridges. */
  messageSources(): readonly MessageSourceStatus[]
  /** Null in custody `spool`. */
  custody(): CustodyView | null
  states(): Iterable<State>
  /** What is known of the clients, by their ids. */
  readonly clients: Broker['clients'] & Pick<Access, 'isUser'> & Pick<Intake, 'waitOf'>
  /** The addresses in use, as URLs; with the port that the system chose where the config has 0. */
  addresses(): readonly string[]
  /** It has listeners, and none of them is open, and no bridge is connected: no message can come. */
  isShut(): boolean
}

export type IngestOptions = IntakeOptions &
  BrokerOptions &
  ConnectionLimitOptions &
  SessionOptions & {
    listeners: readonly ListenerOptions[]
    bridges?: readonly AnyBridgeOptions[]
    /** Null: custody `spool`. */
    custody?: CustodyOptions | null
    /** Default: true. */
    rebirthRequests?: boolean
    /** The rules of each listener. */
    access: readonly AccessOptions[]
    passwords: PasswordOptions
  }

/** Those that a reload puts in force, also for connections that are open. */
export type LiveLimits = Omit<ConnectionLimitOptions, 'connectionsMax'> &
  Pick<IngestOptions, 'controlPacketsPerSecondMax' | 'partialTimeoutMs' | 'idleTimeoutMs'>

export async function createIngest(deps: IngestDeps, first: IngestOptions): Promise<Ingest> {
  /** Its limits are changed in place, and read at each decision. */
  const options = { ...first }
  const { clock, emit, random = Math.random } = deps
  const bridges = await Promise.all(
    (options.bridges ?? []).map((bridge) => openBridge({ clock, emit, random }, bridge)),
  )
  const sessions = createStoredSessions(deps, options)
  const rebirths = createRebirthRequests(
    {
      clock,
      emit,
      publish: ({ from, sender }, { topic, bytes }) =>
        from ? sources.publish(from, topic, bytes) : broker.sendCommand(sender, topic, bytes),
    },
    options.rebirthRequests ?? true,
  )
  const intake = createIntake({ ...deps, sessions, requestRebirth: rebirths.request }, options)
  const access = createAccess({ clock, emit }, options.passwords)
  const limits = createConnectionLimits({ clock, emit }, options)
  const broker = createBroker(
    { intake, access, limits, sessions, clock, ourTime: deps.ourTime, emit },
    options,
  )
  const { entries: more = [], custody: custodyOptions = options.custody } = deps.moreSources ?? {}
  const ours = { clock: { ...clock, now: deps.ourTime.now }, emit }
  const custody = custodyOptions && deps.custody ? createCustody(ours, deps.custody, custodyOptions) : null
  const sources = createMessageSources({ intake, spool: deps.spool, clock, emit, limits, custody }, [
    ...bridges,
    ...more,
  ])
  let listeners: Listener[] = []

  async function start(): Promise<void> {
    // The state of the mapping is read first; no client is connected yet.
    await intake.restore()
    await access.load(options.access)
    await broker.start()
    const { handshakeFailed } = broker
    for (const [index, listener] of options.listeners.entries()) {
      const connected: ListenerDeps['connected'] = (socket, origin) =>
        broker.addConnection(socket, { ...origin, listener: index })
      const opened = (url: string) => emit({ kind: 'listener_opened', url })
      const listenerDeps: ListenerDeps = { connected, limits, clock, opened, handshakeFailed }
      listeners.push(await openListener(listenerDeps, listener, options.connectTimeoutMs))
    }
    custody?.start(sources.custodyFeeds, sources.update)
    sources.start()
  }

  async function renew(
    next: Pick<IngestOptions, 'access' | 'listeners' | 'bridges'>,
    { isConfirmed } = { isConfirmed: false },
  ): Promise<void> {
    let fault: unknown = null
    const certificateChecks = new Map<number, CertificateCheck>()
    for (const [index, listener] of listeners.entries()) {
      const check = listener.checkOf(next.listeners[index]?.tls ?? null)
      if (check !== null) certificateChecks.set(index, check)
    }
    let withdrawn: BrokerClient[] = []
    let withdrawal: unknown = null
    try {
      await access.load(next.access, (rules) => {
        withdrawn = withdrawnOf(broker.admitted(), rules, { certificateChecks, isConfirmed })
      })
    } catch (error) {
      withdrawal = error
    }
    for (const { source, renew } of bridges) {
      const found = next.bridges?.find(({ name }) => name === source.name)
      if (found) renew(found)
    }
    for (const [index, listener] of listeners.entries()) {
      if (codeOf(withdrawal) === 'ACCESS_WITHDRAWN' && certificateChecks.has(index)) continue
      try {
        listener.renew(next.listeners[index]?.tls ?? null)
      } catch (error) {
        fault = certificatesInvalid(listener.url(), error)
      }
    }
    for (const client of withdrawn) client.drop('access_withdrawn')
    if (withdrawal !== null || fault !== null) throw withdrawal ?? fault
  }

  function kick(name: string): number {
    const found = broker.admitted().filter(({ sender }) => {
      const { clientId, identity, userName, address } = sender
      return [clientId, identity, userName, address].includes(name)
    })
    for (const client of found) client.drop('closed_by_operator')
    return found.length
  }

  async function stopAccepting(): Promise<void> {
    for (const listener of listeners) listener.close()
    broker.stopReading()
    await sources.release()
    await intake.finish()
    await custody?.release()
    // The spool is closed before the connections are: no timer may write to it meanwhile.
    sessions.close()
  }

  async function close(): Promise<void> {
    await stopAccepting()
    custody?.close()
    await sources.close()
    await broker.close()
    limits.close()
    access.close()
    intake.close()
    listeners = []
  }

  function counters(): IngestCounters {
    return {
      ...intake.counters(),
      ...broker.counters(),
      ...sessions.counters(),
      ...access.counters(),
      ...rebirths.counters(),
      acked: broker.counters().acked + sources.acked(),
    }
  }

  function messageSources(): readonly MessageSourceStatus[] {
    const others = sources.status()
    if (options.listeners.length === 0) return others
    return [embeddedBroker(counters(), others, options.inFlightMax), ...others]
  }

  function isShut(): boolean {
    const isStarting = listeners.length < options.listeners.length
    if (isStarting || listeners.length === 0 || listeners.some((one) => one.isOpen())) return false
    return !sources.status().some(({ links }) => links.some(({ state }) => state === 'connected'))
  }

  return {
    start,
    swap: intake.swap,
    renew,
    kick,
    use: (limits) => void Object.assign(options, limits),
    stopAccepting,
    close,
    counters,
    messageSources,
    custody: () => custody?.view() ?? null,
    isShut,
    *states() {
      for (const one of listeners) {
        const [listener, fault] = [one.url(), one.fault()]
        if (fault !== null) yield { code: 'LISTENER_FAILED', listener, fault, isShut: isShut() }
      }
      for (const one of [...listeners, sources, custody]) if (one !== null) yield* one.states()
    },
    clients: { ...broker.clients, isUser: access.isUser, waitOf: intake.waitOf },
    addresses: () => listeners.filter((one) => one.isOpen()).map((one) => one.url()),
  }
}

function certificatesInvalid(url: string, error: unknown): GatewayError {
  return new GatewayError('CERTIFICATES_INVALID', {
    what: `The new certificates of the listener ${url} cannot be used.`,
    why: `${messageOf(error)}.`,
    act: 'Correct the files that `tls` of the listener names.',
    cause: error,
  })
}
