// ack-order.ts: keeps PUBCOMP in its place among the acknowledgements of a connection. The intake gives
// PUBACK and PUBREC in the order of the messages. A PUBREL comes between messages: its PUBCOMP follows the
// acks of the messages before it and the write that releases its identifier, and the acks of later messages
// follow the PUBCOMP.
//
// Bounds: as many acks as messages are in flight, and `releasesMax` PUBRELs. At the bound nothing more is
// read of this connection until one of them is answered.

import type { AckHead } from './ack-writer.ts'

export type AckOrder = {
  /** A message came that requires an ack. */
  expectAck(): void
  /** `code`: 0 for a message that was taken, else the reason code of MQTT 5. */
  ack(head: AckHead, messageId: number, code: number): void
  /** A PUBREL came; `released` is called once, when its PUBCOMP may be sent. */
  expectRelease(messageId: number): { released(): void }
  readonly isFull: boolean
  /** Every ack was given. */
  readonly isIdle: boolean
}

type WaitingAck = { head: AckHead; messageId: number; code: number }
type Release = { messageId: number; done: boolean; acksBefore: number }

/** [MQTT 3.7] */
const pubcomp = 0x70

const releasesMax = 1000

export function createAckOrder(deps: {
  add: (head: number, messageId: number, code: number) => void
  /** There is room again after `isFull`. */
  resume: () => void
}): AckOrder {
  let expected = 0
  let given = 0
  let releases: Release[] = []
  let acks: WaitingAck[] = []

  function ack(head: AckHead, messageId: number, code: number): void {
    if (releases.length === 0) {
      given += 1
      deps.add(head, messageId, code)
      return
    }
    acks.push({ head, messageId, code })
    answer()
  }

  function answer(): void {
    const wasFull = releases.length >= releasesMax
    let answered = 0
    let acked = 0
    for (const { messageId, done, acksBefore } of releases) {
      for (; given < acksBefore && acked < acks.length; acked += 1) giveAck(acks[acked]!)
      if (given < acksBefore || !done) break
      deps.add(pubcomp, messageId, 0)
      answered += 1
    }
    releases = releases.slice(answered)
    if (releases.length === 0) for (; acked < acks.length; acked += 1) giveAck(acks[acked]!)
    acks = acks.slice(acked)
    if (wasFull && releases.length < releasesMax) deps.resume()
  }

  function giveAck({ head, messageId, code }: WaitingAck): void {
    given += 1
    deps.add(head, messageId, code)
  }

  return {
    expectAck() {
      expected += 1
    },
    ack,
    expectRelease(messageId) {
      const release = { messageId, done: false, acksBefore: expected }
      releases.push(release)
      return {
        released() {
          release.done = true
          answer()
        },
      }
    },
    get isFull() {
      return releases.length >= releasesMax
    },
    get isIdle() {
      return given === expected && releases.length === 0
    },
  }
}
