// outstanding-messages.ts: which messages are outstanding at a durable, and how they are given back.
// JetStream tells how many there are, and not which.
//
// They are the first ones of the partition behind the place up to which all is acknowledged, because a
// durable delivers in order. The last place that it says to have delivered is not their end: after all nodes
// were killed at once, nats-server 2.10.27 had messages outstanding behind it, which had gone to a pull that
// was lost. It did not deliver them again before `ack_wait`, and an acknowledgement of later ones covered
// them.
//
// More places than are outstanding do no harm: a NAK of a message that is not outstanding is ignored, and the
// message comes in its order.

import type { MsgRequest } from '@nats-io/jetstream'
import type { Connection, ConsumerInfo } from '../nats-connection.ts'
import { replySubject } from '../delivered-message.ts'

type Durable = { stream: string; durable: string; filters: readonly string[] }

/** How long a NAK may take. */
const nakMs = 2000

/** The places of the first messages of the partition behind a place, ascending; at most `count`. */
export async function placesBehind(
  { jsm }: Pick<Connection, 'jsm'>,
  { stream, filters }: Omit<Durable, 'durable'>,
  { behind, count }: { behind: number; count: number },
): Promise<number[]> {
  const places: number[] = []
  for (const filter of filters) {
    for (let found = 0, seq = behind + 1; found < count; found += 1) {
      const message = await jsm.streams.getMessage(stream, { seq, next_by_subj: filter } as MsgRequest)
      if (message === null) break
      places.push(message.seq)
      seq = message.seq + 1
    }
  }
  return places.sort((one, other) => one - other).slice(0, count)
}

/** A NAK for each: they come again, before anything newer. */
export async function giveBack(
  { nc }: Pick<Connection, 'nc'>,
  { stream, durable }: Omit<Durable, 'filters'>,
  places: readonly number[],
  { delivered }: Pick<ConsumerInfo, 'delivered'>,
): Promise<void> {
  const subject = (streamSeq: number) =>
    replySubject({ stream, durable }, { streamSeq, consumerSeq: delivered.consumer_seq })
  for (const place of places.slice(0, -1)) nc.publish(subject(place), '-NAK')
  // JetStream takes them in order, and pulls in another queue: it must have taken the last one before a pull.
  const last = places.at(-1)
  if (last !== undefined) await nc.request(subject(last), '-NAK', { timeout: nakMs })
}
