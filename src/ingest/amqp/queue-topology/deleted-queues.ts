// deleted-queues.ts: queues that were deleted while the gateway ran. With `provision` they are declared
// again, so nothing stands still; what was in them is lost, and this says how much that was.

import type { SourceRisks } from '../../message-sources/source-risks.ts'
import type { AmqpOptions } from '../types.ts'

export type DeletedQueues = {
  /** Messages that RabbitMQ had for delivery. */
  seen(queue: string, messages: number): void
  /** RabbitMQ says that there is no such queue. */
  missing(queue: string): void
  /** All queues exist again. */
  declared(): void
}

const shownForMs = 3_600_000

export function createDeletedQueues(
  { risks }: { risks: SourceRisks },
  { member: clientId }: Pick<AmqpOptions, 'member'>,
): DeletedQueues {
  const seen = new Map<string, number>()
  const missing = new Set<string>()

  function report(found: readonly { queue: string; messages: number | null }[]): void {
    const texts = found.map(({ queue, messages }) =>
      messages === null
        ? `${queue} (with an unknown number of messages)`
        : `${queue} (with ${messages} messages)`,
    )
    const detail = `RabbitMQ had lost ${texts.join(', ')}. Messages that no gateway had taken are lost; the gateway has created the queue again`
    for (const { queue } of found) risks.happened('queue_deleted', queue, { clientId, detail }, shownForMs)
  }

  return {
    seen: (queue, messages) => void seen.set(queue, messages),
    missing: (queue) => void missing.add(queue),
    declared() {
      const found = [...missing]
        .map((queue) => ({ queue, messages: seen.get(queue) ?? null }))
        .filter(({ messages }) => messages !== 0)
      for (const queue of missing) seen.set(queue, 0)
      missing.clear()
      if (found.length > 0) report(found)
    },
  }
}
