// backlog-watch.ts: a fault that nothing else notices, because each part works: payloads are delivered, and
// more come in than go out. Payloads then wait longer and longer, until the spool is full.
//
//   backlog_grows   the oldest live payload of a provider waits for two minutes or more, or the oldest one of
//                   backfill for 15 minutes, and within the last minute the payloads that wait did not become
//                   fewer, though the service accepted some. Again every minute with other numbers; with
//                   `payloads` 0 when it is over: nothing waits for half as long, they became fewer, or the
//                   service accepts none, which has a condition of its own
//
// Held batches wait for a person and do not count. Bound: a minute of numbers for each provider.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Delivery } from '../../delivery/delivery.ts'
import type { Spool } from '../../spool/spool.ts'

export type BacklogDeps = {
  clock: Clock
  emit: Emit
  lanes: Spool['lanes']
  providers: Delivery['providers']
}

type Backlog = { payloads: number; oldestAt: EpochMs | null; waitedMs: number }

type Watched = { samples: { atMs: number; payloads: number }[]; saidMs: number | null }

const waitsMs = 120_000
const waitsNoMoreMs = 60_000
/** So much longer may backfill wait. */
const backfillFactor = 7.5
const spanMs = 60_000
const againMs = 60_000

export function createBacklogCheck({ clock, emit, lanes, providers }: BacklogDeps) {
  const watched = new Map<ProviderName, Watched>()
  return { check }

  function check(): void {
    const backlogs = backlogsOf(lanes(), clock.now())
    for (const { name, endpoint, lastAcceptedAt, ratePerS } of providers()) {
      const backlog = backlogs.get(name) ?? nothing
      const isDelivering =
        endpoint === 'available' && lastAcceptedAt !== null && clock.now() - lastAcceptedAt < waitsMs
      judge(name, backlog, { isDelivering, ratePerS })
    }
  }

  function judge(
    provider: ProviderName,
    { payloads, oldestAt, waitedMs }: Backlog,
    { isDelivering, ratePerS }: { isDelivering: boolean; ratePerS: number },
  ): void {
    const nowMs = clock.monotonic()
    const known = watched.get(provider) ?? { samples: [], saidMs: null }
    watched.set(provider, known)
    const old = known.samples.findIndex(({ atMs }) => nowMs - atMs <= spanMs)
    known.samples.splice(0, old < 0 ? known.samples.length : old)
    const first = known.samples[0]
    known.samples.push({ atMs: nowMs, payloads })
    const isFewer = first !== undefined && payloads < first.payloads
    if (known.saidMs !== null && (!isDelivering || waitedMs < waitsNoMoreMs || isFewer)) {
      known.saidMs = null
      emit({
        kind: 'backlog_grows',
        provider,
        payloads: 0,
        grownBy: 0,
        oldestAt: null,
        ratePerS,
        first: false,
      })
      return
    }
    if (!isDelivering || waitedMs < waitsMs || isFewer || first === undefined) return
    if (nowMs - first.atMs < spanMs / 2 || (known.saidMs !== null && nowMs - known.saidMs < againMs)) return
    const grownBy = payloads - first.payloads
    emit({
      kind: 'backlog_grows',
      provider,
      payloads,
      grownBy,
      oldestAt,
      ratePerS,
      first: known.saidMs === null,
    })
    known.saidMs = nowMs
  }
}

const nothing: Backlog = { payloads: 0, oldestAt: null, waitedMs: 0 }

function backlogsOf(lanes: ReturnType<Spool['lanes']>, now: EpochMs): Map<ProviderName, Backlog> {
  const backlogs = new Map<ProviderName, Backlog>()
  for (const { provider, role, pending, sealed, heldPayloads, oldestAt, oldestSealedAt } of lanes) {
    const payloads = pending + sealed - heldPayloads
    if (role.kind === 'retry' || payloads <= 0) continue
    // A held batch may be the oldest one: then what waits behind it is as old as the oldest pending payload.
    const oldest = heldPayloads > 0 ? oldestAt : earlier(oldestAt, oldestSealedAt)
    const ageMs = oldest === null ? 0 : now - oldest
    const other = backlogs.get(provider) ?? nothing
    backlogs.set(provider, {
      payloads: payloads + other.payloads,
      oldestAt: earlier(oldest, other.oldestAt),
      waitedMs: Math.max(other.waitedMs, role.kind === 'live' ? ageMs : ageMs / backfillFactor),
    })
  }
  return backlogs
}

function earlier(a: EpochMs | null, b: EpochMs | null): EpochMs | null {
  return a === null || (b !== null && b < a) ? b : a
}
