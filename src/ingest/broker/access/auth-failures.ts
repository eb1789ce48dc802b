// auth-failures.ts: counts refused passwords, tokens and users, and names the addresses and users with most.
// From `reportedMin` failures on, an event reports them, at most one every 10 s; it raises AUTH_FAILURES.
// After ten minutes without a failure the counts by address and user begin again.
//
// A user name that is not configured is not shown: it may be a password or a token in the wrong field.
//
// Bounds: `countedMax` names per table. At the bound the smallest one is replaced and its count is passed on
// (space-saving), so who has many failures is never missing, and a count is at most too high.

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'

export type FailureCount = { name: string; failures: number }

export type AuthFailures = {
  /** `userName` is null for one that is not configured. */
  note(address: string | null, userName: string | null): void
  view(): AuthFailureView
  close(): void
}

export type AuthFailureView = {
  /** Since the start. */
  failures: number
  /** The most failures first. */
  addresses: readonly FailureCount[]
  users: readonly FailureCount[]
}

export const unknownUser = '(unknown user)'

const reportedMin = 10
const reportEveryMs = 10_000
const quietMs = 600_000
const countedMax = 200
const shownMax = 5

export function createAuthFailures({ clock, emit }: { clock: Clock; emit: Emit }): AuthFailures {
  const addresses = new Map<string, number>()
  const users = new Map<string, number>()
  let failures = 0
  /** Since the counts by name began. */
  let counted = 0
  let reported = 0
  let lastAtMs = -Infinity
  let cancel: CancelTimer | null = null
  return { note, view, close: () => cancel?.() }

  function note(address: string | null, userName: string | null): void {
    const nowMs = clock.monotonic()
    if (nowMs - lastAtMs >= quietMs) begin()
    lastAtMs = nowMs
    failures += 1
    counted += 1
    addTo(addresses, address ?? '(unknown address)')
    addTo(users, userName ?? unknownUser)
    if (counted >= reportedMin && cancel === null) report()
  }

  function begin(): void {
    addresses.clear()
    users.clear()
    counted = 0
    reported = 0
  }

  function report(): void {
    cancel = null
    const count = counted - reported
    if (count <= 0) return
    reported = counted
    emit({ kind: 'auth_failures', count, addresses: textOf(addresses), users: textOf(users) })
    cancel = clock.after(reportEveryMs, report)
  }

  function view(): AuthFailureView {
    return { failures, addresses: mostOf(addresses), users: mostOf(users) }
  }
}

function addTo(counts: Map<string, number>, name: string): void {
  const known = counts.get(name)
  if (known === undefined && counts.size >= countedMax) {
    const [smallest, count] = [...counts].reduce((least, one) => (one[1] < least[1] ? one : least))
    counts.delete(smallest)
    counts.set(name, count + 1)
    return
  }
  counts.set(name, (known ?? 0) + 1)
}

function mostOf(counts: ReadonlyMap<string, number>): FailureCount[] {
  return [...counts]
    .map(([name, failures]) => ({ name, failures }))
    .sort((a, b) => b.failures - a.failures)
    .slice(0, shownMax)
}

function textOf(counts: ReadonlyMap<string, number>): readonly string[] {
  return mostOf(counts).map(({ name, failures }) => `${name} (${failures})`)
}
