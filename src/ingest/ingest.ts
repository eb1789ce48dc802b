// ingest.ts: the door of ingest: messages from devices over MQTT 3.1.1, into the spool.
//
// Promises
//   PUBACK (QoS 1) and PUBREC (QoS 2) leave after the fsync of the group that holds the message, in the order in
//   which the messages arrived, over all connections.
//   What cannot be mapped is kept as a dead letter and acknowledged: poison neither loops nor vanishes.
//   A message that was sent before has one effect: QoS 1 by the dedup window of the spool, QoS 2 also by its
//   packet identifier until PUBREL.
//   No client can make the daemon use memory without bound, or disturb another client.
//
// How
//   listeners.ts  sockets, TCP and TLS                     broker.ts    aedes: CONNECT, sessions, QoS 2, keepalive
//   gate.ts    when and how much of a socket is read,   intake.ts    map, append, ack; holds and counts
//              acks back, once per socket and commit    waiting-messages.ts   what is held
//   packet-framing.ts limits by fixed headers, before anything is buffered
//
// What can go wrong, and what then happens
//   spool full, disk low, store being reopened: QoS 1 and 2 wait unacknowledged, in order and
//     bounded; at the bound sockets are not read. QoS 0 is dropped, counted and told. All goes on by itself.
//   dead letters full: what would become one waits with all behind it of its connection; the others go on.
//   a write fails: no ack; the connections of its messages are closed, so that the devices send again.
//   a device breaks the protocol or a limit: its connection is closed, counted and told with the reason
//     (client_dropped); MQTT 3.1.1 has no way to say more.
//   a device whose acks are held is not read for PINGREQ either: after 1.5 times its keepalive it is dropped,
//     comes back and sends again; the dedup window makes that harmless.
//   a CONNECT is refused (version, client id, password): CONNACK says which, client_refused says why.
//   nobody may subscribe: SUBACK 128. Wills are taken like messages of QoS 0. Retained messages are taken once,
//     like any other, and not kept for subscribers.
//   the address is taken: ADDRESS_IN_USE or ADDRESS_UNAVAILABLE at start; nothing has been read then.

import type { Socket } from 'node:net'
import type { Clock } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import { createAccess, type AccessOptions } from './broker/access.ts'
import { createBroker, type BrokerCounters, type BrokerOptions } from './broker/broker.ts'
import { createIntake, type IntakeCounters, type IntakeOptions } from './intake/intake.ts'
import type { IntakeMapper, IntakeSpool, ReleaseOrder } from './types.ts'
import type { Tap } from './intake/message-tap.ts'
import { openListener, type Listener, type ListenerDeps, type ListenerOptions } from './broker/listeners.ts'

export { createDeferredMessages, type DeferredCounters } from './expressions/deferred-messages.ts'
export { createExpressions } from './expressions/expressions.ts'
export {
  createQuarantineRelease,
  type QuarantineRelease,
  type ReleaseCounters,
} from './quarantine/quarantine.ts'
export { remap, type RemapReport, type RemapRequest } from './remap/dead-letter-remap.ts'
export {
  createQuarantineDecisions,
  type DropReport,
  type DecisionCounters,
  type ReleaseReport,
  type QuarantineDecisions,
} from './quarantine/quarantine-decisions.ts'
export { createTaps } from './intake/message-tap.ts'
export type { TapEntry, TapFilter, Taps } from './intake/message-tap.ts'

export type IngestCounters = IntakeCounters & BrokerCounters

export type Ingest = {
  /** Opens the listeners; rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
  start(): Promise<void>
  /** Puts another mapping in force between two messages; rejects where the store is lost, and the old one stays. */
  swap(mapper: IntakeMapper): Promise<void>
  /** Closes the doors: no new connection, no further packet read. What was read goes on to its ack. */
  stopAccepting(): Promise<void>
  /** After the last acks: closes the connections. */
  close(): Promise<void>
  counters(): IngestCounters
  /** The addresses in use, as URLs; with the port that the system chose where the config says 0. */
  addresses(): readonly string[]
}

export type IngestDeps = {
  /** In force until swap(). */
  mapper: IntakeMapper
  spool: IntakeSpool
  clock: Clock
  emit: Emit
  releaseOrder?: ReleaseOrder
  tap?: Tap
}

export type IngestOptions = IntakeOptions &
  BrokerOptions & {
    listeners: readonly ListenerOptions[]
    access: AccessOptions
    connectionsMax: number
  }

export function createIngest(deps: IngestDeps, options: IngestOptions): Ingest {
  const { clock, emit } = deps
  const intake = createIntake(deps, options)
  const access = createAccess(options.access)
  const broker = createBroker({ intake, access, clock, emit }, options)
  let listeners: Listener[] = []
  /** Every socket, also before its TLS handshake. */
  let sockets = 0

  async function start(): Promise<void> {
    // What was collected before comes first; nobody is connected yet.
    await intake.restore()
    await broker.start()
    const connected: ListenerDeps['connected'] = (socket, name) => broker.addConnection(socket, name)
    const failed = (fault: GatewayError) => emit({ kind: 'listener_failed', fault })
    try {
      for (const listener of options.listeners) {
        const listenerDeps = { connected, admits, failed }
        listeners.push(await openListener(listenerDeps, listener, options.connectTimeoutMs))
      }
    } catch (error) {
      await close()
      throw error
    }
    for (const { url } of listeners) emit({ kind: 'listener_opened', url })
  }

  function admits(socket: Socket): boolean {
    if (sockets >= options.connectionsMax) {
      broker.refuse('max_connections', socket.remoteAddress ?? null)
      return false
    }
    sockets += 1
    socket.once('close', () => {
      sockets -= 1
    })
    return true
  }

  function closeDoors(): Promise<void> {
    for (const listener of listeners) listener.close()
    broker.stopReading()
    return intake.finish()
  }

  async function close(): Promise<void> {
    await closeDoors()
    await broker.close()
    intake.close()
    listeners = []
  }

  return {
    start,
    swap: intake.swap,
    stopAccepting: closeDoors,
    close,
    counters: () => ({ ...intake.counters(), ...broker.counters() }),
    addresses: () => listeners.map(({ url }) => url),
  }
}
