// session.ts: the spool between one opening of the store and its loss. After a failed write the handle lies, so
// an epoch ends with it: everything in memory is thrown away and read again from what is durable.

import { codeOf, GatewayError } from '../std/gateway-error.ts'
import type { Clock } from '../std/clock.ts'
import type { DeadLetter } from '../domain/dead-letter.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId, ProviderName } from '../domain/ids.ts'
import type { KeptMessage } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Store } from '../storage/storage.ts'
import { createAudit } from './recovery/conservation-audit.ts'
import { createBatchWork, type BatchWork } from './batches/batches.ts'
import { createCommitter, type Committer } from './chunk-log/committer.ts'
import { createCompactor } from './chunk-log/compactor.ts'
import { createDesk } from './kept/entry-reservations.ts'
import { dropDrained } from './chunk-log/lane-cleanup.ts'
import { createExchange } from './kept/exchange.ts'
import { createGroup, type GroupOptions, type IntakeGroup } from './chunk-log/group.ts'
import { closedFault, explainDamage, explainRead, explainWrite } from './spool-errors.ts'
import type { ReadDeps } from './kept/kept-message-reader.ts'
import { seenKey } from './chunk-log/key-layout.ts'
import { newParts } from './kept/state-entries.ts'
import { createRecentChunks } from './chunk-log/recent-chunks.ts'
import { recover } from './recovery/recovery.ts'
import { forgetReceipts, newReceipts, readReceipts, type NumberedReceipt } from './chunk-log/receipt-queue.ts'
import { rotate } from './chunk-log/lane-rotation.ts'
import { refill } from './batches/seal.ts'
import type { Ack, Exchange, IsLate } from './spool.ts'
import { noteForgotten, type SpoolCounters, type SpoolState } from './session-state.ts'
import { createWindow, type WindowOptions } from './chunk-log/dedup-window.ts'

export type EpochDeps = {
  store: Store
  clock: Clock
  newId: NewId
  random: () => number
  emit: Emit
  counters: SpoolCounters
  isLate?: IsLate
  /** After every durable write, and when the state of congestion changes. */
  changed: () => void
  /** The store failed: this epoch is over. `unawaited` messages were lost with it (QoS 0). */
  lost: (fault: GatewayError, unawaited: number) => void
}

export type EpochOptions = {
  window: WindowOptions
  group: GroupOptions
  groupBytesMax: number
  uncommittedBytesMax: number
  recentBytesMax: number
  backfillLanesMax: number
  receiptBytesMax: number
}

export type Epoch = BatchWork & {
  readonly state: SpoolState
  readonly committer: Committer
  append(payload: MappedPayload, dup: boolean): 'stored' | 'duplicate'
  bury(letter: DeadLetter, windowKey: string | null, dup: boolean): 'stored' | 'duplicate'
  note(windowKey: string, dup: boolean): 'stored' | 'duplicate'
  remember(name: string, value: Buffer | null): void
  keep(message: KeptMessage, windowKey: string, dup: boolean): 'stored' | 'duplicate'
  endMessage(ack: Ack | null): void
  exchange(exchange: Exchange): Promise<void>
  /** What reads kept messages, dead letters and state from the database. */
  readonly reader: ReadDeps
  /** What to throw after a failed read, which ends the epoch unless only a block is damaged. */
  blame(error: unknown): unknown
  rotate(provider: ProviderName): Promise<boolean>
  receipts(options: { limit: number }): Promise<readonly NumberedReceipt[]>
  forgetReceipts(n: number): Promise<void>
  /** Forgets expired keys of the dedup window although no message comes, and lanes that are drained for good. */
  forget(): Promise<void>
  /** Counts lanes, shelves and state by walking over them; reports where the sums disagree. */
  verify(signal: AbortSignal): Promise<void>
  /** Commits what is open and closes the store. */
  close(): Promise<void>
}

/** Forgetting without traffic goes in writes of this many records. */
const forgottenPerRunMax = 10_000

