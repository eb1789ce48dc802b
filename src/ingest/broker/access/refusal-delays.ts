// refusal-delays.ts: how long the answer to a wrong password or an unknown user waits. It waits by address
// and user, so a tracker with a wrong password does not slow down others behind the same address. A client
// that is admitted never waits here.
//
//   the n-th refusal in a row   delayMs * 2^(n-1), at most delayMaxMs
//   admitted, or quiet for 10 min   the count begins again
//
// The wait begins with the attempt and covers the check of the password, so the time to the answer does not
// tell whether a user exists, while checks wait for less than `delayMs`.
//
// Bounds: `pairsMax` pairs of address and user are known; the one refused longest ago is forgotten.
// `waitingMax` answers wait; at the bound the oldest is sent at once.

import type { CancelTimer, Clock } from '../../../std/clock.ts'

export type RefusalDelays = {
  /** Whether the pair was refused lately. */
  isSuspect(address: string | null, userName: string): boolean
  /** Calls `refuse` when the answer is due. `attemptedMs`: monotonic, when the CONNECT came. */
  refused(pair: { address: string | null; userName: string; attemptedMs: number }, refuse: () => void): void
  admitted(address: string | null, userName: string): void
  /** Answers that wait. */
  waiting(): number
  close(): void
}

type Known = { times: number; lastAtMs: number }
type Waiting = { refuse: () => void; cancel: CancelTimer }

const pairsMax = 10_000
const waitingMax = 2000
const forgetAfterMs = 600_000

export function createRefusalDelays(
  { clock }: { clock: Clock },
  { delayMs, delayMaxMs }: { delayMs: number; delayMaxMs: number },
): RefusalDelays {
  const pairs = new Map<string, Known>()
  const waiting = new Set<Waiting>()
  return {
    isSuspect: (address, userName) => knownOf(pairOf(address, userName)) !== null,
    refused,
    admitted: (address, userName) => void pairs.delete(pairOf(address, userName)),
    waiting: () => waiting.size,
    close,
  }

  function refused(
    { address, userName, attemptedMs }: Parameters<RefusalDelays['refused']>[0],
    refuse: () => void,
  ): void {
    const pair = pairOf(address, userName)
    const times = (knownOf(pair)?.times ?? 0) + 1
    pairs.delete(pair)
    const nowMs = clock.monotonic()
    pairs.set(pair, { times, lastAtMs: nowMs })
    if (pairs.size > pairsMax) pairs.delete(firstOf(pairs.keys()) ?? '')
    const waitMs = Math.min(delayMaxMs, delayMs * 2 ** Math.min(times - 1, 20))
    const answerInMs = attemptedMs + waitMs - nowMs
    if (answerInMs <= 0) {
      refuse()
      return
    }
    const one: Waiting = { refuse, cancel: clock.after(answerInMs, () => answer(one)) }
    waiting.add(one)
    const oldest = waiting.size > waitingMax ? firstOf(waiting) : undefined
    if (oldest !== undefined) {
      oldest.cancel()
      answer(oldest)
    }
  }

  function answer(one: Waiting): void {
    waiting.delete(one)
    one.refuse()
  }

  function knownOf(pair: string): Known | null {
    const known = pairs.get(pair)
    if (known === undefined) return null
    if (clock.monotonic() - known.lastAtMs < forgetAfterMs) return known
    pairs.delete(pair)
    return null
  }

  function close(): void {
    for (const { cancel } of waiting) cancel()
    waiting.clear()
  }
}

function pairOf(address: string | null, userName: string): string {
  return `${address ?? ''}|${userName}`
}

function firstOf<Value>(values: Iterable<Value>): Value | undefined {
  for (const value of values) return value
  return undefined
}
