// wrong-passwords.ts: limits the wrong passwords of one address: after `wrongMax` of them for one user, the
// user gets one check from there in `wrongEveryMs`, and after twice as many for any names, all of them
// do. The requests in between are answered 429 without a check. So a program with an old password keeps out
// nobody else. What is known to be right stays known meanwhile. An address of IPv6 counts as its network (64
// bits): who has one has all of them.

/** Wrong passwords of one user at once, and one more each time. */
export const wrongMax = 20
export const wrongEveryMs = 15_000
export const anyNameMax = 2 * wrongMax
/** Addresses and users that are remembered; the one whose last wrong password is oldest is forgotten. */
const rememberedMax = 2000
const nameLengthMax = 64

type From = { address: string; name: string }

export type WrongPasswords = {
  /** How long the user has to wait there; 0: not at all. */
  waitMs(from: From, nowMs: number): number
  note(from: From, nowMs: number): void
}

/** Outlives a change of the users, or an attacker would wait for one. */
export function createWrongPasswords(): WrongPasswords {
  /** When as many wrong ones are forgotten as were given: each adds `wrongEveryMs`. */
  const clearAtMs = new Map<string, number>()
  return {
    waitMs({ address, name }, nowMs) {
      const network = networkOf(address)
      const waitMs = (who: string, most: number) =>
        (clearAtMs.get(who) ?? 0) - nowMs - (most - 1) * wrongEveryMs
      return Math.max(0, waitMs(userAt(network, name), wrongMax), waitMs(network, anyNameMax))
    },
    note({ address, name }, nowMs) {
      const network = networkOf(address)
      for (const who of [userAt(network, name), network]) {
        const owedFrom = Math.max(nowMs, clearAtMs.get(who) ?? 0)
        clearAtMs.delete(who)
        clearAtMs.set(who, owedFrom + wrongEveryMs)
        const [oldest] = clearAtMs.keys()
        if (clearAtMs.size > rememberedMax && oldest !== undefined) clearAtMs.delete(oldest)
      }
    },
  }
}

function userAt(network: string, name: string): string {
  return `${network} ${name.slice(0, nameLengthMax)}`
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
