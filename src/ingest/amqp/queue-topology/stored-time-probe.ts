// stored-time-probe.ts: whether RabbitMQ adds the time at which it got a message (its timestamp interceptor):
// a small message through a queue of this connection alone, which goes with it.

import { pause, type Clock } from '../../../std/clock.ts'
import { openChannel } from '../amqp-connection.ts'
import { storedAtHeader } from '../amqp-delivery.ts'
import { probeQueue } from '../queue-names.ts'
import type { AmqpCredentials, AmqpNode, AmqpOptions } from '../types.ts'

type Request = { options: AmqpOptions; credentials: AmqpCredentials; node: AmqpNode }

const waitMs = 5000

/** Null where it cannot be seen: no connection, no right. */
export async function probeStoredTime(
  clock: Clock,
  { options, credentials, node }: Request,
  signal: AbortSignal,
): Promise<boolean | null> {
  const queue = probeQueue(options.prefix)
  const { promise, resolve } = Promise.withResolvers<boolean | null>()
  const made = await openChannel(clock, {
    options,
    credentials,
    node,
    label: `${options.member} probe`,
    queue: null,
    ended: () => resolve(null),
  })
  if (made === null) return null
  made.opened()
  const { channel } = made
  const look = async () => {
    await channel.assertQueue(queue, { exclusive: true, autoDelete: true })
    await channel.consume(
      queue,
      (message) => resolve(message?.properties.headers?.[storedAtHeader] !== undefined),
      {
        noAck: true,
      },
    )
    channel.publish('', queue, Buffer.alloc(0))
  }
  // A channel that was closed: `ended` has it.
  look().catch(() => resolve(null))
  const limit = new AbortController()
  const either = AbortSignal.any([signal, limit.signal])
  const found = await Promise.race([promise, pause(clock, waitMs, either).then(() => null)])
  limit.abort()
  await made.close()
  return found
}
