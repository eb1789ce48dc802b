// outstanding-messages.ts: which messages of a partition the stream has, which of them are outstanding at the
// durable, and how they are given back. JetStream tells how many are outstanding, and not which.
//
// They are the first ones of the partition behind the place up to which all is acknowledged, because a
// durable delivers in order. The last place that it says to have delivered is not their end: after all nodes
// were killed at once, nats-server 2.10.27 had messages outstanding behind it, which had gone to a pull that
// was lost. It did not deliver them again before `ack_wait`, and an acknowledgement of later ones covered
// them.
//
// More places than are outstanding do no harm: a NAK of a message that is not outstanding is ignored, and the
// message comes in its order.

import type { MsgRequest, StoredMsg } from '@nats-io/jetstream'
import type { Connection, ConsumerInfo } from '../nats-connection.ts'
import { replySubject } from '../delivered-message.ts'

type Where = { stream: string; filters: readonly string[] }

/** How long a NAK may take. */
const nakMs = 2000

/** The first message of the partition behind a place of the stream; null: there is none. */
export async function nextMessage(
  { jsm }: Pick<Connection, 'jsm'>,
  { stream, filters }: Where,
  behind: number,
): Promise<StoredMsg | null> {
  let first: StoredMsg | null = null
  for (const filter of filters) {
    const query = { seq: behind + 1, next_by_subj: filter } as MsgRequest
    const found = await jsm.streams.getMessage(stream, query)
    if (found !== null && (first === null || found.seq < first.seq)) first = found
  }
  return first
}

/** The places of the first messages of the partition behind a place, ascending; at most `count`. */
export async function placesBehind(
  connection: Pick<Connection, 'jsm'>,
  where: Where,
  { behind, count }: { behind: number; count: number },
): Promise<number[]> {
  const places: number[] = []
  while (places.length < count) {
    const found = await nextMessage(connection, where, places.at(-1) ?? behind)
    if (found === null) break
    places.push(found.seq)
  }
  return places
}

/** A NAK for each: they come again, before anything newer. */
export async function giveBack(
  { nc }: Pick<Connection, 'nc'>,
  { stream, durable }: { stream: string; durable: string },
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
