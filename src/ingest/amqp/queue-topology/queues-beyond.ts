// queues-beyond.ts: queues of this prefix beyond `partitions`. RabbitMQ goes on to give them messages where a
// larger number was declared before, or is declared by another gateway now, and no gateway with this number
// takes them.

import type { Clock } from '../../../std/clock.ts'
import type { AmqpConnection } from '../amqp-connection.ts'
import type { SourceRisks } from '../../message-sources/source-risks.ts'
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
  { clock, risks }: { clock: Clock; risks: SourceRisks },
  options: AmqpOptions,
): BeyondWatch {
  let lookedAtMs: number | null = null
  let isFound = false

  return {
    async look(connection) {
      const pauseMs = isFound ? againMs : everyMs
      if (lookedAtMs !== null && clock.monotonic() - lookedAtMs < pauseMs) return
      lookedAtMs = clock.monotonic()
      try {
        const found = await findQueuesBeyond(connection, options)
        isFound = found !== null
        const finding = found === null ? null : { clientId: options.member, ...found }
        risks.set('partition_left', options.prefix, finding)
      } catch {
        // The connection has ended; the next one looks.
        lookedAtMs = null
      }
    },
  }
}
