// epoch.ts: the spool between one opening of the store and its loss. After a failed write the handle lies, so
// an epoch ends with it: everything in memory is thrown away and read again from what is durable.

import { assert } from '../std/assert.ts'
import { codeOf, GatewayError } from '../std/fault.ts'
import type { Clock } from '../std/clock.ts'
import type { DeadLetter } from '../domain/deadletter.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId } from '../domain/ids.ts'
import type { KeptMessage } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { Store } from '../storage/storage.ts'
import { createCommitter, type Committer } from './committer.ts'
import { createCompactor } from './compact.ts'
import { createDesk } from './desk.ts'
import { createExchange } from './exchange.ts'
import { createGroup, type GroupOptions, type IntakeGroup } from './group.ts'
import { closedFault, explainDamage, explainRead, explainWrite } from './faults.ts'
import type { ReadDeps } from './kept-read.ts'
import { seenKey } from './keys.ts'
import type { Lane } from './lane.ts'
import { countParts, newParts } from './parts.ts'
import { createRecentChunks } from './recent.ts'
import { recover } from './recover.ts'
import { refill, seal } from './seal.ts'
import { load, settle } from './settle.ts'
import type { Ack, Batch, Exchange, LoadedBatch, SealLimits } from './spool.ts'
import { noteForgotten, type SpoolCounters, type SpoolState } from './state.ts'
import { quietly, walk, walkedLane, walkedShelf, type WalkDeps, type Walked } from './verify.ts'
import { createWindow, type WindowOptions } from './window.ts'

export type EpochDeps = {
  store: Store
  clock: Clock
  newId: NewId
  random: () => number
  emit: Emit
  counters: SpoolCounters
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
}

export type Epoch = {
  readonly state: SpoolState
  readonly committer: Committer
  append(payload: MappedPayload, dup: boolean): 'stored' | 'copy'
  bury(letter: DeadLetter, windowKey: string | null, dup: boolean): 'stored' | 'copy'
  note(windowKey: string, dup: boolean): 'stored' | 'copy'
  remember(name: string, value: Buffer | null): void
  keep(message: KeptMessage, windowKey: string, dup: boolean): 'stored' | 'copy'
  endMessage(ack: Ack | null): void
  exchange(exchange: Exchange): Promise<void>
  /** What reads kept messages, dead letters and state from the database. */
  readonly reader: ReadDeps
  /** What to throw after a failed read, which ends the epoch unless only a block is damaged. */
  blame(error: unknown): unknown
  seal(lane: Batch['lane'], limits: SealLimits): Promise<Batch | null>
  load(batch: Batch): Promise<LoadedBatch>
  settle(batch: Batch, settlement: Settlement): Promise<void>
  /** Forgets expired keys of the dedup window although no message comes. */
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
    verify,
    close,
  }

  function append(payload: MappedPayload, dup: boolean): 'stored' | 'copy' {
    if (isCopy(payload.windowKey, payload.copyRule === 'always' || dup)) return 'copy'
    group.addKey()
    group.append(payload)
    return 'stored'
  }

  function bury(letter: DeadLetter, windowKey: string | null, dup: boolean): 'stored' | 'copy' {
    if (windowKey !== null) {
      if (isCopy(windowKey, dup)) return 'copy'
      group.addKey()
    }
    group.bury(letter)
    return 'stored'
  }

  function note(windowKey: string, dup: boolean): 'stored' | 'copy' {
    if (isCopy(windowKey, dup)) return 'copy'
    group.addKey()
    return 'stored'
  }

  function keep(message: KeptMessage, windowKey: string, dup: boolean): 'stored' | 'copy' {
    if (note(windowKey, dup) === 'copy') return 'copy'
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

  function work(): Pick<Epoch, 'seal' | 'load' | 'settle'> {
    return {
      seal: (id, limits) => blamed(seal(state, committer, laneOf(id), limits)),
      load: (batch) => blamed(loadBatch(batch)),
      settle: (batch, settlement) => blamed(settleBatch(batch, settlement)),
    }
  }

  function laneOf(id: Batch['lane']): Lane {
    const lane = state.lanes.get(id)
    assert(lane !== undefined, `lane ${id} exists`)
    return lane
  }

  function claimOf(batch: Batch) {
    const claim = laneOf(batch.lane).claims.get(batch.firstSeq)
    assert(claim?.batch.batchId === batch.batchId, 'the batch is sealed and not settled yet')
    return claim
  }

  async function loadBatch(batch: Batch): Promise<LoadedBatch> {
    return load(state, committer, laneOf(batch.lane), claimOf(batch))
  }

  async function settleBatch(batch: Batch, settlement: Settlement): Promise<void> {
    const claim = claimOf(batch)
    assert(!claim.settling, 'a batch is settled once')
    claim.settling = true
    const lane = laneOf(batch.lane)
    let content = null
    if (settlement.fates !== 'all delivered') {
      const loaded = await loadBatch(batch)
      assert(loaded.kind === 'content', 'a batch that was sent can be read')
      content = loaded.content
    }
    await settle(state, committer, lane, claim, settlement, content)
    compactor.consider(lane)
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
  }

  async function verify(signal: AbortSignal): Promise<void> {
    const deps: WalkDeps = { store, clock, signal, quiet: (look) => committer.quiet(look) }
    for (const lane of state.lanes.values()) {
      const count = await walked(deps, walkedLane(lane))
      if (count !== null && count.appended !== count.settled + count.open)
        emit({ kind: 'conservation_broken', lane: lane.id, ...count })
    }
    for (const shelf of state.shelves.values()) {
      const count = await walked(deps, walkedShelf(shelf))
      if (count !== null && count.appended !== count.settled + count.open)
        unbalanced('kept', shelf.name, count.appended - count.settled, count.open)
    }
    const seen = await quietly(deps, () => ({ ...state.parts.written, found: countParts(store) }))
    const found = seen === null ? null : await readable(seen.found)
    if (seen === null || found === null) return
    if (seen.entries !== found.entries || seen.bytes !== found.bytes)
      unbalanced('state', '', seen.entries, found.entries)
  }

  function walked(deps: WalkDeps, over: Walked) {
    return deps.signal.aborted ? null : readable(walk(deps, over))
  }

  /** A damaged block is reported by whoever needs what it holds: no count is better than none of the others. */
  async function readable<Count>(count: Promise<Count | null>): Promise<Count | null> {
    try {
      return await count
    } catch (error) {
      if (codeOf(error) === 'LEVEL_CORRUPTION') return null
      throw blame(error)
    }
  }

  function unbalanced(table: 'kept' | 'state', name: string, known: number, found: number): void {
    emit({ kind: 'records_unbalanced', table, name, known, found })
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
