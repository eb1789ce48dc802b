// queues-beyond.ts: queues of this prefix beyond `partitions`. RabbitMQ goes on to give them messages where a
// larger number was declared before, or is declared by another gateway now, and no gateway with this number
// takes them.

import type { Clock } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'
import type { AmqpConnection } from '../amqp-connection.ts'
import { partitionQueue } from '../queue-names.ts'
import type { AmqpOptions } from '../types.ts'

/** As many as the config allows. */
const partitionsMax = 64

export type QueuesBeyond = { detail: string; act: string }

/** Null where there is none. Rejects where the connection ends. */
export async function findQueuesBeyond(
  connection: Pick<AmqpConnection, 'depthsOf'>,
  { prefix, partitions }: Pick<AmqpOptions, 'prefix' | 'partitions'>,
): Promise<QueuesBeyond | null> {
  const names = Array.from({ length: partitionsMax - partitions }, (_, index) =>
    partitionQueue(prefix, partitions + index),
  )
  const depths = await connection.depthsOf(names)
  if (depths.length === 0) return null
  const messages = depths.reduce((sum, depth) => sum + depth, 0)
  const queues = depths.length === 1 ? names[0]! : `${names[0]!} to ${names[depths.length - 1]!}`
  return {
    detail: `RabbitMQ has ${queues}, too. With partitions: ${partitions} no gateway takes the ${messages} messages there`,
    act:
      'Give all gateways the same `queue.partitions`. If it was larger before, set it back until these queues are ' +
      'empty. For fewer queues use another `queue.prefix`, and delete the former queues when they are empty.',
  }
}

export type BeyondWatch = {
  /** Where it is time. Never rejects. */
  look(connection: AmqpConnection): Promise<void>
}

/** RabbitMQ logs an error where there is no such queue, so it is not asked more often. */
const everyMs = 600_000
const againMs = 60_000

export function createBeyondWatch(
  { clock, emit }: { clock: Clock; emit: Emit },
  options: AmqpOptions,
): BeyondWatch {
  const { name: messageSource, member: clientId } = options
  let lookedAtMs: number | null = null
  let reported: string | null = null

  return {
    async look(connection) {
      const pauseMs = reported === null ? everyMs : againMs
      if (lookedAtMs !== null && clock.monotonic() - lookedAtMs < pauseMs) return
      lookedAtMs = clock.monotonic()
      try {
        const found = await findQueuesBeyond(connection, options)
        if (found !== null && found.detail !== reported)
          emit({ kind: 'message_source_at_risk', messageSource, clientId, risk: 'partition_left', ...found })
        else if (found === null && reported !== null)
          emit({ kind: 'message_source_safe', messageSource, risk: 'partition_left' })
        reported = found?.detail ?? null
      } catch {
        // The connection has ended; the next one looks.
        lookedAtMs = null
      }
    },
  }
}
