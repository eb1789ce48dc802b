// members.ts: spreads the partitions over the gateways that share them. The entry file of the folder.
//
// Promises
//   At most one member takes the messages of a partition, as far as a lease can promise it; what it cannot
//   (a process that was stopped for longer than its lease and wakes up) is caught by the order of deliveries
//   (partition-epoch.ts): nothing is acknowledged that was not stored.
//   A member that dies loses its partitions after `leaseMs`. One that stops frees them at once.
//   The partitions are spread evenly, by name (partition-shares.ts).
//
// How
//   Each member writes its own record every second, with the revision that it wrote before. It owns its
//   partitions until `leaseMs - marginMs` after it began to write the last one that was accepted, by its own
//   clock. Another member counts it as dead when its record did not change for `leaseMs`, by the clock of the
//   one who looks, and only while it could read. No two clocks are compared, and an answer that is late only
//   shortens the lease.
//
// What can go wrong, and what then happens
//   the bucket cannot be written    the lease ends, the partitions rest until it can; nobody else can take
//                                   them, either
//   two gateways have one name      the second does not own anything, and says so (member_twice)
//   gateways have other numbers of  the one that comes later owns nothing, and says so (partitions_differ)
//   partitions
//   a gateway starts again after a  it waits until its own record of before is silent for `ownMs`
//   kill

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Connection } from '../nats-connection.ts'
import { openMemberRecords, type MemberRecords, type Revised } from './member-records.ts'
import {
  isSame,
  otherNumber,
  planShares,
  withoutMember,
  type MemberId,
  type SharesRecord,
} from './partition-shares.ts'

export { bucketMissing, bucketName, bucketStream } from './member-records.ts'

export type Members = {
  /** Takes part over this connection, until the returned function is called. */
  join(connection: Connection): () => void
  setAccepting(isAccepting: boolean): void
  /** Monotonic. */
  ownedUntilMs(): number
  /** A planned stop: frees all. The connection is still open. */
  leave(): Promise<void>
  /** The owner of each partition, as last seen. */
  owners(): readonly (string | null)[]
}

type Deps = {
  clock: Clock
  random: () => number
  /** What this member owns has changed. */
  changed: (owned: ReadonlySet<number>) => void
  /** Settles an own partition that another member is to get. */
  settle: (partition: number) => Promise<void>
  failed: (error: unknown) => void
  /** Another process has the name of this one; false: not any more. */
  nameTaken: (isTaken: boolean) => void
  /** A member shares another number of partitions, and this one takes nothing; null: not any more. */
  otherNumber: (other: { member: string; partitions: number } | null) => void
}

type Options = { prefix: string; partitions: number; member: string; instance: string }

const everyMs = 1000
const leaseMs = 6000
const marginMs = 1000
/** A process of this name that was killed: no other one has its name, so less is enough. */
const ownMs = 2500
/** After a write that came too late. */
const soonMs = 100

type Seen = { revision: number; instance: string | null; changedAtMs: number }

