// http.ts: the daemon over HTTP, for people, probes and Prometheus.
//
//   read-routes.ts   the paths that show something: GET and HEAD
//   streams/         answers that go on: messages and the state as they come
//   control/         the paths that change something: POST, on the control socket or by a user
//   http-routing/    what a path is; from a request to the code that answers it, by fastify
//   answer-schemas/  the shapes of the answers, for /openapi.json
//   listening/       two servers: one on TCP, by default on loopback, and the control socket for commands
//                    of this machine
//   request-rights/  who may do what; no web page may do anything
//   json-answer.ts   answers, problems and their codes
//
// Nothing secret is shown. Headers, bodies, connections and times are bounded.
//
// What cannot be opened is a condition, and the daemon goes on without it: HTTP_LISTENER_FAILED for TCP,
// which is tried again until it opens (std/listening-port), and CONTROL_SOCKET_FAILED. The control socket is
// tried again every ten seconds, and when the spool is opened or refused, because its directory may be there
// then.

import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { every, type Clock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { State, StateSource } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import { createAudit } from '../audit/audit.ts'
import type { OpsConfig } from '../config.ts'
import {
  listenOnControlSocket,
  listenOnTcp,
  type ConnectionCounters,
  type Listener,
  type SocketListener,
  type SocketPlace,
} from './listening/listening.ts'
import { createRequestRights } from './request-rights/request-rights.ts'
import { createRequestTurns } from './request-turns.ts'
import { routes } from './route-table.ts'
import type { HttpSource } from './http-routing/route.ts'
import { createRouting } from './http-routing/http-routing.ts'

export type HttpDeps = { clock: Clock; emit: Emit }

export type HttpOptions = OpsConfig & {
  spoolPath: string
  /** Null: no control socket. */
  socket: SocketPlace | null
}

export type HttpServer = StateSource & {
  /** With the port that the system chose where the config says 0; null while it is not open. */
  readonly url: string | null
  /** Path of the control socket; null while it is not open. */
  readonly socketPath: string | null
  /** Opens the control socket where it is not open, or where its file is gone. Does not reject. */
  ensureSocket(): Promise<void>
  /** See Ops. */
  renew(options: Pick<OpsConfig, 'users' | 'tls'>): void
  counters(): HttpCounters
  close(): Promise<void>
}

export type HttpCounters = ConnectionCounters & {
  refused: ReadonlyMap<string, number>
  /** Of browsers that are logged in. */
  sessions: number
}

/** Within this time a control socket that was deleted is made again, or its condition is raised. */
const lookEveryMs = 10_000

/** What cannot be opened is a state, and is tried again. */
export async function openHttp(
  source: HttpSource,
  { clock, emit }: HttpDeps,
  options: HttpOptions,
): Promise<HttpServer> {
  const { spoolPath, socket: place } = options
  const rights = createRequestRights({ clock, emit }, options)
  const audit = createAudit(
    { clock: { ...clock, now: source.ourNow }, emit },
    { folder: spoolPath, bytesMax: options.audit_max_bytes },
  )
  const turns = createRequestTurns()
  const answers = await createRouting({ source, rights, audit, turns, routes, spoolPath })
  const tcp: Listener = await listenOnTcp(answers.onTcp, clock, options)
  const folder = place === null ? '' : dirname(place.path)
  const isAtSpool = [resolve(spoolPath), dirname(resolve(spoolPath))].includes(folder)
  let socket: SocketListener | null = null
  let opening: Promise<void> | null = null
  let isClosed = false
  /** Why the control socket cannot be opened. */
  let fault: GatewayError | null = null
  await ensureSocket(true)
  // A program that tidies up deletes the file of the socket, or the directory around it.
  const endLooks = every(clock, lookEveryMs, async () => {
    await again()
    await audit.writeWaiting()
  })
  return {
    get url() {
      return tcp.url
    },
    get socketPath() {
      return socket?.path ?? null
    },
    ensureSocket: again,
    renew({ users, tls }) {
      rights.renew(users)
      tcp.renew(tls)
    },
    counters: () => ({
      open: tcp.connections.open,
      closedForOthers: tcp.connections.closedForOthers,
      sessions: rights.sessions,
      refused: new Map([...rights.refusals(), ...tcp.tlsFailures]),
    }),
    *states(): Generator<State> {
      if (tcp.fault !== null) yield { code: 'HTTP_LISTENER_FAILED', ...tcp.fault }
      if (fault !== null) yield { code: 'CONTROL_SOCKET_FAILED', fault, isAtSpool }
      yield* audit.states()
    },
    async close() {
      isClosed = true
      endLooks()
      await opening
      await Promise.all([tcp.close(), socket?.close()])
      await audit.close()
    },
  }

  function again(): Promise<void> {
    return (opening ??= ensureSocket(false).finally(() => (opening = null)))
  }

  async function ensureSocket(isStart: boolean): Promise<void> {
    if (place === null || isClosed || socket?.isThere()) return
    await socket?.close()
    socket = null
    try {
      socket = await listenOnControlSocket(answers.onSocket, place)
      fault = null
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // The directory around the spool is created when the spool is opened; then it is tried again.
      // Where it is away, that is what is wrong, also before the spool has noticed it.
      const isAway = isAtSpool && !existsSync(folder)
      fault = isStart || isAway ? null : error
    }
  }
}
