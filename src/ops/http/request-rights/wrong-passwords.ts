// wrong-passwords.ts: limits the wrong passwords of one address: after `wrongMax` of them it gets one check
// in `wrongEveryMs`, and the requests in between are answered 429 without a check. What is known to be right
// stays known meanwhile. An address of IPv6 counts as its network (64 bits): who has one has all of them.

/** Wrong passwords of one address at once, and one more each time. */
export const wrongMax = 20
export const wrongEveryMs = 15_000
/** Addresses that are remembered; the one whose last wrong password is oldest is forgotten. */
const addressesMax = 1000

export type WrongPasswords = {
  /** How long the address has to wait; 0: not at all. */
  waitMs(address: string, nowMs: number): number
  note(address: string, nowMs: number): void
}

/** Outlives a change of the users, or an attacker would wait for one. */
export function createWrongPasswords(): WrongPasswords {
  /** When as many wrong ones are forgotten as were given: each adds `wrongEveryMs`. */
  const clearAtMs = new Map<string, number>()
  return {
    waitMs(address, nowMs) {
      const owedMs = (clearAtMs.get(networkOf(address)) ?? 0) - nowMs
      return Math.max(0, owedMs - (wrongMax - 1) * wrongEveryMs)
    },
    note(address, nowMs) {
      const network = networkOf(address)
      const owedFrom = Math.max(nowMs, clearAtMs.get(network) ?? 0)
      clearAtMs.delete(network)
      clearAtMs.set(network, owedFrom + wrongEveryMs)
      const [oldest] = clearAtMs.keys()
      if (clearAtMs.size > addressesMax && oldest !== undefined) clearAtMs.delete(oldest)
    },
  }
}

/** Who has one address of a network has all of them. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('%', 1)[0]!.split('::')
  const [first, last] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':')))
  const groups =
    tail === undefined
      ? first!
      : [...first!, ...Array<string>(Math.max(0, 8 - first!.length - last!.length)).fill('0'), ...last!]
  return groups.slice(0, 4).join(':')
}
