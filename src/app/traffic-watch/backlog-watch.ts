// backlog-watch.ts: a fault that nothing else notices, because each part works: payloads are delivered, and
// more come in than go out. Payloads then wait longer and longer, until the spool is full.
//
// BACKLOG_GROWS: the oldest live payload of a provider waits for two minutes or more, or the oldest one of
// backfill for 15 minutes, and within the last minute the payloads that wait did not become fewer, though the
// service accepted some. It is over when nothing waits for half as long, when they became fewer, or when the
// service accepts none, which has a condition of its own.
//
// Only time in which the service accepts counts: what grew in an outage is sent now.
//
// Held batches wait for a person and do not count. Bound: a minute of numbers for each provider.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Delivery } from '../../delivery/delivery.ts'
import type { Spool } from '../../spool/spool.ts'

export type BacklogDeps = {
  clock: Clock
  lanes: Spool['lanes']
  providers: Delivery['providers']
}

type Backlog = { payloads: number; oldestAt: EpochMs | null; waitedMs: number }

type Watched = { samples: { atMs: number; payloads: number }[]; isGrowing: boolean }

const waitsMs = 120_000
const waitsNoMoreMs = 60_000
/** So much longer may backfill wait. */
const backfillFactor = 7.5
const spanMs = 60_000

export function createBacklogCheck({ clock, lanes, providers }: BacklogDeps) {
  const watched = new Map<ProviderName, Watched>()
  return { states }

  function* states(): Generator<State> {
    const backlogs = backlogsOf(lanes(), clock.now())
    if (backlogs.size === 0) {
      watched.clear()
      return
    }
    for (const { name, endpoint, lastAcceptedAt, ratePerS } of providers()) {
      const { waitedMs, ...backlog } = backlogs.get(name) ?? nothing
      const isDelivering =
        endpoint === 'available' && lastAcceptedAt !== null && clock.now() - lastAcceptedAt < waitsMs
      const before = watched.get(name) ?? { samples: [], isGrowing: false }
      const { isGrowing, grownBy, samples } = judged(before, { ...backlog, waitedMs }, isDelivering)
      watched.set(name, { samples, isGrowing })
      if (isGrowing) yield { code: 'BACKLOG_GROWS', provider: name, ...backlog, grownBy, ratePerS }
    }
  }

  function judged({ samples, isGrowing }: Watched, { payloads, waitedMs }: Backlog, isDelivering: boolean) {
    const nowMs = clock.monotonic()
    // What grew while the service accepted nothing says nothing of the time after that.
    if (!isDelivering) return { isGrowing: false, grownBy: 0, samples: [] }
    const recent = samples.filter(({ atMs }) => nowMs - atMs <= spanMs)
    const first = recent[0] ?? { atMs: nowMs, payloads }
    const isNow =
      waitedMs >= (isGrowing ? waitsNoMoreMs : waitsMs) &&
      payloads >= first.payloads &&
      (isGrowing || nowMs - first.atMs >= spanMs / 2)
    const grownBy = payloads - first.payloads
    return { isGrowing: isNow, grownBy, samples: [...recent, { atMs: nowMs, payloads }] }
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
