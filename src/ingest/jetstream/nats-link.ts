// nats-link.ts: the connection of a bridge to NATS: keeps one open, with back-off, and says why there is
// none.
//
//   waiting --(back-off)--> connecting --(connected, checked)--> connected --(lost)--> waiting
//                                                                  |  ^
//                             (no room for seconds: paused, the     v  |  (room again)
//                              connection stays)                   paused

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { createLinkStatus } from '../message-sources/link-status.ts'
import type { LinkView } from '../message-sources/message-sources.ts'
import { createReconnectDelay } from '../message-sources/reconnect-delay.ts'
import { schemeOf } from './nats-address.ts'
import { openConnection, type Connection } from './nats-connection.ts'
import { natsFault, type NatsFault } from './nats-faults.ts'
import type { JetStreamOptions, NatsCredentials } from './types.ts'

export type NatsLink = {
  start(): void
  /** Ends the connection, and connects again soon. */
  reconnect(fault: NatsFault): void
  setPaused(isPaused: boolean): void
  connection(): Connection | null
  /** A message came. */
  brought(): void
  close(): Promise<void>
  view(): LinkView
}

type Deps = {
  clock: Clock
  emit: Emit
  random: () => number
  /** Read for each connection. */
  credentials: NatsCredentials
  /** Checks what NATS has; a rejection ends the connection. */
  prepare: (connection: Connection) => Promise<void>
  /** Resolves the work of a connection; called once it is prepared. The returned function ends the work. */
  opened: (connection: Connection) => () => void
}

export function createNatsLink(deps: Deps, options: JetStreamOptions): NatsLink {
  const { clock } = deps
  const status = createLinkStatus(deps, { messageSource: options.name, clientId: options.member })
  const delay = createReconnectDelay(deps, options)
  let current: Connection | null = null
  let endWork = () => {}
  let isPaused = false
  let isClosing = false
  let cancel: CancelTimer = () => {}

  function start(): void {
    // Every fault is handled in it.
    void run()
  }

  async function run(): Promise<void> {
    if (isClosing) return
    status.set('connecting')
    let made: Connection | null = null
    const now = { ...options, ...deps.credentials }
    try {
      made = await openConnection(now)
      if (isClosing) return await made.nc.close()
      await deps.prepare(made)
      if (isClosing) return await made.nc.close()
      await work(made)
    } catch (error) {
      await made?.nc.close().catch(() => undefined)
      lost(natsFault(error, now))
    }
  }

  /** Until the connection ends. */
  async function work(made: Connection): Promise<void> {
    const openedAtMs = clock.monotonic()
    current = made
    status.connected(`${schemeOf(options)}://${made.server} (NATS ${made.version})`)
    if (isPaused) pause()
    endWork = deps.opened(made)
    const error = await made.nc.closed()
    // reconnect() has said so already.
    if (current !== made) return
    current = null
    endWork()
    delay.ended(clock.monotonic() - openedAtMs)
    lost(natsFault(error ?? Object.assign(new Error('closed'), { code: 'CLOSED' }), options))
  }

  function pause(): void {
    status.set('paused')
    status.reportPaused()
  }

  function lost(fault: NatsFault): void {
    if (isClosing) return
    const retryInMs = delay.next(fault.isRefused ?? false)
    status.lost(fault, retryInMs)
    cancel = clock.after(retryInMs, start)
  }

  function reconnect(fault: NatsFault): void {
    const made = current
    if (made === null) return
    current = null
    endWork()
    delay.reset()
    // A close that hangs ends with the process; nothing of it is used any more.
    made.nc.close().catch(() => undefined)
    lost(fault)
  }

  async function close(): Promise<void> {
    isClosing = true
    cancel()
    const made = current
    current = null
    if (made !== null) {
      endWork()
      await made.nc.close().catch(() => undefined)
    }
    status.released('engine')
  }

  return {
    start,
    reconnect,
    setPaused(next) {
      isPaused = next
      if (current !== null && next) pause()
      else if (current !== null) status.set('connected')
    },
    connection: () => current,
    brought: () => status.took(clock.monotonic()),
    close,
    view: status.view,
  }
}
