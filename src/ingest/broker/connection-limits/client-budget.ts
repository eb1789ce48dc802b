// client-budget.ts: the messages, bytes and time of one client per second. A client beyond it is not read
// until its budget allows it again: TCP then slows it down, and its acknowledgements come later. Nothing is
// dropped, and its connection stays open. Messages of QoS 0 count like others: not reading delays them too.
//
// The first two are token buckets that hold one second. They are checked before each read, so one read of at
// most 64 KiB may overdraw them; the debt is paid by a longer pause, so the rate holds on average. They are
// filled only when they are spent, so a message costs two subtractions. A client that was silent may
// therefore send those of two seconds at once.
//
// The time is that of mapping and storing its messages. Its bucket holds two milliseconds, which are hundreds
// of usual messages or less than one that takes long. It is checked after each message; a client that has
// spent it again and again waits for its turn (mapping-turns.ts).

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { MappingTurns, TurnTaker } from './mapping-turns.ts'

export type ClientBudgetOptions = { messagesPerS: number; bytesPerS: number }

export type BudgetLimit = 'max_messages_per_s' | 'max_bytes_per_s' | 'mapping_time'

/** Of one connection. */
export type ClientBudget = {
  /** A message came, with these bytes in topic and payload. */
  count(bytes: number): void
  /** Charges the client for the time, in ms, that mapping and storing its last message took. */
  countTime(ms: number): void
  /** True: no message may be read before isSpent() was asked. */
  isTimeSpent(): boolean
  /** Messages that may be read without asking isTimeSpent() after each. */
  messagesAtOnce(): number
  /** True: read nothing. `resumeReading` is called when its budget allows reading. */
  isSpent(): boolean
  close(): void
}

/** So that a client beyond its rate costs no timer for each of its packets. */
const pauseMinMs = 50
/** Within this time half of what its messages took is forgotten. */
const recentHalfMs = 2000
/** A client below it does not wait: its message may have had a garbage collection in it. */
const recentFreeMs = 25
/** Shorter waits lately are not reported, nor are the first ones: the machine may have been slow. */
const noticedMs = 1000
const unnoticedWaits = 2
/** Mean time of the last messages from which on they are said to take long; usual ones take a hundredth. */
const slowMessageMs = 1

/** Of each millisecond. A bridge with 30,000 usual messages per second is below it. */
const timeShare = 0.5
const timeBurstMs = 2
/** After the time was spent, so many messages are read one by one. */
const carefulMessages = 256

type Deps = {
  clock: Clock
  pausing: (limit: BudgetLimit, name: string) => void
  /** Of the client, for `pausing`. */
  name: string
  reader: { resumeReading(): void }
  turns: MappingTurns
}

export function createClientBudget(deps: Deps, options: ClientBudgetOptions): ClientBudget {
  return new Budget(deps, options)
}

class Budget implements ClientBudget, TurnTaker {
  recentMs = 0
  private readonly deps: Deps
  private readonly options: ClientBudgetOptions
  private messages: number
  private bytes: number
  private timeMs = timeBurstMs
  private waitsForTurn = false
  /** Waits that followed each other. */
  private waits = 0
  /** What they took since the last report; half of it is forgotten like that of `recentMs`. */
  private waitedMs = 0
  /** When the time was spent last. */
  private spentAtMs = 0
  private carefulLeft = 0
  /** Of about the last 16 messages. */
  private meanMs = 0
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

  countTime(ms: number): void {
    if (this.carefulLeft > 0) this.carefulLeft -= 1
    this.meanMs += (ms - this.meanMs) / 16
    // Filled before it is spent: a message after a silence must not be free.
    if (this.timeMs < ms) this.fill()
    this.timeMs -= ms
    if (this.timeMs >= 0) return
    const usedMs = timeBurstMs - this.timeMs
    const now = this.deps.clock.monotonic()
    if (now - this.spentAtMs > 2 * recentHalfMs) this.waits = 0
    const remembered = 2 ** ((this.spentAtMs - now) / recentHalfMs)
    this.recentMs = this.recentMs * remembered + usedMs
    this.waitedMs *= remembered
    this.spentAtMs = now
    this.timeMs = 0
    if (this.recentMs < recentFreeMs) return
    this.waitsForTurn = true
    this.waits += 1
    this.carefulLeft = carefulMessages
    this.deps.turns.wait(this, usedMs)
  }

  turnCame(): void {
    const { clock, pausing, name, reader } = this.deps
    this.waitsForTurn = false
    this.waitedMs += clock.monotonic() - this.spentAtMs
    // After a start a backlog of usual messages waits, too, until its code is compiled: no fault of theirs.
    if (this.waits > unnoticedWaits && this.waitedMs >= noticedMs && this.meanMs >= slowMessageMs) {
      this.waitedMs = 0
      pausing('mapping_time', name)
    }
    reader.resumeReading()
  }

  isTimeSpent(): boolean {
    return this.waitsForTurn
  }

  messagesAtOnce(): number {
    return this.carefulLeft > 0 ? 1 : Number.POSITIVE_INFINITY
  }

  isSpent(): boolean {
    return this.waitsForTurn || this.cancelPause !== null || (this.isInDebt() && this.mustPause())
  }

  close(): void {
    this.cancelPause?.()
    this.deps.turns.leave(this)
  }

  /** Less than one is a rounding error. */
  private isInDebt(): boolean {
    return this.messages <= -1 || this.bytes <= -1
  }

  private mustPause(): boolean {
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
    this.timeMs = Math.min(timeBurstMs, this.timeMs + seconds * 1000 * timeShare)
  }
}
