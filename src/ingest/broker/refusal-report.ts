// refusal-report.ts: reports, by reason, which clients are refused, and whether they are the known fleet. A
// connection that is closed for its CONNECT, or before it, counts as refused: the device has no other way in.
// Each report raises CLIENTS_REFUSED. It leaves out what another condition says (saidElsewhere), and
// connections without a CONNECT: health checks and scanners make them.
//
// The known fleet are the clients that were admitted once; a connected one is not refused, whatever another
// client with its id gets. It is `wholeFleet` where half of them are refused, or where none was ever admitted
// and two or more are refused: unknown clients do not reach it while the gateway has a fleet. A report needs
// `reportedMin` refusals, or `wholeFleet` and two clients, and comes at most once in `reportEveryMs`. After
// `quietMs` without a refusal the counts begin again.
//
// Bounds: one entry for each reason, `namesMax` clients in each. Further ones count as connections alone.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { refusalCures, type ClientDropReason, type RefusalReason } from './client-faults.ts'
import type { Clients, RefusedClient } from './clients/clients.ts'

type Entry = {
  names: Set<string>
  total: number
  reported: number
  lastAtMs: number
  cancel: CancelTimer | null
}

const reportedMin = 10
const reportEveryMs = 10_000
const quietMs = 600_000
const namesMax = 10_000
/** A client id may be as long as its CONNECT. */
const nameLengthMax = 100

/**
 * AUTH_FAILURES, CONNECTIONS_LIMITED, PROXY_HEADER_WRONG, WEBSOCKET_REFUSED, TLS_HANDSHAKES_FAIL, and
 * PARTIAL_PACKETS_FULL.
 */
const saidElsewhere =
  /^(bad_credentials$|max_|proxy_|websocket_|http_|not_http$|not_tls$|tls_(?!client_certificate_|on_)|partial_)/

type Reason = RefusalReason | ClientDropReason

export class RefusalReport {
  readonly #deps: { clock: Clock; emit: Emit; clients: Pick<Clients, 'admitted'> }
  readonly #entries = new Map<Reason, Entry>()

  constructor(deps: { clock: Clock; emit: Emit; clients: Pick<Clients, 'admitted'> }) {
    this.#deps = deps
  }

  /** `detail`: the reason in words. */
  add(reason: Reason, detail: string, client: RefusedClient): void {
    if (saidElsewhere.test(reason) || reason === 'connect_timeout') return
    const { clock } = this.#deps
    const nowMs = clock.monotonic()
    let entry = this.#entries.get(reason)
    if (entry === undefined || nowMs - entry.lastAtMs >= quietMs) {
      entry = { names: new Set(), total: 0, reported: 0, lastAtMs: nowMs, cancel: null }
      this.#entries.set(reason, entry)
    }
    entry.lastAtMs = nowMs
    entry.total += 1
    if (entry.names.size < namesMax) entry.names.add(nameOf(client))
    const own = entry
    // A little later, so that the first report has more than its first client.
    entry.cancel ??= clock.after(own.reported === 0 ? 1000 : reportEveryMs, () =>
      this.#report({ reason, detail }, own, client),
    )
  }

  close(): void {
    for (const { cancel } of this.#entries.values()) cancel?.()
  }

  #report(
    { reason, detail }: { reason: Reason; detail: string },
    entry: Entry,
    { clientId, userName = null, address }: RefusedClient,
  ): void {
    entry.cancel = null
    const { names, total } = entry
    let [known, knownRefused] = [0, 0]
    for (const client of this.#deps.clients.admitted()) {
      known += 1
      const isRefused = names.has(nameOf(client)) || names.has(nameOf({ ...client, clientId: null }))
      if (isRefused && client.state !== 'connected') knownRefused += 1
    }
    const wholeFleet = known === 0 ? names.size >= 2 : knownRefused * 2 >= known
    if (total < reportedMin && !(wholeFleet && names.size >= 2)) return
    const count = total - entry.reported
    entry.reported = total
    this.#deps.emit({
      kind: 'clients_refused',
      reason,
      detail,
      act: refusalCures[reason] ?? null,
      count,
      clients: names.size,
      known,
      knownRefused,
      wholeFleet,
      clientId,
      userName,
      address,
    })
  }
}

/** By its address, where it has no client id: a client id cannot contain the null character. */
function nameOf({ clientId, address }: Pick<RefusedClient, 'clientId' | 'address'>): string {
  return clientId === null || clientId === '' ? `\0${address ?? ''}` : clientId.slice(0, nameLengthMax)
}
