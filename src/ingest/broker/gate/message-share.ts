// message-share.ts: how many messages one connection may have read between two commits while the intake is
// busy. So a device that sends a message waits for about two commits, and not for all that others have sent
// before.

import type { Intake } from '../../intake/intake.ts'

export type MessageShare = {
  /** Messages that may be read now; 0 or less: none until the next commit. */
  left(): number
  /** A message was read, with a payload of `bytes`. */
  count(bytes: number): void
}

/** Enough for devices that wait for each acknowledgement. */
const messagesPerCommit = 4
/** A message counts once more for each of these. */
const bytesPerMessage = 4096

export function createMessageShare(load: Intake['load']): MessageShare {
  return new Share(load)
}

class Share implements MessageShare {
  private readonly load: Intake['load']
  private read = 0
  private commits = -1

  constructor(load: Intake['load']) {
    this.load = load
  }

  left(): number {
    const { load } = this
    if (!load.busy()) return Infinity
    if (this.commits !== load.commits()) {
      this.commits = load.commits()
      this.read = 0
    }
    return messagesPerCommit - this.read
  }

  count(bytes: number): void {
    this.read += 1 + Math.floor(bytes / bytesPerMessage)
  }
}
