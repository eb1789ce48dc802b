// queue-depths.ts: how many messages wait in each queue, and which of them RabbitMQ removed before a gateway
// took them: by a purge or a limit, or with a queue that was deleted (with `provision` it is declared again,
// so nothing stands still).
//
// Depth and deliveries to this gateway together only fall where messages are removed: a delivery moves one
// from here to there, what is published or given back adds one. So the highest sum until now, minus the sum
// now, is lost. RabbitMQ does not say what other gateways get. So it is looked at only between two answers
// where
//
//   no consumer is active, of any gateway, or
//   ours had messages open all the time: RabbitMQ gives none to another one then (single active consumer)
//
// What was published meanwhile hides as much: so it is a lower bound. What goes to PREFIX.dead is not lost.

import type { EngineLosses } from '../../message-sources/engine-losses.ts'

/** What RabbitMQ says of a queue: messages ready for delivery, and consumers that get them: 1 or 0. */
export type QueueDepth = { messages: number; consumers: number }

/** What this gateway has of it. */
export type QueueTakes = {
  /** The consumer; null: there is none. */
  consumer: object | null
  /** Messages that came, since the start. */
  deliveries: number
  /** Those that RabbitMQ has no acknowledgement for. */
  open: number
  /** How often there was none of them. */
  idles: number
}

type Seen = QueueTakes & QueueDepth & { highest: number }

export class QueueDepths {
  readonly #lost: EngineLosses
  readonly #seen = new Map<string, Seen>()
  readonly #missing = new Set<string>()
  /** False: the connection that asks is lost. */
  #isKnown = false

  constructor(lost: EngineLosses) {
    this.#lost = lost
  }

  depthOf(queue: string): QueueDepth | null {
    return (this.#isKnown && this.#seen.get(queue)) || null
  }

  /** `before`: when RabbitMQ was asked. `takes`: when all had arrived that it had delivered until then. */
  answered(
    queue: string,
    depth: QueueDepth,
    { before, takes }: Record<'before' | 'takes', QueueTakes>,
  ): void {
    const known = this.#seen.get(queue)
    this.#isKnown = true
    let highest = before.deliveries + depth.messages
    if (known !== undefined && isOurs(known, depth, takes)) {
      const removed = known.highest - takes.deliveries - depth.messages
      if (removed > 0) this.#lost.note(queue, removed, 'removed')
      else highest = Math.max(highest, known.highest)
    }
    this.#seen.set(queue, { ...depth, ...takes, highest })
  }

  /** RabbitMQ says that there is no such queue. */
  missing(queue: string): void {
    this.#missing.add(queue)
  }

  /** All queues exist again. */
  declared(): void {
    for (const queue of this.#missing) {
      this.#lost.note(queue, this.#seen.get(queue)?.messages ?? 0, 'deleted')
      this.#seen.delete(queue)
    }
    this.#missing.clear()
  }

  /** The connection is lost: nothing is known until the next answer. */
  unknown(): void {
    this.#isKnown = false
  }
}

/** Only this gateway can have taken messages between the two answers. */
function isOurs(known: Seen, { consumers }: QueueDepth, { consumer, open, idles }: QueueTakes): boolean {
  if (consumer !== known.consumer) return false
  if (consumer === null) return consumers === 0 && known.consumers === 0
  return open > 0 && known.open > 0 && idles === known.idles
}
