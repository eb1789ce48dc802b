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

type Release = { messageId: number; done: boolean; acksBefore: number }

type Ack = { head: AckHead; messageId: number; code: number }

type Deps = {
  output: { addAck(head: number, messageId: number, code: number): void }
  /** There is room again after `isFull`. */
  gate: { resumeReading(): void }
}

/** [MQTT 3.7] */
const pubcomp = 0x70

const releasesMax = 1000

/** Most connections never send QoS 2. */
const noReleases: Release[] = []
const noAcks: Ack[] = []

export function createAckOrder(deps: Deps): AckOrder {
  return new Order(deps)
}

class Order implements AckOrder {
  private readonly output: Deps['output']
  private readonly gate: Deps['gate']
  private expected = 0
  private given = 0
  private releases = noReleases
  private acks = noAcks

  constructor({ output, gate }: Deps) {
    this.output = output
    this.gate = gate
  }

  expectAck(): void {
    this.expected += 1
  }

  ack(head: AckHead, messageId: number, code: number): void {
    if (this.releases.length === 0) {
      this.given += 1
      this.output.addAck(head, messageId, code)
      return
    }
    if (this.acks === noAcks) this.acks = []
    this.acks.push({ head, messageId, code })
    this.answer()
  }

  expectRelease(messageId: number): { released(): void } {
    const release = { messageId, done: false, acksBefore: this.expected }
    if (this.releases === noReleases) this.releases = []
    this.releases.push(release)
    return {
      released: () => {
        release.done = true
        this.answer()
      },
    }
  }

  get isFull(): boolean {
    return this.releases.length >= releasesMax
  }

  get isIdle(): boolean {
    return this.given === this.expected && this.releases.length === 0
  }

  private answer(): void {
    const { acks, releases } = this
    const wasFull = this.isFull
    let answered = 0
    let acked = 0
    for (const { messageId, done, acksBefore } of releases) {
      for (; this.given < acksBefore && acked < acks.length; acked += 1) this.giveAck(acks[acked]!)
      if (this.given < acksBefore || !done) break
      this.output.addAck(pubcomp, messageId, 0)
      answered += 1
    }
    if (answered === releases.length) for (; acked < acks.length; acked += 1) this.giveAck(acks[acked]!)
    this.releases = answered === releases.length ? noReleases : releases.slice(answered)
    this.acks = acked === acks.length ? noAcks : acks.slice(acked)
    if (wasFull && !this.isFull) this.gate.resumeReading()
  }

  private giveAck({ head, messageId, code }: Ack): void {
    this.given += 1
    this.output.addAck(head, messageId, code)
  }
}
