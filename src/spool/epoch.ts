// epoch.ts: the spool between one opening of the store and its loss. After a failed write the handle lies, so
// an epoch ends with it: everything in memory is thrown away and read again from what is durable.

import { assert } from '../std/assert.ts'
import { codeOf, GatewayError, messageOf } from '../std/fault.ts'
import type { Clock } from '../std/clock.ts'
import type { DeadLetter } from '../domain/deadletter.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId } from '../domain/ids.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { Store } from '../storage/storage.ts'
import { createCommitter, type Committer } from './committer.ts'
import { createCompactor } from './compact.ts'
import { createGroup, type GroupOptions, type IntakeGroup } from './group.ts'
import { seenKey } from './keys.ts'
import type { Lane } from './lane.ts'
import { createRecentChunks } from './recent.ts'
import { recover } from './recover.ts'
import { refill, seal } from './seal.ts'
import { load, settle } from './settle.ts'
import type { Ack, Batch, LoadedBatch, SealLimits } from './spool.ts'
import { noteForgotten, type SpoolCounters, type SpoolState } from './state.ts'
import { walkLane } from './verify.ts'
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
  endMessage(ack: Ack | null): void
  seal(lane: Batch['lane'], limits: SealLimits): Promise<Batch | null>
  load(batch: Batch): Promise<LoadedBatch>
  settle(batch: Batch, settlement: Settlement): Promise<void>
  /** Forgets expired keys of the dedup window although no message comes. */
  forget(): Promise<void>
  /** Counts every lane by walking over it; reports where the sums disagree. */
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
    nextLetter: Math.floor(deps.random() * 2 ** 40),
    openBytes: 0,
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
  // The age of the oldest payload is known from the start.
  for (const lane of state.lanes.values()) {
    if (lane.refsEnd < lane.committedSeq) await refill(state, committer, lane)
  }
  return {
    state,
    committer,
    append,
    bury,
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
    for (const lane of state.lanes.values()) {
      if (signal.aborted) return
      await blamed(verifyLane(lane, signal))
    }
  }

  async function verifyLane(lane: Lane, signal: AbortSignal): Promise<void> {
    const count = await walkLane({ store, clock, signal, quiet: (look) => committer.quiet(look) }, lane)
    if (count === null || count.appended === count.settled + count.open) return
    emit({ kind: 'conservation_broken', lane: lane.id, ...count })
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
    if (error instanceof GatewayError || codeOf(error) === undefined) return error
    const fault = explainRead(error)
    committer.fail(fault)
    return fault
  }
}

export function closedFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'The spool takes nothing now.',
    why: 'Its store is closed, because the daemon stops or opens it anew after a failed write.',
    act: 'Nothing to do if this passes; else look for the event store_lost in the log.',
  })
}

function explainWrite(error: unknown): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', {
    what: 'A write to the spool failed.',
    why: `${messageOf(error)}.`,
    act: 'Check the disk (full, read-only, failing). Nothing of the write was acknowledged; the spool reopens by itself.',
    cause: error,
  })
}

function explainRead(error: unknown): GatewayError {
  return new GatewayError('SPOOL_WRITE_FAILED', {
    what: 'The spool cannot be read.',
    why: `${messageOf(error)}.`,
    act: 'Check the disk. The spool is closed and opened anew by itself.',
    cause: error,
  })
}
