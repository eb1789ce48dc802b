// memory-intake-spool.ts: the part of the spool that takes messages in, in memory, with commits that a test makes.

import type { DeadLetter } from '../../src/domain/dead-letter.ts'
import type { KeptMessage } from '../../src/domain/message.ts'
import type { HoldReason } from '../../src/domain/event.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import type { IntakeSpool } from '../../src/ingest/types.ts'
import { GatewayError } from '../../src/std/gateway-error.ts'
import type { Ack, SpoolListener } from '../../src/spool/spool.ts'
import { closedFault } from '../../src/spool/spool-errors.ts'

export type MemoryIntakeSpool = IntakeSpool & {
  /** What was committed, in order. */
  readonly payloads: readonly MappedPayload[]
  readonly deadLetters: readonly DeadLetter[]
  readonly kept: readonly KeptMessage[]
  /** Messages that wait for the next commit. */
  readonly open: number
  /** Resolves when `endMessage` was called `count` times since the start. */
  ended(count: number): Promise<void>
  /** Makes the open group durable and gives its acks. */
  commit(): void
  /** Loses the open group: every ack of it gets `fault`. */
  fail(fault: GatewayError): void
  /** The store is lost, until reopen(). */
  lose(): void
  reopen(): void
  setHold(reason: HoldReason | null): void
  setBusy(busy: boolean): void
  setCongested(congested: boolean): void
  setDeadLettersFull(full: boolean): void
}

type Group = {
  payloads: MappedPayload[]
  deadLetters: DeadLetter[]
  acks: (Ack | null)[]
  kept: KeptMessage[]
  notes: Buffer[]
  sessions: Map<string, Buffer | null>
}

function newGroup(): Group {
  return { payloads: [], deadLetters: [], acks: [], kept: [], notes: [], sessions: new Map() }
}

/** `auto` commits automatically, once per turn of the event loop. */
export function createMemoryIntakeSpool(options: { commits: 'by hand' | 'auto' }): MemoryIntakeSpool {
  const payloads: MappedPayload[] = []
  const deadLetters: DeadLetter[] = []
  const kept: KeptMessage[] = []
  const listeners = new Set<SpoolListener>()
  const window = new Set<string>()
  const journal: Buffer[] = []
  const sessions = new Map<string, Buffer>()
  let group = newGroup()
  let endedCount = 0
  let waiters: { count: number; resolve: () => void }[] = []
  let hold: HoldReason | null = null
  let busy = false
  let commits = 0
  let congested = false
  let deadLettersFull = false
  let lost = false

  /** As the spool does: nothing may be put into it while the store is lost. */
  function requireStore(): void {
    if (lost) throw closedFault()
  }

  function known(key: string): boolean {
    if (window.has(key)) return true
    window.add(key)
    return false
  }

  function endMessage(ack: Ack | null): void {
    requireStore()
    group.acks.push(ack)
    endedCount += 1
    if (options.commits === 'auto' && group.acks.length === 1) setImmediate(commit)
    const met = waiters.filter(({ count }) => count <= endedCount)
    waiters = waiters.filter(({ count }) => count > endedCount)
    for (const { resolve } of met) resolve()
  }

  function take(): Group {
    const taken = group
    group = newGroup()
    return taken
  }

  function commit(): void {
    const taken = take()
    for (const payload of taken.payloads) payloads.push(payload)
    for (const deadLetter of taken.deadLetters) deadLetters.push(deadLetter)
    for (const message of taken.kept) kept.push(message)
    for (const note of taken.notes) journal.push(note)
    for (const [key, value] of taken.sessions) {
      if (value === null) sessions.delete(key)
      else sessions.set(key, value)
    }
    commits += 1
    for (const ack of taken.acks) ack?.(null)
  }

  function tell(): void {
    for (const listener of listeners) listener.intakeChanged?.()
  }

  return {
    payloads,
    deadLetters,
    kept,
    get open() {
      return group.acks.length
    },
    holdReason() {
      return hold
    },
    busy() {
      return busy
    },
    commits() {
      return commits
    },
    congested() {
      return congested
    },
    isFull: (store) => store === 'dead_letters' && deadLettersFull,
    holds: (store) => store === 'dead_letters' && deadLettersFull,
    append(payload) {
      requireStore()
      if (payload.duplicateRule === 'always' && known(payload.windowKey)) return 'duplicate'
      group.payloads.push(payload)
      return 'stored'
    },
    addDeadLetter(deadLetter) {
      group.deadLetters.push(deadLetter)
    },
    addWindowKey(windowKey) {
      return known(windowKey) ? 'duplicate' : 'stored'
    },
    hasWindowKey: (windowKey) => window.has(windowKey),
    putState() {},
    putLateState() {},
    note(entry) {
      requireStore()
      group.notes.push(Buffer.from(entry))
    },
    putSession(key, value) {
      requireStore()
      group.sessions.set(key, value)
    },
    keepMessage(message) {
      group.kept.push(message)
    },
    exchange: () => Promise.resolve({ duplicates: 0 }),
    async *stateEntries() {},
    async *journal() {
      for (const entries of journal) yield { ageMs: 0, entries }
    },
    async *sessionRecords() {
      for (const [key, value] of sessions) yield { key, value }
    },
    endMessage,
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    ended(count) {
      if (endedCount >= count) return Promise.resolve()
      return new Promise((resolve) => {
        waiters.push({ count, resolve })
      })
    },
    commit,
    fail(fault) {
      const { acks, payloads } = take()
      for (const { windowKey } of payloads) window.delete(windowKey)
      for (const ack of acks) ack?.(fault)
    },
    lose() {
      lost = true
      hold = 'store_lost'
      for (const listener of listeners) listener.storeLost?.()
    },
    reopen() {
      lost = false
      hold = null
      for (const listener of listeners) listener.storeReopened?.()
    },
    setHold(reason) {
      hold = reason
      tell()
    },
    setDeadLettersFull(full) {
      deadLettersFull = full
      tell()
    },
    setBusy(now) {
      busy = now
      tell()
    },
    setCongested(now) {
      congested = now
      tell()
    },
  }
}

/** One that commits by itself. */
export const auto = () => createMemoryIntakeSpool({ commits: 'auto' })

/** One whose commits the test makes. */
export const byHand = () => createMemoryIntakeSpool({ commits: 'by hand' })

/** What a failed write gives to the acknowledgements of its group. */
export function spoolWriteFault(): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', { what: 'It failed.', why: 'No.', act: 'Mend it.' })
}
