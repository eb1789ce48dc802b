// mapping-state.ts: the mapper in force and its state: messages that were taken as parts of a payload that is
// not complete yet.
//
// The state is committed to the spool with the message that changed it, so it can always be read back: at the
// start, after the store was lost (memory was ahead of the disk then), and for a new mapping. What closes by
// time goes into the open group like a message: its payloads are added and its state is deleted in one write.
// While the spool accepts no messages, no record closes; open messages wait on disk.
//
// After a reload a message with DUP may have been stored under the mapping before: its payloads have other
// names now. So the last mappings are kept for a while, without state, and the dedup window is asked for
// their names.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { MapResult, Mapper } from '../../mapping/mapping.ts'
import { mapperFailed, refusedMessage } from '../remap/mapper-failure.ts'
import type { IntakeMapper, IntakeSpool, ReceivedMessage } from '../types.ts'
import type { ResultRouter } from './result-router.ts'
import { isStored } from './untimed-resends.ts'

export type MappingState = {
  map(message: ReceivedMessage): MapResult
  /** Of the mapper in force. */
  currentOwnerOf(): ((topic: string) => string | null) | null
  /** A part was taken: something may close earlier than was known. */
  partAdded(): void
  /** Rejects where the store is lost meanwhile. Nothing may be mapped until it resolves. */
  restore(): Promise<void>
  /** The same for a mapping that takes over. `before`: opens the one that it replaces. */
  swap(mapper: IntakeMapper, before?: () => OldMapper): Promise<void>
  /** Whether all of the message was stored under a mapping that was in force before. */
  wasStoredBefore(message: ReceivedMessage): boolean
  counters(): { openParts: number; carried: number }
  close(): void
}

type OldMapper = Pick<Mapper, 'map'>

/** Its mapper is opened at the first message that asks for it. */
type Old = { readonly open: () => OldMapper; mapper: OldMapper | null; cancel: CancelTimer }

type Deps = {
  spool: Pick<
    IntakeSpool,
    'holdReason' | 'congested' | 'endMessage' | 'stateEntries' | 'exchange' | 'hasWindowKey'
  >
  clock: Clock
  ourTime: Pick<OurTime, 'now'>
  router: Pick<ResultRouter, 'routeClosed'>
}

/** The wall clock may be set, so what is due is checked again after this time. */
const checkEveryMs = 1000
/** As long as the dedup window is by default. */
const oldForMs = 600_000
/** A device table may be saved several times. */
const oldMax = 4

export function createMappingState(
  { spool, clock, ourTime, router }: Deps,
  first: IntakeMapper,
): MappingState {
  let mapper = first
  let carried = 0
  let armedFor = Number.POSITIVE_INFINITY
  let cancel: CancelTimer = () => {}
  let closed = false
  let olds: Old[] = []
  return {
    map,
    currentOwnerOf() {
      return mapper.ownerOf ?? null
    },
    partAdded: arm,
    restore,
    swap,
    wasStoredBefore,
    counters,
    close,
  }

  function map(message: ReceivedMessage): MapResult {
    if (message.violation) return { kind: 'ignored', source: '', reason: message.violation }
    if (message.refusal) return refusedMessage(message, message.refusal)
    try {
      return mapper.map(message)
    } catch (error) {
      return mapperFailed(message, error)
    }
  }

  function arm(): void {
    const at = mapper.nextTickAt()
    if (closed || at === null || at >= armedFor) return
    cancel()
    armedFor = at
    const delayMs =
      spool.holdReason() === null && !spool.congested() ? Math.max(0, at - ourTime.now()) : checkEveryMs
    cancel = clock.after(Math.min(delayMs, checkEveryMs), () => {
      armedFor = Number.POSITIVE_INFINITY
      tick()
      arm()
    })
  }

  function tick(): void {
    // While there is no room, too, for the dead letters of records that cannot be mapped.
    if (spool.holdReason() !== null || spool.congested()) return
    const applied = mapper.tick(ourTime.now())
    if (applied === null) return
    router.routeClosed(applied)
    // The parts have their acks already; where this write fails, all state is read again.
    spool.endMessage(() => {}, Infinity)
  }

  async function restore(): Promise<void> {
    await readInto(mapper)
  }

  async function swap(next: IntakeMapper, before?: () => OldMapper): Promise<void> {
    // Commits the open group: after it, all state can be read.
    await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: [] })
    await readInto(next)
    if (before === undefined) return
    const old: Old = { open: before, mapper: null, cancel: () => {} }
    old.cancel = clock.after(oldForMs, () => (olds = olds.filter((one) => one !== old)))
    if (olds.length === oldMax) olds.shift()?.cancel()
    olds.push(old)
  }

  function wasStoredBefore(message: ReceivedMessage): boolean {
    if (message.violation || message.refusal) return false
    return olds.some((old) => {
      try {
        old.mapper ??= old.open()
        return isStored(old.mapper.map(message, false), spool)
      } catch {
        // A fault of the gateway. The mapping in force decides.
        return false
      }
    })
  }

  async function readInto(next: IntakeMapper): Promise<void> {
    const entries: [string, Buffer][] = []
    for await (const { key, value } of spool.stateEntries()) entries.push([key, value])
    const before = mapper.openParts()
    next.restore(entries)
    mapper = next
    carried += next.openParts() - before
    cancel()
    armedFor = Number.POSITIVE_INFINITY
    arm()
  }

  function counters(): { openParts: number; carried: number } {
    return { openParts: mapper.openParts(), carried }
  }

  function close(): void {
    closed = true
    cancel()
    for (const old of olds) old.cancel()
  }
}
