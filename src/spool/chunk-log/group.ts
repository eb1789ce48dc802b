// group.ts: the messages that become durable together: chunks under construction, their keys for the dedup
// window, dead letters, acks, and what few messages bring (commit-attachments.ts). Filled once per message, so: no promise, no
// closure, no copy beyond the one from text to bytes.

import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { KeptMessage } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { addText, finishChunk, newChunkBuilder, type Chunk, type ChunkBuilder } from './chunk-codec.ts'
import type { Group } from './committer.ts'
import { seenKey, seqKey, table } from './key-layout.ts'
import { noteCommitted, number, putLane, type Lane } from './lane.ts'
import { buryAll } from '../kept/dead-letter-table.ts'
import { encodeSeen, letterRecord, seenKeyBytes, windowKeyBytes } from './record-codec.ts'
import { createSide, type Place, type Side } from './commit-attachments.ts'
import type { LaneRole } from '../spool.ts'
import { noteForgotten, openLane, youngestBackfill, type SpoolState } from '../session-state.ts'

export type GroupOptions = {
  /** Bounds of one chunk: those of a batch, so that sealing seldom has to cut. */
  chunkPayloadsMax: number
  chunkBytesMax: number
}

export type IntakeGroup = Group & {
  append(payload: MappedPayload): void
  bury(letter: DeadLetter): void
  remember(name: string, value: Buffer | null): void
  keep(message: KeptMessage): void
  /** Takes an entry away that an exchange gives back. */
  take(place: Place): void
  /** Takes the key that stands in the window's scratch. */
  addKey(): void
}

type Run = { lane: Lane; isNew: boolean; builders: ChunkBuilder[] }

/** Forgetting old keys is spread over the writes. */
const forgottenPerWriteMax = 64

const firstKeyBytes = 512

/** Some more than the last chunk took, so that a buffer seldom has to grow. */
function capacityFor(lane: Lane): number {
  return Math.ceil(lane.lastChunkBytes * 1.25)
}

export function createGroup(state: SpoolState, options: GroupOptions): IntakeGroup {
  const runs = new Map<ProviderName, Run>()
  /** Of payloads that were late when they came. */
  const lateRuns = new Map<ProviderName, Run>()
  let lastRun: Run | null = null
  let keys = Buffer.allocUnsafe(firstKeyBytes)
  let keyCount = 0
  let letters: Buffer[] = []
  let side: Side | null = null
  let bytes = 0
  let written: { lane: Lane; firstSeq: number; chunk: Chunk }[] = []

  function append(payload: MappedPayload): void {
    const run = isLate(payload) ? lateRunOf(payload.provider) : liveRunOf(payload.provider)
    let builder = run.builders[run.builders.length - 1]!
    if (builder.count > 0 && (endsBatch(run.lane) || builder.bytes >= options.chunkBytesMax)) {
      builder = newChunkBuilder(builder.buffer.length)
      run.builders.push(builder)
    }
    run.lane.appendedSeq += 1
    const length = addText(builder, payload.json, 0)
    bytes += length
    state.openBytes += length
  }

  /** Chunks end where full batches will: a chunk that a batch takes in part must be cut, and written again. */
  function endsBatch(lane: Lane): boolean {
    return (lane.appendedSeq - lane.sealSeq) % options.chunkPayloadsMax === 0
  }

  function isLate({ provider, deviceTime }: MappedPayload): boolean {
    return deviceTime !== null && state.isLate(provider, deviceTime)
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
    return { lane, isNew: known === undefined, builders: [newChunkBuilder(capacityFor(lane))] }
  }

  function bury(letter: DeadLetter): void {
    const value = letterRecord.encode(letter)
    letters.push(value)
    bytes += value.length
  }

  function beside(): Side {
    side ??= createSide(state)
    return side
  }

  function addKey(): void {
    if (!state.window.add()) return
    if (keyCount * seenKeyBytes === keys.length) {
      const larger = Buffer.allocUnsafe(keys.length * 2)
      keys.copy(larger)
      keys = larger
    }
    state.window.scratch.copy(keys, keyCount * seenKeyBytes, windowKeyBytes - seenKeyBytes)
    keyCount += 1
    bytes += seenKeyBytes
  }

  function prepare(ops: StoreOp[]): void {
    const at = state.clock.now()
    for (const { lane, isNew, builders } of [...runs.values(), ...lateRuns.values()]) {
      if (isNew) putLane(lane, ops)
      for (const builder of builders) {
        const { firstSeq, startBytes } = number(lane, builder.count, builder.bytes)
        const chunk = finishChunk(builder, at, startBytes)
        lane.lastChunkBytes = chunk.value.length
        ops.push({ type: 'put', key: seqKey(table.chunks, lane.id, firstSeq), value: chunk.value })
        written.push({ lane, firstSeq, chunk })
      }
    }
    side?.prepare(ops)
    buryAll(state, at, letters, ops)
    rememberKeys(at, ops)
  }

  function rememberKeys(at: number, ops: StoreOp[]): void {
    const nowMs = state.clock.monotonic()
    if (keyCount > 0) {
      const n = state.nextSeen
      state.nextSeen += 1
      ops.push({
        type: 'put',
        key: seenKey(n),
        value: encodeSeen(at, keys.subarray(0, keyCount * seenKeyBytes)),
      })
      state.window.endGroup(n, keyCount, nowMs)
    }
    const numbers = state.window.expire(nowMs, forgottenPerWriteMax)
    for (const n of numbers) ops.push({ type: 'del', key: seenKey(n) })
    noteForgotten(state, numbers)
  }

  function committed(): void {
    for (const { lane, firstSeq, chunk } of written) {
      const { count, bytes, startBytes, committedAt } = chunk
      noteCommitted(lane, { firstSeq, count, bytes, startBytes, committedAt })
      state.counters.payloads += count
      state.recent.put(lane.id, firstSeq, chunk)
    }
    written = []
    letters = []
    side?.committed()
    side = null
  }

  return {
    get bytes() {
      return bytes
    },
    get empty() {
      return bytes === 0
    },
    acks: [],
    unawaited: 0,
    append,
    bury,
    remember(name, value) {
      bytes += beside().remember(name, value)
    },
    keep(message) {
      bytes += beside().keep(message)
    },
    take(place) {
      bytes += beside().take(place)
    },
    addKey,
    prepare,
    committed,
  }
}