export function createMembers(deps: Deps, options: Options): Members {
  const { clock, random } = deps
  const { prefix, partitions } = options
  const me: MemberId = { name: options.member, instance: options.instance }
  let records: MemberRecords | null = null
  let isAccepting = false
  /** Of the own record, after the first write. */
  let revision: number | null = null
  let ownedUntilMs = 0
  let shares: Revised<SharesRecord> = { revision: 0, value: { members: [], owners: [] } }
  let owned: ReadonlySet<number> = new Set()
  const seen = new Map<string, Seen>()
  const settling = new Set<number>()
  const settled = new Set<number>()
  let isBusy = false
  let isHinted = false
  let cancel: CancelTimer = () => {}

  function join(connection: Connection): () => void {
    const opened = openMemberRecords(connection, prefix)
    records = opened
    const unwatch = opened.watch(() => turn(opened))
    turn(opened)
    return () => {
      if (records !== opened) return
      records = null
      cancel()
      // The connection may be gone already.
      if (!connection.nc.isClosed()) unwatch()
      own(new Set())
    }
  }

  /** One at a time; a hint meanwhile makes the next one follow soon. */
  function turn(on: MemberRecords): void {
    if (records !== on) return
    if (isBusy) {
      isHinted = true
      return
    }
    isBusy = true
    cancel()
    // Every failure is handled in it.
    void take(on)
  }

  async function take(on: MemberRecords): Promise<void> {
    let isSoon = false
    try {
      isSoon = await round(on)
    } catch (error) {
      if (records === on) deps.failed(error)
      // Who did not answer may live.
      for (const one of seen.values()) one.changedAtMs = clock.monotonic()
    }
    isBusy = false
    if (clock.monotonic() >= ownedUntilMs) own(new Set())
    const next = records
    if (next === null) return
    const delayMs = isSoon || isHinted ? soonMs * (0.5 + random()) : everyMs
    isHinted = false
    cancel = clock.after(delayMs, () => turn(next))
  }

  /** True: again soon. */
  async function round(on: MemberRecords): Promise<boolean> {
    if (!(await renew(on))) return false
    const read = await on.readShares()
    const others = read.value.members.filter(({ name }) => name !== me.name)
    await Promise.all(others.map(async ({ name }) => note(name, await on.readMember(name))))
    for (const name of seen.keys())
      if (name !== me.name && !others.some((other) => other.name === name)) seen.delete(name)
    if (records !== on) return false
    const other = otherNumber(read.value, { me, partitions, isDead })
    deps.otherNumber(other)
    if (other !== null) {
      own(new Set())
      return false
    }
    const { next, toSettle } = planShares(read.value, {
      me,
      isAccepting,
      partitions,
      isDead,
      settled,
    })
    shares = read
    if (next !== read.value) {
      const written = await on.writeShares({ revision: read.revision, value: next })
      if (written === null) return true
      shares = { revision: written, value: next }
    }
    if (records !== on) return false
    for (const partition of settled)
      if (!isMine(shares.value.owners[partition] ?? null)) settled.delete(partition)
    own(mine())
    for (const partition of toSettle) startSettling(partition, on)
    return false
  }

  /** Writes the own record; false: it is that of another process. */
  async function renew(on: MemberRecords): Promise<boolean> {
    const startedAtMs = clock.monotonic()
    if (revision !== null) {
      const written = await on.writeMember(me, revision)
      if (written !== null) {
        revision = written
        ownedUntilMs = startedAtMs + leaseMs - marginMs
        return true
      }
      revision = null
    }
    const found = await on.readMember(me.name)
    if (found.revision === 0 || found.value === me.instance) {
      revision = found.revision
      return renew(on)
    }
    note(me.name, found)
    const { changedAtMs } = seen.get(me.name)!
    if (clock.monotonic() - changedAtMs >= ownMs) {
      deps.nameTaken(false)
      revision = found.revision
      return renew(on)
    }
    // It is that of a process before, or it changes: then another gateway has this name.
    if (clock.monotonic() - firstLookMs() > ownMs) deps.nameTaken(true)
    return false
  }

  let lookedAtMs: number | null = null
  function firstLookMs(): number {
    lookedAtMs ??= clock.monotonic()
    return lookedAtMs
  }

  function note(name: string, { revision: now, value }: Revised<string | null>): void {
    const known = seen.get(name)
    if (known === undefined || known.revision !== now)
      seen.set(name, { revision: now, instance: value, changedAtMs: clock.monotonic() })
  }

  function isDead({ name, instance }: MemberId): boolean {
    const known = seen.get(name)
    if (known === undefined) return false
    // Its process of before.
    if (known.instance !== null && known.instance !== instance) return true
    return clock.monotonic() - known.changedAtMs >= leaseMs
  }

  // ---- what is owned

  function isMine(owner: MemberId | null): boolean {
    return owner !== null && isSame(owner, me)
  }

  function mine(): ReadonlySet<number> {
    return new Set(
      shares.value.owners.flatMap((owner, index) => (isMine(owner) && !settled.has(index) ? [index] : [])),
    )
  }

  function own(next: ReadonlySet<number>): void {
    if (next.size === owned.size && [...next].every((partition) => owned.has(partition))) return
    owned = next
    deps.changed(owned)
  }

  function startSettling(partition: number, on: MemberRecords): void {
    if (settling.has(partition)) return
    settling.add(partition)
    deps
      .settle(partition)
      .then(() => {
        settling.delete(partition)
        settled.add(partition)
        own(mine())
        turn(on)
      })
      .catch(deps.failed)
  }

  async function leave(): Promise<void> {
    const on = records
    if (on === null) return
    records = null
    cancel()
    own(new Set())
    for (let tries = 0; tries < 3; tries += 1) {
      const read = await on.readShares()
      const next = withoutMember(read.value, me)
      if ((await on.writeShares({ revision: read.revision, value: next })) !== null) return
    }
  }

  return {
    join,
    setAccepting(next) {
      isAccepting = next
      if (records !== null) turn(records)
    },
    ownedUntilMs: () => ownedUntilMs,
    leave,
    owners: () => Array.from({ length: partitions }, (_, index) => shares.value.owners[index]?.name ?? null),
  }
}
