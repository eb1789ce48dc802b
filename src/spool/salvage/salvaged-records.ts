// salvaged-records.ts: the content of a database record, for a salvage: payloads, dead letters, messages,
// state, or why it is unreadable. Pure.

import { payloadHead, payloadIdEnd } from '../../domain/payload.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { KeptMessage } from '../../domain/message.ts'
import { eachFrame, firstFrame, frameHeadBytes, readableFrames, readChunk } from '../chunk-log/chunk-codec.ts'
import { deadLetterIdOf, isLaneKey, laneOf, seqOf, shelfOf, table, textOf } from '../chunk-log/key-layout.ts'
import type { ClaimedPayloads, HeldBatch } from './held-claims.ts'
import { keptMessageRecord, laneRecord, deadLetterRecord, stateRecord } from '../chunk-log/record-codec.ts'

export type Salvaged =
  /**
   * `suspect`: why it may differ from what was stored; else null. `batch`: the held batch that it belongs to.
   * `isSettled`: it was settled before, and only its deletion is lost.
   */
  | {
      kind: 'payload'
      provider: string | null
      lane: number
      attempts: number
      json: string
      suspect: string | null
      batch: HeldBatch | null
      isSettled: boolean
    }
  | { kind: 'deadLetter'; id: string; deadLetter: DeadLetter }
  | { kind: 'message'; message: KeptMessage }
  | { kind: 'state'; key: string; value: Buffer }
  | { kind: 'unreadable'; key: string; why: string; raw: Buffer | null }

const wrongChecksum = 'its checksum is wrong'

/**
 * Reads records, which must come in the order of their keys. `providers` are those of lanes whose record may
 * be lost.
 */
export function createRecordReader(
  claimed: ClaimedPayloads,
  providers: Map<LaneId, string>,
): (key: Buffer, value: Buffer) => Salvaged[] {
  return read

  function read(key: Buffer, value: Buffer): Salvaged[] {
    try {
      return contentOf(key, value)
    } catch (error) {
      // A damaged key can be too short, or no JSON text.
      if (!(error instanceof RangeError || error instanceof SyntaxError)) throw error
      return [unreadable(key, value, 'its key is damaged')]
    }
  }

  function contentOf(key: Buffer, value: Buffer): Salvaged[] {
    const kind = key[0] ?? 0
    switch (kind) {
      case table.lanes: {
        const record = laneRecord.decode(value)
        if (record !== null) providers.set(laneOf(key), record.provider)
        return record === null ? [unreadable(key, value, wrongChecksum)] : []
      }
      case table.chunks:
        return payloadsIn(key, value)
      case table.damaged: {
        // A deleted lane precedes its chunks.
        const record = isLaneKey(key) ? laneRecord.decode(value) : null
        if (record === null) return payloadsIn(key, value)
        providers.set(laneOf(key), record.provider)
        return []
      }
      case table.deadLetters:
        return [deadLetterIn(key, value) ?? unreadable(key, value, wrongChecksum)]
      case table.kept:
        return [messageIn(key, value) ?? unreadable(key, value, wrongChecksum)]
      case table.state:
        return [stateIn(key, value) ?? unreadable(key, value, wrongChecksum)]
      case table.setAside: {
        const [former] = read(key.subarray(1), value)
        return former === undefined || former.kind === 'unreadable'
          ? [unreadable(key, value, wrongChecksum)]
          : [former]
      }
      default:
        // A spool that imports the content makes the other records anew.
        return isKnown(kind) ? [] : [unreadable(key, value, 'its key belongs to no table')]
    }
  }

  function payloadsIn(key: Buffer, value: Buffer): Salvaged[] {
    const lane = laneOf(key)
    const firstSeq = seqOf(key)
    const isChunk = key[0] === table.chunks
    const about = {
      kind: 'payload',
      provider: providers.get(lane) ?? null,
      lane,
      batch: isChunk ? claimed.heldBatch(lane, firstSeq) : null,
      isSettled: isChunk && claimed.isSettled(lane, firstSeq),
    } as const
    const chunk = readChunk(key, value)
    if (chunk?.kind === 'gap') return []
    const found: Salvaged[] = []
    if (chunk !== null) {
      eachFrame(chunk, (attempts, start, end) => {
        found.push({ ...about, attempts, json: chunk.value.toString('utf8', start, end), suspect: null })
      })
      return found
    }
    const suspect = 'the checksum of its chunk is wrong'
    for (const { attempts, json } of plausibleFrames(readableFrames(value)))
      found.push({ ...about, attempts, json, suspect })
    found.push(unreadable(key, value, wrongChecksum))
    return found
  }
}

function deadLetterIn(key: Buffer, value: Buffer): Salvaged | null {
  const deadLetter = deadLetterRecord.decode(value)
  return deadLetter && { kind: 'deadLetter', id: deadLetterIdOf(key), deadLetter }
}

function messageIn(key: Buffer, value: Buffer): Salvaged | null {
  const record = keptMessageRecord.decode(value)
  if (record === null) return null
  const { at: _at, ...message } = record
  return { kind: 'message', message: { shelf: shelfOf(key), ...message } }
}

function stateIn(key: Buffer, value: Buffer): Salvaged | null {
  const state = stateRecord.decode(value)
  return state && { kind: 'state', key: textOf(key), value: state }
}

/** Payloads of a damaged chunk, up to the first frame with an impossible length. */
function* plausibleFrames(value: Buffer): Generator<{ attempts: number; json: string }> {
  let offset = firstFrame
  while (offset + frameHeadBytes < value.length) {
    const attempts = value[offset] ?? 0
    const start = offset + frameHeadBytes
    const end = start + value.readUInt32BE(offset + 1)
    if (end > value.length) return
    const json = value.toString('utf8', start, end)
    if (isPayload(json)) yield { attempts, json }
    offset = end
  }
}

function isPayload(json: string): boolean {
  if (!json.startsWith(payloadHead) || !/^[0-9a-f-]{36}$/.test(json.slice(payloadHead.length, payloadIdEnd)))
    return false
  try {
    return typeof JSON.parse(json) === 'object'
  } catch {
    return false
  }
}

function isKnown(kind: number): boolean {
  return Object.values(table).some((known) => known === kind)
}

function unreadable(key: Buffer, value: Buffer, why: string): Salvaged {
  return { kind: 'unreadable', key: key.toString('hex'), why, raw: value }
}