export async function openEpoch(deps: EpochDeps, options: EpochOptions): Promise<Epoch> {
  const { store, clock, newId, emit, counters } = deps
  const state: SpoolState = {
    store,
    clock,
    newId,
    emit,
    isLate: deps.isLate ?? (() => false),
    counters,
    window: createWindow(options.window),
    recent: createRecentChunks({ bytesMax: options.recentBytesMax }),
    lanes: new Map(),
    liveLanes: new Map(),
    nextLane: 1,
    nextSeen: 0,
    letters: { letters: 0, bytes: 0 },
    lettersDrainedBytes: 0,
    nextLetter: Math.floor(deps.random() * 2 ** 40),
    openBytes: 0,
    parts: newParts(),
    receipts: newReceipts(),
    shelves: new Map(),
    keptBytes: { quarantine: 0, deferred: 0 },
    forgotten: { records: 0, last: 0 },
  }
  await recover(state, { windowMs: options.window.windowMs })
  let group: IntakeGroup
  const makeGroup = () => (group = createGroup(state, options.group))
  const committer = createCommitter(
    { store, makeGroup, explain: explainWrite, changed: deps.changed, failed: deps.lost },
    options,
  )
  const compactor = createCompactor({ state, failed: (error) => blame(error) })
  const batchWork = createBatchWork({ state, committer, compactor }, options)
  const desk = createDesk()
  const exchangeNow = createExchange({ state, committer, desk, group: () => group })
  // The age of the oldest payload is known from the start.
  for (const lane of state.lanes.values()) {
    if (lane.refsEnd < lane.committedSeq) await refill(state, committer, lane)
  }
  return {
    state,
    committer,
    append,
    bury,
    note,
    remember: (name, value) => group.remember(name, value),
    keep,
    exchange,
    reader: { state, committer, desk },
    blame,
    endMessage: (ack) => committer.endMessage(ack),
    ...work(),
    forget,
    verify: createAudit({ state, committer, blame }),
    close,
  }

  function append(payload: MappedPayload, dup: boolean): 'stored' | 'duplicate' {
    if (isCopy(payload.windowKey, payload.duplicateRule === 'always' || dup)) return 'duplicate'
    group.addKey()
    group.append(payload)
    return 'stored'
  }

  function bury(letter: DeadLetter, windowKey: string | null, dup: boolean): 'stored' | 'duplicate' {
    if (windowKey !== null) {
      if (isCopy(windowKey, dup)) return 'duplicate'
      group.addKey()
    }
    group.bury(letter)
    return 'stored'
  }

  function note(windowKey: string, dup: boolean): 'stored' | 'duplicate' {
    if (isCopy(windowKey, dup)) return 'duplicate'
    group.addKey()
    return 'stored'
  }

  function keep(message: KeptMessage, windowKey: string, dup: boolean): 'stored' | 'duplicate' {
    if (note(windowKey, dup) === 'duplicate') return 'duplicate'
    group.keep(message)
    return 'stored'
  }

  async function exchange(exchange: Exchange): Promise<void> {
    await blamed(exchangeNow(exchange))
    compactor.considerTaken()
  }

  /** Leaves the key in the window's scratch, for `addKey`. */
  function isCopy(windowKey: string, judged: boolean): boolean {
    state.window.load(windowKey)
    return judged && state.window.has()
  }

  function work(): BatchWork & Pick<Epoch, 'rotate' | 'receipts' | 'forgetReceipts'> {
    return {
      seal: (id, limits) => blamed(batchWork.seal(id, limits)),
      load: (batch) => blamed(batchWork.load(batch)),
      rotate: (provider) => blamed(rotate(state, committer, provider, options)),
      reseal: (batch, counts) => blamed(batchWork.reseal(batch, counts)),
      setOperation: (batch, to) => blamed(batchWork.setOperation(batch, to)),
      settle: (batch, settlement, receipt) => blamed(batchWork.settle(batch, settlement, receipt)),
      receipts: (limits) => blamed(readReceipts(state.receipts, store, limits)),
      forgetReceipts: (n) => blamed(forgetReceiptsNow(n)),
    }
  }

  async function forgetReceiptsNow(n: number): Promise<void> {
    await forgetReceipts(state.receipts, committer, n)
    compactor.considerReceipts()
  }

  async function forget(): Promise<void> {
    const numbers = state.window.expire(clock.monotonic(), forgottenPerRunMax)
    noteForgotten(state, numbers)
    if (numbers.length > 0) {
      await blamed(
        committer.control({
          prepare(ops) {
            for (const n of numbers) ops.push({ type: 'del', key: seenKey(n) })
          },
          committed() {},
        }),
      )
    }
    compactor.considerSeen()
    await blamed(dropDrained(state, committer))
  }

  async function close(): Promise<void> {
    await committer.idle()
    committer.fail(closedFault())
    await compactor.idle()
    await store.close()
  }

  async function blamed<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      throw blame(error)
    }
  }

  /** A failed read is the store's failure as well; a mistake of ours is thrown on as it is. */
  function blame(error: unknown): unknown {
    const code = codeOf(error)
    if (error instanceof GatewayError || code === undefined) return error
    // It was closed under a read.
    if (code === 'LEVEL_DATABASE_NOT_OPEN' || code === 'LEVEL_ITERATOR_NOT_OPEN') return closedFault()
    // To open the store anew would not mend it, and all the rest of the spool goes on.
    if (code === 'LEVEL_CORRUPTION') return explainDamage(error)
    const fault = explainRead(error)
    committer.fail(fault)
    return fault
  }
}
