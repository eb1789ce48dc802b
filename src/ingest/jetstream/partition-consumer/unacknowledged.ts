// unacknowledged.ts: the messages of a partition that were taken and are not acknowledged, in their order:
// where each is answered, and its place in the stream. Two lists, no object for a message. Bound: the window.

export type Unacknowledged = {
  /** An empty reply: it is acknowledged with the one behind it. */
  add(reply: string, place: number): void
  /** All up to the place are acknowledged. */
  acknowledge(place: number): void
  /** Where the last one that was acknowledged is answered; null: none was. */
  lastReply(): string | null
  /** Where there is a reply. */
  forEach(each: (reply: string) => void): void
}

export function createUnacknowledged(): Unacknowledged {
  let replies: string[] = []
  let places: number[] = []
  let head = 0
  let lastReply: string | null = null

  return {
    add(reply, place) {
      replies.push(reply)
      places.push(place)
    },
    acknowledge(place) {
      while (head < places.length && places[head]! <= place) {
        if (replies[head] !== '') lastReply = replies[head]!
        head += 1
      }
      if (head * 2 < places.length) return
      replies = replies.slice(head)
      places = places.slice(head)
      head = 0
    },
    lastReply: () => lastReply,
    forEach(each) {
      for (let at = head; at < replies.length; at += 1) if (replies[at] !== '') each(replies[at]!)
    },
  }
}
