// group.ts: the messages that become durable together: chunks under construction, their keys for the dedup
// window, entries of the journal, acks, and attachments (commit-attachments.ts). Filled once for each
// message, so it makes no promise, no closure and no copy beyond the one from text to bytes.

import type { ProviderName } from '../../domain/ids.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { addText, newChunkBuilder, type ChunkBuilder } from './chunk-codec.ts'
import type { Group } from './committer.ts'
import { expireJournal, putJournal } from '../kept/intake-journal.ts'
import { windowRecordKey } from './key-layout.ts'
import { chunkCommitted, putLane, putNewChunk, putTotals, type Lane, type WrittenChunk } from './lane.ts'
import { encodeWindowKeys, storedKeyBytes, windowKeyBytes } from './record-codec.ts'
import type { LaneRole } from '../views.ts'
import {
  openLane,
  youngestBackfill,
  type CommitAttachments,
  type ExchangedBy,
  type MessageGroup,
  type SpoolState,
} from '../session-state.ts'

/** Payloads for one lane. */
type Run = { lane: Lane; isNew: boolean; builders: ChunkBuilder[] }

/** Expired keys are deleted a few at each write. */
const expiredPerWriteMax = 64

const firstKeyBytes = 512
const firstNoteBytes = 512

/** Somewhat more than the last chunk took, so that a buffer seldom has to grow. */
function capacityFor(lane: Lane): number {
  return Math.ceil(lane.lastChunkBytes * 1.25)
}

