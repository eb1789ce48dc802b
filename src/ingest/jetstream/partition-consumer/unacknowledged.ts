// unacknowledged.ts: the messages of a partition that were taken and are not acknowledged, in their order:
// where each is answered, and its place in the stream. Two lists, no object for a message. Bound: the window.

export type Unacknowledged = {
  /** An empty reply: it is acknowledged with the one behind it. */
  add(reply: string, place: number): void
  /** All up to the place are acknowledged. */
  acknowledge(place: number): void
  /** Forgets what is behind the place; null: all that is not acknowledged. */
  dropBehind(place: number | null): void
  /** Where the last one that was acknowledged is answered; null: none was. */
  lastReply(): string | null
  /** Of the last one that was taken and not dropped; 0: none was. */
  lastPlace(): number
  /** How many are behind the place. */
  countBehind(place: number): number
  /** Where there is a reply. */
  forEach(each: (reply: string) => void): void
}

export function createUnacknowledged(): Unacknowledged {
  let replies: string[] = []
  let places: number[] = []
  let head = 0
  let lastReply: string | null = null
  let lastAcked = 0

  return {
    add(reply, place) {
      replies.push(reply)
      places.push(place)
    },
    acknowledge(place) {
      while (head < places.length && places[head]! <= place) {
        if (replies[head] !== '') lastReply = replies[head]!
        lastAcked = places[head]!
        head += 1
      }
      if (head * 2 < places.length) return
      replies = replies.slice(head)
      places = places.slice(head)
      head = 0
    },
    dropBehind(place) {
      const first = place === null ? head : places.findIndex((one, at) => at >= head && one > place)
      const kept = first < 0 ? places.length : first
      replies.length = kept
      places.length = kept
    },
    lastReply: () => lastReply,
    lastPlace: () => (places.length > head ? places.at(-1)! : lastAcked),
    countBehind(place) {
      let count = 0
      for (let at = places.length - 1; at >= head && places[at]! > place; at -= 1) count += 1
      return count
    },
    forEach(each) {
      for (let at = head; at < replies.length; at += 1) if (replies[at] !== '') each(replies[at]!)
    },
  }
}
