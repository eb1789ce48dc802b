// client-budget.ts: the messages and bytes per second of one client. A client beyond its rate is not read
// until its budget allows it again: TCP then slows it down, and its acknowledgements come later. Nothing is
// dropped, and its connection stays open. Messages of QoS 0 count like others: not reading delays them too.
//
// Both budgets are token buckets that hold one second. They are checked before each read, so one read of at
// most 64 KiB may overdraw them; the debt is paid by a longer pause, so the rate holds on average. They are
// filled only when they are spent, so a message costs two subtractions. A client that was silent may
// therefore send those of two seconds at once.

import type { CancelTimer, Clock } from '../../../std/clock.ts'

export type ClientBudgetOptions = { messagesPerS: number; bytesPerS: number }

export type BudgetLimit = 'max_messages_per_s' | 'max_bytes_per_s'

/** Of one connection. */
export type ClientBudget = {
  /** A message came, with these bytes in topic and payload. */
  count(bytes: number): void
  /** True: read nothing. `resume` is called when its budget allows reading. */
  isSpent(): boolean
  close(): void
}

/** So that a client beyond its rate costs no timer for each of its packets. */
const pauseMinMs = 50

export function createClientBudget(
  { clock, pausing, resume }: { clock: Clock; pausing: (limit: BudgetLimit) => void; resume: () => void },
  { messagesPerS, bytesPerS }: ClientBudgetOptions,
): ClientBudget {
  let messages = messagesPerS
  let bytes = bytesPerS
  let filledAtMs = clock.monotonic()
  let cancelPause: CancelTimer | null = null
  return {
    count(size) {
      messages -= 1
      bytes -= size
    },
    isSpent: () => isInDebt() && mustPause(),
    close: () => cancelPause?.(),
  }

  /** Less than one is a rounding error. */
  function isInDebt(): boolean {
    return messages <= -1 || bytes <= -1
  }

  function mustPause(): boolean {
    if (cancelPause !== null) return true
    fill()
    if (!isInDebt()) return false
    const messageDebtMs = (-messages / messagesPerS) * 1000
    const byteDebtMs = (-bytes / bytesPerS) * 1000
    pausing(messageDebtMs > byteDebtMs ? 'max_messages_per_s' : 'max_bytes_per_s')
    cancelPause = clock.after(Math.max(pauseMinMs, messageDebtMs, byteDebtMs), () => {
      cancelPause = null
      fill()
      resume()
    })
    return true
  }

  function fill(): void {
    const now = clock.monotonic()
    const seconds = (now - filledAtMs) / 1000
    filledAtMs = now
    messages = Math.min(messagesPerS, messages + seconds * messagesPerS)
    bytes = Math.min(bytesPerS, bytes + seconds * bytesPerS)
  }
}