export function createGroup(
  state: SpoolState,
  createAttachments: (state: SpoolState, group: Group) => CommitAttachments,
): MessageGroup {
  const { chunkPayloadsMax, chunkBytesMax } = state.options.group
  const runs = new Map<ProviderName, Run>()
  /** Payloads that were late on arrival. */
  const lateRuns = new Map<ProviderName, Run>()
  let lastRun: Run | null = null
  let keys = Buffer.allocUnsafe(firstKeyBytes)
  let keyCount = 0
  /** Entries of the journal; made at the first one. */
  let notes: Buffer | null = null
  let noteBytes = 0
  let attached: CommitAttachments | null = null
  let written: WrittenChunk[] = []
  let windowRecord: number | null = null

  const group: MessageGroup = {
    bytes: 0,
    acks: [],
    unawaited: 0,
    openedMs: 0,
    append,
    addKey,
    note,
    attachments: () => (attached ??= createAttachments(state, group)),
    closed: () => attached?.closed(),
    prepare,
    committed,
  }
  return group

  function append(payload: MappedPayload, by: ExchangedBy | null = null): void {
    const run = isLate(payload, by?.from ?? null) ? lateRunOf(payload.provider) : liveRunOf(payload.provider)
    let builder = run.builders[run.builders.length - 1]!
    if (builder.count > 0 && (endsBatch(run.lane) || builder.bytes >= chunkBytesMax)) {
      builder = newChunkBuilder(capacityFor(run.lane), state.buffers)
      run.builders.push(builder)
    }
    run.lane.appendedSeq += 1
    const length = addText(builder, payload.json, by?.attempts ?? payload.attempts ?? 0)
    group.bytes += length
    state.openBytes += length
  }

  /** Chunks end where full batches will: a chunk that a batch takes in part must be cut and rewritten. */
  function endsBatch(lane: Lane): boolean {
    return (lane.appendedSeq - lane.sealSeq) % chunkPayloadsMax === 0
  }

  /**
   * While our time is not known, what arrives now goes with the fresh payloads, and what was kept goes
   * behind: else the rest of a release would overtake its beginning after a restart. A dead letter always
   * goes behind: the service may refuse it again, and fresh payloads would wait for each of a thousand.
   */
  function isLate({ provider, deviceTime }: MappedPayload, from: ExchangedBy['from']): boolean {
    if (from === 'deadLetter') return true
    return deviceTime !== null && (state.isLate(provider, deviceTime) ?? from !== null)
  }

  function liveRunOf(provider: ProviderName): Run {
    if (lastRun?.lane.provider === provider) return lastRun
    let run = runs.get(provider)
    if (run === undefined) {
      run = newRun(provider, state.liveLanes.get(provider), { kind: 'live' })
      runs.set(provider, run)
    }
    lastRun = run
    return run
  }

  function lateRunOf(provider: ProviderName): Run {
    let run = lateRuns.get(provider)
    if (run === undefined) {
      run = newRun(provider, youngestBackfill(state, provider), { kind: 'backfill' })
      lateRuns.set(provider, run)
    }
    return run
  }

  function newRun(provider: ProviderName, known: Lane | undefined, role: LaneRole): Run {
    const lane = known ?? openLane(state, provider, role)
    const isNew = known === undefined
    return { lane, isNew, builders: [newChunkBuilder(capacityFor(lane), state.buffers)] }
  }

  function addKey(): void {
    state.window.renew()
    if (keyCount * storedKeyBytes === keys.length) {
      const larger = Buffer.allocUnsafe(keys.length * 2)
      keys.copy(larger)
      keys = larger
    }
    state.window.scratch.copy(keys, keyCount * storedKeyBytes, windowKeyBytes - storedKeyBytes)
    keyCount += 1
    group.bytes += storedKeyBytes
  }

  function note(entry: Buffer): void {
    notes ??= Buffer.allocUnsafe(firstNoteBytes)
    if (noteBytes + entry.length > notes.length) {
      const larger = Buffer.allocUnsafe((notes.length + entry.length) * 2)
      notes.copy(larger)
      notes = larger
    }
    entry.copy(notes, noteBytes)
    noteBytes += entry.length
    group.bytes += entry.length
  }

  function prepare(ops: StoreOp[]): void {
    const at = state.clock.now()
    for (const { lane, isNew, builders } of [...runs.values(), ...lateRuns.values()]) {
      if (isNew) putLane(lane, ops)
      for (const builder of builders) {
        const one = putNewChunk(lane, builder, at, ops)
        lane.lastChunkBytes = one.chunk.value.length
        written.push(one)
      }
      // So that lost totals are noticed, and have a copy of the provider.
      if (isNew) putTotals(lane, ops)
    }
    attached?.prepare(ops)
    prepareWindow(at, ops)
  }

  function prepareWindow(at: number, ops: StoreOp[]): void {
    const nowMs = state.clock.monotonic()
    if (keyCount > 0) {
      const n = state.nextWindowRecord
      state.nextWindowRecord += 1
      windowRecord = n
      const value = encodeWindowKeys(at, keys.subarray(0, keyCount * storedKeyBytes))
      ops.push({ type: 'put', key: windowRecordKey(n), value })
      state.window.endGroup(n, keyCount, nowMs)
    }
    expireKeys(state, nowMs, expiredPerWriteMax, ops)
    if (notes !== null) putJournal(state, notes.subarray(0, noteBytes), ops)
    expireJournal(state, expiredPerWriteMax, ops)
  }

  function committed(): void {
    for (const one of written) {
      const { lane, firstSeq, chunk } = one
      chunkCommitted(one)
      state.counters.payloads += chunk.count
      state.recent.put(lane.id, firstSeq, chunk)
    }
    written = []
    if (windowRecord !== null) state.committedWindowRecord = windowRecord + 1
    attached?.committed()
    attached = null
  }
}

/** Forgets at most `limit` records that are too old or too many. Only while a write is put together. */
export function expireKeys(state: SpoolState, nowMs: number, limit: number, ops: StoreOp[]): void {
  const numbers = state.window.expire(nowMs, limit)
  for (const n of numbers) ops.push({ type: 'del', key: windowRecordKey(n) })
  state.expired.records += numbers.length
  state.expired.last = numbers.at(-1) ?? state.expired.last
}
