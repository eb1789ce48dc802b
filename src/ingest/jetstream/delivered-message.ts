// delivered-message.ts: what JetStream says of a message when it delivers it, in the subject for the answer.
// Pure; nothing is allocated per message but what the message itself needs.
//
//   $JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time, ns>.<pending>
//   $JS.ACK.<domain>.<account>.<stream>.<consumer>.<deliveries>. ... .<pending>[.<random>]

/** The object is used again for each message. */
export type Delivery = {
  deliveries: number
  /** Its place in the stream. */
  streamSeq: number
  /** Its place among all deliveries of the durable, to any client. */
  consumerSeq: number
  storedAtMs: number
  /** Messages of the partition that follow it in the stream. */
  pending: number
}

const dot = 0x2e
const zero = 0x30
const msDigits = 6
/** Tokens before the number of deliveries, in the short and in the long form. */
const shortForm = { tokens: 9, before: 4 }
const longForm = { tokens: 11, before: 6 }

/** False for what is no delivery of JetStream. */
export function readDelivery(reply: string, into: Delivery): boolean {
  if (!reply.startsWith('$JS.ACK.')) return false
  let tokens = 1
  for (let at = 0; at < reply.length; at += 1) if (reply.charCodeAt(at) === dot) tokens += 1
  const { before } = tokens === shortForm.tokens ? shortForm : longForm
  if (tokens !== shortForm.tokens && tokens < longForm.tokens) return false
  let start = 0
  for (let skipped = 0; skipped < before; skipped += 1) start = reply.indexOf('.', start) + 1
  into.deliveries = numberAt(reply, start)
  start = reply.indexOf('.', start) + 1
  into.streamSeq = numberAt(reply, start)
  start = reply.indexOf('.', start) + 1
  into.consumerSeq = numberAt(reply, start)
  start = reply.indexOf('.', start) + 1
  const end = reply.indexOf('.', start)
  into.storedAtMs = numberAt(reply, start, end - msDigits)
  into.pending = numberAt(reply, end + 1)
  return into.streamSeq > 0 && into.consumerSeq > 0
}

function numberAt(text: string, start: number, end = text.length): number {
  let number = 0
  for (let at = start; at < end; at += 1) {
    const digit = text.charCodeAt(at) - zero
    if (digit < 0 || digit > 9) break
    number = number * 10 + digit
  }
  return number
}

/** Where a message is acknowledged of which only the place is known. */
export function replySubject(
  { stream, durable }: { stream: string; durable: string },
  { streamSeq, consumerSeq }: { streamSeq: number; consumerSeq: number },
): string {
  return `$JS.ACK.${stream}.${durable}.1.${streamSeq}.${consumerSeq}.0.0`
}
