// bridge-sessions.ts: remembers under which client ids bridges had sessions, and says which are left at a
// broker: `connections` was lowered, or a client id changed, or a bridge was removed. In a share group the
// broker keeps giving such a session its share, and no client reads it.
//
//   sessions_left   a client id was connected with a kept session, the config does not have it any more, and
//                   its session_expiry has not passed since then. Over when the config has it again, or after
//                   that time. Who removed the sessions at the broker deletes the file to end it at once
//
// The sessions are in `<spool>/bridge-sessions.json`, written when there is a new one, every few minutes and
// at the stop. It may be lost: then nothing is said of sessions from before.
//
// A broker is known by host and port: two may run on one machine. If the config has another port for a client
// id, and none with the port of before, it is taken for the same broker, such as one that has TLS now.
//
// It remembers the filters, too: a session keeps them, so the bridge unsubscribes those that the config does
// not have any more (bridge-attempt.ts).
//
// Bound: 10,000 sessions; beyond it the ones that were connected last are kept.

import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { every, type Clock } from '../../std/clock.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { State, StateSource } from '../../domain/condition-state.ts'
import { filtersOf, type BridgeOptions, type MessageSourceStatus } from '../../ingest/ingest.ts'
import { createKeptWriter, readKept } from '../../std/file-system/kept-json.ts'

export type BridgeSessions = StateSource & {
  /** Writes the sessions. Never rejects. */
  stop(): Promise<void>
}

type Deps = {
  clock: Clock
  messageSources: () => readonly Pick<MessageSourceStatus, 'name' | 'links'>[]
}

type Options = { spoolPath: string; bridges: readonly BridgeOptions[] }

const sessionSchema = z.object({
  host: z.string(),
  port: z.int(),
  clientId: z.string(),
  bridge: z.string(),
  /** When it was seen connected last. */
  lastAt: z.number(),
  expiryMs: z.number(),
  filters: z.array(z.string()).default([]),
})

type Session = z.infer<typeof sessionSchema>
type Place = Pick<Session, 'host' | 'port' | 'clientId'>

const sessionsMax = 10_000
const checkEveryMs = 1000
const writeEveryMs = 300_000
const shownMax = 3

export async function startBridgeSessions(deps: Deps, options: Options): Promise<BridgeSessions> {
  const { clock } = deps
  const path = fileIn(options.spoolPath)
  const sessions = await readSessions(path, options.bridges)
  const used = new Set(options.bridges.flatMap(placesOf).map(keyOf))
  let writtenMs = clock.monotonic()
  const write = createKeptWriter(clock, path, () => [...sessions.values()])
  check()
  const isNeeded = options.bridges.length > 0 || sessions.size > 0
  const end = isNeeded ? every(clock, checkEveryMs, check) : () => {}
  return {
    states,
    async stop() {
      end()
      check()
      await write()
    },
  }

  function check(): void {
    const isNew = note()
    const nowMs = clock.monotonic()
    if (isNew || (sessions.size > 0 && nowMs - writtenMs >= writeEveryMs)) {
      writtenMs = nowMs
      void write() // It never rejects.
    }
  }

  /** True where the file lacks a session. */
  function note(): boolean {
    let isNew = false
    // Their counters cost more than the rest of this check.
    const sources = options.bridges.length === 0 ? [] : deps.messageSources()
    for (const bridge of options.bridges) {
      const { name, url, keepsSession, sessionExpiryMs } = bridge
      const filters = [...filtersOf(bridge)]
      for (const { clientId, state } of sources.find((source) => source.name === name)?.links ?? []) {
        if (state !== 'connected') continue
        const { host, port } = url
        const key = keyOf({ host, port, clientId })
        const known = sessions.get(key)
        sessions.delete(key)
        // With Clean Session the broker has removed the one of before.
        if ((known !== undefined) !== keepsSession) isNew = true
        if (keepsSession && !isDeepStrictEqual(known?.filters, filters)) isNew = true
        if (keepsSession)
          sessions.set(key, {
            host,
            port,
            clientId,
            bridge: name,
            lastAt: clock.now(),
            expiryMs: sessionExpiryMs,
            filters,
          })
      }
    }
    for (const key of sessions.keys()) {
      if (sessions.size <= sessionsMax) break
      sessions.delete(key)
    }
    return isNew
  }

  function* states(): Generator<State> {
    const left = new Map<string, Session[]>()
    for (const [key, session] of sessions) {
      if (used.has(key)) continue
      if (clock.now() - session.lastAt >= session.expiryMs) sessions.delete(key)
      else left.set(session.bridge, [...(left.get(session.bridge) ?? []), session])
    }
    for (const [messageSource, those] of left) {
      const url = options.bridges.find(({ name }) => name === messageSource)?.url
      yield {
        code: 'MESSAGE_SOURCE_AT_RISK',
        messageSource,
        risk: 'sessions_left',
        about: those.map(({ clientId }) => clientId),
        clientId: those[0]!.clientId,
        detail: leftText(those, url ?? null),
        act: null,
      }
    }
  }
}

/** The bridges, each with the filters that its sessions had when they were connected last. */
export async function withFormerFilters({ spoolPath, bridges }: Options): Promise<Options['bridges']> {
  const sessions = await readSessions(fileIn(spoolPath), bridges)
  return bridges.map((bridge) => {
    const formerFilters = new Map(
      placesOf(bridge).map((place) => [place.clientId, sessions.get(keyOf(place))?.filters ?? []]),
    )
    return { ...bridge, formerFilters }
  })
}

function fileIn(spoolPath: string): string {
  return join(spoolPath, 'bridge-sessions.json')
}

function placesOf({ url, clientIds }: Options['bridges'][number]): Place[] {
  return clientIds.map((clientId) => ({ host: url.host, port: url.port, clientId }))
}

function keyOf({ host, port, clientId }: Place): string {
  return `${host}:${port} ${clientId}`
}

/** By broker and client id. One whose port is not in the config has that of the config, where it is free. */
async function readSessions(path: string, bridges: Options['bridges']): Promise<Map<string, Session>> {
  const sessions = new Map(
    (await readKept(path, z.array(sessionSchema).max(sessionsMax), [])).map((one) => [keyOf(one), one]),
  )
  const configured = new Set(bridges.flatMap(placesOf).map(keyOf))
  for (const bridge of bridges)
    for (const place of placesOf(bridge)) {
      if (sessions.has(keyOf(place))) continue
      const moved = [...sessions].filter(
        ([key, one]) => one.host === place.host && one.clientId === place.clientId && !configured.has(key),
      )
      const [key, session] = moved.find(([, one]) => one.bridge === bridge.name) ?? moved[0] ?? []
      if (key === undefined || session === undefined) continue
      sessions.delete(key)
      sessions.set(keyOf(place), { ...session, port: place.port })
    }
  return sessions
}

function isAt({ host, port }: Session, url: { host: string; port: number } | null): boolean {
  return host === url?.host && port === url.port
}

function placeText({ host, port }: Session): string {
  return `${bounded(host, 40)}:${port}`
}

/** `url`: that of the bridge in the config. */
function leftText(sessions: readonly Session[], url: { host: string; port: number } | null): string {
  const shown = sessions
    .slice(0, shownMax)
    .map((one) => quote(one.clientId, 36) + (isAt(one, url) ? '' : ` at ${placeText(one)}`))
  const more = sessions.length > shownMax ? ` and ${sessions.length - shownMax} more` : ''
  return (
    `Sessions of removed client ids may be left at the broker: ` +
    `${shown.join(', ')}${more}. No client receives their messages`
  )
}
