// message-window.ts: how many messages of one connection may wait for their commit.

/** A class, because there is one for each connection (gate.ts). */
export class MessageWindow {
  private inFlight = 0
  private max: number
  /** A message had to wait for a place. */
  private wasFull = false

  constructor(max: number) {
    this.max = max
  }

  /** In MQTT 5 the message that is one too many is read, and refused (receive-quota.ts). */
  widen(): void {
    this.max += 1
  }

  get left(): number {
    return this.max - this.inFlight
  }

  /** Asked for a message that is next. */
  isFull(): boolean {
    if (this.inFlight < this.max) return false
    this.wasFull = true
    return true
  }

  /** Whether a message has waited since the last call. */
  takeWaiting(): boolean {
    const { wasFull } = this
    this.wasFull = false
    return wasFull
  }

  enter(): void {
    this.inFlight += 1
  }

  leave(): void {
    this.inFlight -= 1
  }
}
