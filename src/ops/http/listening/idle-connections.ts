// idle-connections.ts: makes room for new connections. Clients that connect and send nothing, or send or read
// slowly, must not keep a probe of /healthz out.
//
// Up to `connectionsMax` connections stay. Beyond, the oldest ones without a running request are closed,
// first those of the address with most connections; where all have one, those whose client does not read. New
// ones are spared for a moment, so that their request can arrive, as long as there are fewer than
// four times as many. Where no connection can be closed, the newest is.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Connection = { socket: Socket; address: string; sinceMs: number; answers: Set<ServerResponse> }

const sparedMs = 200
/** A client that has not read its answer for this long is slow. */
const slowMs = 1000

export type ConnectionCounters = { open: number; closedForOthers: number }

export function closeIdleConnections(server: Server, connectionsMax: number): ConnectionCounters {
  /** Oldest first. Over TLS a request names another socket object of the same peer. */
  const open = new Map<string, Connection>()
  let closedForOthers = 0
  let timer: NodeJS.Timeout | null = null
  server.on('connection', (socket: Socket) => {
    const key = peerOf(socket)
    open.set(key, { socket, address: socket.remoteAddress ?? '', sinceMs: nowMs(), answers: new Set() })
    socket.once('close', () => open.delete(key))
    // Outside of the turn that accepts: what has arrived is read first.
    if (open.size > connectionsMax) setImmediate(makeRoom)
  })
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const answers = open.get(peerOf(request.socket))?.answers
    answers?.add(response)
    response.once('close', () => answers?.delete(response))
  })
  server.once('close', () => clearTimeout(timer ?? undefined))
  return {
    get open() {
      return open.size
    },
    get closedForOthers() {
      return closedForOthers
    },
  }

  function makeRoom(): void {
    const isFlood = open.size > 4 * connectionsMax
    while (open.size > connectionsMax) {
      const victim = victimOf(isFlood ? 0 : sparedMs)
      if (victim === null) break
      close(victim)
    }
    if (open.size <= connectionsMax) return
    if (isFlood) for (const last of [...open.keys()].slice(4 * connectionsMax)) close(last)
    timer ??= setTimeout(() => {
      timer = null
      makeRoom()
    }, sparedMs).unref()
  }

  function close(key: string): void {
    closedForOthers += 1
    open.get(key)?.socket.destroy()
    open.delete(key)
  }

  function victimOf(spared: number): string | null {
    const before = nowMs() - spared
    const idle = [...open].filter(([, { answers, sinceMs }]) => answers.size === 0 && sinceMs <= before)
    if (idle.length > 0) return ofLargestShare(idle)
    const slow = [...open].filter(
      ([, { socket, answers, sinceMs }]) =>
        answers.size > 0 && socket.writableLength > 0 && sinceMs <= nowMs() - slowMs,
    )
    return slow.length > 0 ? ofLargestShare(slow) : null
  }
}

/** The oldest one of the address that has most of them. */
function ofLargestShare(connections: readonly (readonly [string, Connection])[]): string | null {
  const shares = new Map<string, number>()
  for (const [, { address }] of connections) shares.set(address, (shares.get(address) ?? 0) + 1)
  const most = Math.max(...shares.values())
  return connections.find(([, { address }]) => shares.get(address) === most)?.[0] ?? null
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}

function nowMs(): number {
  return performance.now()
}
