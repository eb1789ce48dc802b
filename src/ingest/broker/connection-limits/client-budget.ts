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
  /** True: read nothing. `resumeReading` is called when its budget allows reading. */
  isSpent(): boolean
  close(): void
}

/** So that a client beyond its rate costs no timer for each of its packets. */
const pauseMinMs = 50

type Deps = {
  clock: Clock
  pausing: (limit: BudgetLimit, name: string) => void
  /** Of the client, for `pausing`. */
  name: string
  reader: { resumeReading(): void }
}

export function createClientBudget(deps: Deps, options: ClientBudgetOptions): ClientBudget {
  return new Budget(deps, options)
}

class Budget implements ClientBudget {
  private readonly deps: Deps
  private readonly options: ClientBudgetOptions
  private messages: number
  private bytes: number
  private filledAtMs: number
  private cancelPause: CancelTimer | null = null

  constructor(deps: Deps, options: ClientBudgetOptions) {
    this.deps = deps
    this.options = options
    this.messages = options.messagesPerS
    this.bytes = options.bytesPerS
    this.filledAtMs = deps.clock.monotonic()
  }

  count(size: number): void {
    this.messages -= 1
    this.bytes -= size
  }

  isSpent(): boolean {
    return this.isInDebt() && this.mustPause()
  }

  close(): void {
    this.cancelPause?.()
  }

  /** Less than one is a rounding error. */
  private isInDebt(): boolean {
    return this.messages <= -1 || this.bytes <= -1
  }

  private mustPause(): boolean {
    if (this.cancelPause !== null) return true
    this.fill()
    if (!this.isInDebt()) return false
    const { clock, name, pausing, reader } = this.deps
    const { messagesPerS, bytesPerS } = this.options
    const messageDebtMs = (-this.messages / messagesPerS) * 1000
    const byteDebtMs = (-this.bytes / bytesPerS) * 1000
    pausing(messageDebtMs > byteDebtMs ? 'max_messages_per_s' : 'max_bytes_per_s', name)
    this.cancelPause = clock.after(Math.max(pauseMinMs, messageDebtMs, byteDebtMs), () => {
      this.cancelPause = null
      this.fill()
      reader.resumeReading()
    })
    return true
  }

  private fill(): void {
    const { messagesPerS, bytesPerS } = this.options
    const now = this.deps.clock.monotonic()
    const seconds = (now - this.filledAtMs) / 1000
    this.filledAtMs = now
    this.messages = Math.min(messagesPerS, this.messages + seconds * messagesPerS)
    this.bytes = Math.min(bytesPerS, this.bytes + seconds * bytesPerS)
  }
}
