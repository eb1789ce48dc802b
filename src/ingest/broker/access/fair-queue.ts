// fair-queue.ts: a queue in which addresses take turns, and within an address its users. Each step is O(1); a
// Map keeps the order, and who was served goes to its end.

export type FairQueue<Entry> = {
  size(): number
  add(address: string, user: string, entry: Entry): void
  take(): Entry | undefined
  /** Removes the last entry of the address that has most. Looks at every address. */
  dropOfLargest(): Entry | undefined
}

type OfAddress<Entry> = { users: Map<string, Entry[]>; size: number }

export function createFairQueue<Entry>(): FairQueue<Entry> {
  const addresses = new Map<string, OfAddress<Entry>>()
  let size = 0
  return {
    size() {
      return size
    },
    add,
    take,
    dropOfLargest,
  }

  function add(address: string, user: string, entry: Entry): void {
    const own = addresses.get(address) ?? { users: new Map<string, Entry[]>(), size: 0 }
    addresses.set(address, own)
    const entries = own.users.get(user) ?? []
    own.users.set(user, entries)
    entries.push(entry)
    own.size += 1
    size += 1
  }

  function take(): Entry | undefined {
    for (const [address, own] of addresses) {
      for (const [user, entries] of own.users) {
        const entry = entries.shift()
        own.users.delete(user)
        if (entries.length > 0) own.users.set(user, entries)
        addresses.delete(address)
        removed(address, own)
        return entry
      }
    }
    return undefined
  }

  function dropOfLargest(): Entry | undefined {
    let largest: [string, OfAddress<Entry>] | undefined
    for (const one of addresses) if (largest === undefined || one[1].size > largest[1].size) largest = one
    if (largest === undefined) return undefined
    const [address, own] = largest
    const [user, entries] = [...own.users].reduce((most, one) =>
      one[1].length >= most[1].length ? one : most,
    )
    const entry = entries.pop()
    if (entries.length === 0) own.users.delete(user)
    removed(address, own)
    return entry
  }

  function removed(address: string, own: OfAddress<Entry>): void {
    own.size -= 1
    size -= 1
    if (own.size > 0) addresses.set(address, own)
    else addresses.delete(address)
  }
}
