// rules.ts: checks the rules of model.ts on what a power cut would leave at that moment.

import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { readChunk, eachFrame } from '../../src/spool/chunk-log/chunk-codec.ts'
import { laneKey, laneOf, numberOf, seqOf, table, textOf } from '../../src/spool/chunk-log/key-layout.ts'
import {
  claimRecord,
  keptMessageRecord,
  laneRecord,
  deadLetterRecord,
  stateRecord,
  receiptRecord,
} from '../../src/spool/chunk-log/record-codec.ts'
import { isLateRecordKey, lateEntriesIn } from '../../src/spool/kept/late-records.ts'
import type { LaneId } from '../../src/domain/ids.ts'
import { payloadIdIn } from '../../src/domain/payload.ts'
import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import type { Batch, BatchContent, Spool, BatchOperation } from '../../src/spool/spool.ts'
import type { StoreEntry } from '../../src/storage/storage.ts'
import { bodyOf } from '../support/batch-body.ts'
import { payloadNamed } from '../support/spool-world.ts'

export type Rules = {
  /** `late`: the device time is so old that it must not go before what is fresh. */
  offered(id: string, late: boolean): void
  acked(id: string): void
  sealed(batch: Batch, durable: readonly StoreEntry[]): void
  knows(batchId: string): boolean
  /** Whether the service accepted or failed payloads of it. */
  answered(batchId: string): boolean
  /** The service gets a batch and refuses it as such. */
  refused(batch: Batch, content: BatchContent): void
  rotated(lane: LaneId, durable: readonly StoreEntry[]): void
  operationSet(batch: Batch, durable: readonly StoreEntry[]): void
  heldSet(batch: Batch, durable: readonly StoreEntry[]): void
  /** It was replaced by other batches and must not appear again. */
  voided(batchId: string): void
  receiptGiven(batchId: string): void
  /** The engine has these payloads; they are still here, too. */
  inEngine(ids: readonly string[]): void
  /** They are durably removed here. */
  onlyInEngine(ids: readonly string[]): void
  /** They are durable here, and the engine has them no more. */
  leftEngine(ids: readonly string[]): void
  /** A crash left them here and in the engine. */
  mayRepeat(ids: readonly string[]): void
  followed(receipts: readonly { n: number; value: Buffer }[]): void
  forgot(lastN: number): void
  /** Deleted lanes. */
  dropped(): number
  /** The service gets a batch; the same batchId gets the same answer. */
  submitted(batch: Batch, content: BatchContent, choose: () => PayloadSettlement): PayloadSettlement[]
  check(durable: readonly StoreEntry[]): void
  finish(spool: Spool, durable: readonly StoreEntry[]): void
  /** After a stop of a spool whose state is empty. */
  closed(durable: readonly StoreEntry[]): void
  /** An unexpected error of work under way; the next check throws it. */
  note(error: unknown): void
}

export function fail(message: string): never {
  throw new Error(message)
}

/**
 * How often each payload is in chunks, in dead letters, on shelves and in the state; payloads by lane.
 */
type Places = {
  chunks: Map<string, number>
  deadLetters: Map<string, number>
  kept: Map<string, number>
  parts: Map<string, number>
  open: Map<number, number>
  lanes: Map<number, string>
  /** Where each chunk of a lane begins and ends. */
  chunkEnds: Map<number, Map<number, number>>
  claims: Set<string>
  receipts: Map<string, number>
}

const ids = new Map<string, string>()

/** Each message is identified by the payloadId of its name, whatever its result is. */
export function idOf(name: string): string {
  let id = ids.get(name)
  if (id === undefined) {
    id = payloadNamed(name).payloadId
    ids.set(name, id)
  }
  return id
}

export function createRules(): Rules {
  const offered = new Set<string>()
  const late = new Set<string>()
  const acked = new Set<string>()
  const answers = new Map<string, PayloadSettlement[]>()
  /** Hashes of the bodies, by batchId and operation. */
  const bodies = new Map<string, string>()
  /** Under which batch the service accepted a payload. */
  const acceptedUnder = new Map<string, string>()
  const numbers = new Map<string, string>()
  const claims = new Map<string, string>()
  const sealed = new Set<string>()
  /** By which operation each batch goes, as it is durable. */
  const operations = new Map<string, BatchOperation>()
  /** The held state of each batch, as it is durable. */
  const heldStates = new Map<string, string>()
  const voided = new Set<string>()
  const lanesSeen = new Set<number>()
  const lanesGone = new Set<number>()
  const receiptsDue = new Set<string>()
  const receiptNumbers = new Map<number, string>()
  const forgotten = new Set<string>()
  const engine = new Set<string>()
  /** Payloads that may be in several places, and may be accepted more than once. */
  const repeated = new Set<string>()
  /** How often a payload was handed to the engine and not durably removed since. */
  const handed = new Map<string, number>()
  const isOnce = (id: string) => !repeated.has(id) && (handed.get(id) ?? 0) === 0
  let forgottenN = -1
  let noted: unknown = null

  function check(durable: readonly StoreEntry[]): void {
    if (noted !== null) throw noted
    const places = placesIn(durable)
    const { chunks, deadLetters, kept, parts } = places
    for (const [id, count] of chunks) if (count > 1 && isOnce(id)) fail(`${id} is in ${count} chunks`)
    for (const id of offered) {
      const found =
        (chunks.get(id) ?? 0) + (deadLetters.get(id) ?? 0) + (kept.get(id) ?? 0) + (parts.get(id) ?? 0)
      if (found > 1 && isOnce(id)) fail(`${id} is in ${found} places`)
      if (found === 0 && acked.has(id) && !acceptedUnder.has(id) && !engine.has(id))
        fail(`${id} was acknowledged and is nowhere`)
    }
    checkLanes(places)
    checkReceipts(places)
    for (const place of [chunks, deadLetters, kept, parts])
      for (const id of place.keys()) if (!offered.has(id)) fail(`${id} was never offered`)
  }

  function placesIn(durable: readonly StoreEntry[]): Places {
    const places: Places = {
      chunks: new Map(),
      deadLetters: new Map(),
      kept: new Map(),
      parts: new Map(),
      open: new Map(),
      lanes: new Map(),
      chunkEnds: new Map(),
      claims: new Set(),
      receipts: new Map(),
    }
    const state = new Map<string, Buffer>()
    const ends = new Map<number, number>()
    const claimEnds = new Map<number, number>()
    for (const [key, value] of durable) {
      if (key[0] === table.lanes) {
        const record = laneRecord.decode(value) ?? fail('the record of a lane is damaged')
        places.lanes.set(laneOf(key), record.role.kind)
      }
      if (key[0] === table.chunks) readPlaces(places, ends, key, value)
      if (key[0] === table.batches) checkClaim(places, claimEnds, key, value)
      if (key[0] === table.receipts) readReceipt(places, numberOf(key), value)
      if (key[0] === table.deadLetters) {
        const deadLetter = deadLetterRecord.decode(value) ?? fail('a dead letter is damaged')
        count(places.deadLetters, deadLetter.payloadId ?? idOf(deadLetter.detail))
      }
      if (key[0] === table.kept)
        count(
          places.kept,
          idOf((keptMessageRecord.decode(value) ?? fail('a kept message is damaged')).envelope.topic),
        )
      if (key[0] === table.state)
        state.set(textOf(key), stateRecord.decode(value) ?? fail('an entry of state is damaged'))
    }
    for (const value of stateInForce(state))
      for (const name of value.split(' ')) count(places.parts, idOf(name))
    return places
  }

  function readPlaces(places: Places, ends: Map<number, number>, key: Buffer, value: Buffer): void {
    const lane = laneOf(key)
    const chunk = readChunk(value) ?? fail('a chunk is damaged')
    const role = places.lanes.get(lane) ?? fail(`lane ${lane} has payloads and no record`)
    let seq = seqOf(key)
    if (seq < (ends.get(lane) ?? 0)) fail(`chunks of lane ${lane} overlap at ${seq}`)
    eachFrame(chunk, (_attempts, start) => {
      const id: string = payloadIdIn(chunk.value, start)
      count(places.chunks, id)
      if (role === 'live' && late.has(id)) fail(`${id} is late and is in a live lane`)
      const number = `${lane}:${seq}`
      const known = numbers.get(number)
      if (known !== undefined && known !== id) fail(`number ${number} was given to ${known} and to ${id}`)
      numbers.set(number, id)
      seq += 1
    })
    ends.set(lane, seq)
    const chunkEnds = places.chunkEnds.get(lane) ?? new Map<number, number>()
    places.chunkEnds.set(lane, chunkEnds.set(seqOf(key), seq))
    places.open.set(lane, (places.open.get(lane) ?? 0) + chunk.count)
  }

  function checkClaim(places: Places, claimEnds: Map<number, number>, key: Buffer, value: Buffer): void {
    const lane = laneOf(key)
    const firstSeq = seqOf(key)
    const {
      batchId,
      endSeq,
      timestamp,
      turn: operation,
      held = null,
    } = claimRecord.decode(value) ?? fail('a claim is damaged')
    if (firstSeq < (claimEnds.get(lane) ?? 0)) fail(`claims of lane ${lane} overlap at ${firstSeq}`)
    claimEnds.set(lane, endSeq)
    const text = `${lane} ${firstSeq} ${endSeq} ${timestamp}`
    const known = claims.get(batchId)
    if (known !== undefined && known !== text) fail(`batch ${batchId} changed from ${known} to ${text}`)
    claims.set(batchId, text)
    sealed.add(batchId)
    operations.set(batchId, operation)
    heldStates.set(batchId, JSON.stringify(held))
    places.claims.add(batchId)
    if (voided.has(batchId)) fail(`batch ${batchId} was resealed and is there again`)
    let seq = firstSeq
    while (seq < endSeq)
      seq = places.chunkEnds.get(lane)?.get(seq) ?? fail(`batch ${batchId} has a hole at ${lane}:${seq}`)
    if (seq !== endSeq) fail(`batch ${batchId} ends within a chunk`)
  }

  function checkLanes({ lanes }: Places): void {
    for (const lane of lanes.keys()) {
      if (lanesGone.has(lane)) fail(`number ${lane} was given to a lane again`)
      lanesSeen.add(lane)
    }
    for (const lane of lanesSeen) if (!lanes.has(lane)) lanesGone.add(lane)
  }

  function readReceipt(places: Places, n: number, value: Buffer): void {
    const batchId = (receiptRecord.decode(value) ?? fail('a receipt is damaged')).toString()
    const known = receiptNumbers.get(n)
    if (known !== undefined && known !== batchId) fail(`receipt ${n} was given to ${known} and to ${batchId}`)
    if (known === undefined && n <= forgottenN) fail(`receipt ${n} was given again`)
    receiptNumbers.set(n, batchId)
    places.receipts.set(batchId, n)
  }

  function checkReceipts(places: Places): void {
    for (const batchId of places.receipts.keys())
      if (places.claims.has(batchId)) fail(`batch ${batchId} has a receipt and is not settled`)
    for (const batchId of receiptsDue) {
      const isSettled = claims.has(batchId) && !places.claims.has(batchId)
      if (isSettled && !places.receipts.has(batchId) && !forgotten.has(batchId))
        fail(`batch ${batchId} is settled and has no receipt`)
    }
  }

  /** The request body of a batch, which is the same for each submission with the same operation. */
  function sent(batch: Batch, content: BatchContent): { payloadId: string }[] {
    if (voided.has(batch.batchId)) fail(`batch ${batch.batchId} was resealed and is sent again`)
    if ((operations.get(batch.batchId) ?? batch.operation) !== batch.operation)
      fail(`batch ${batch.batchId} goes by another operation than its claim says`)
    if ((heldStates.get(batch.batchId) ?? 'null') !== JSON.stringify(batch.held))
      fail(`batch ${batch.batchId} has another held state than its claim`)
    const bytes = bodyOf(content)
    const body = hash('sha256', bytes, 'hex')
    const name = `${batch.batchId} ${batch.operation}`
    if ((bodies.get(name) ?? body) !== body) fail(`batch ${batch.batchId} has other bytes than before`)
    bodies.set(name, body)
    return dataIn(batch, bytes)
  }

  return {
    offered(id, isLate) {
      offered.add(id)
      if (isLate) late.add(id)
    },
    acked: (id) => void acked.add(id),
    sealed(batch, durable) {
      const found = durable.some(
        ([key, value]) => key[0] === table.batches && claimRecord.decode(value)?.batchId === batch.batchId,
      )
      if (!found) fail(`batch ${batch.batchId} may be sent and is not durable`)
      sealed.add(batch.batchId)
    },
    knows: (batchId) => sealed.has(batchId),
    answered: (batchId) => answers.has(batchId),
    refused: (batch, content) => void sent(batch, content),
    rotated(lane, durable) {
      const key = laneKey(table.lanes, lane)
      const value = durable.find(([at]) => at.equals(key))?.[1]
      // It may be drained and deleted already.
      if (value === undefined && lanesGone.has(lane)) return
      if (laneRecord.decode(value)?.role.kind !== 'backfill') fail(`lane ${lane} was rotated, not durably`)
    },
    operationSet(batch, durable) {
      const found = durable.some(([key, value]) => {
        if (key[0] !== table.batches) return false
        const record = claimRecord.decode(value)
        return record?.batchId === batch.batchId && record.turn === batch.operation
      })
      if (!found) fail(`batch ${batch.batchId} has another operation, not durably`)
      operations.set(batch.batchId, batch.operation)
    },
    heldSet(batch, durable) {
      const found = durable.some(([key, value]) => {
        if (key[0] !== table.batches) return false
        const record = claimRecord.decode(value)
        return record?.batchId === batch.batchId && isDeepStrictEqual(record.held ?? null, batch.held)
      })
      if (!found) fail(`batch ${batch.batchId} has another held state, not durably`)
      heldStates.set(batch.batchId, JSON.stringify(batch.held))
    },
    voided: (batchId) => void voided.add(batchId),
    inEngine(ids) {
      for (const id of ids) {
        engine.add(id)
        count(handed, id)
      }
    },
    onlyInEngine(ids) {
      for (const id of ids) handed.set(id, (handed.get(id) ?? 0) - 1)
    },
    leftEngine(ids) {
      for (const id of ids) engine.delete(id)
    },
    mayRepeat(ids) {
      for (const id of ids) repeated.add(id)
    },
    receiptGiven: (batchId) => void receiptsDue.add(batchId),
    followed(receipts) {
      let before = -1
      for (const { n, value } of receipts) {
        if (n <= before) fail('the receipts are out of order')
        if ((receiptNumbers.get(n) ?? value.toString()) !== value.toString()) fail(`receipt ${n} changed`)
        receiptNumbers.set(n, value.toString())
        before = n
      }
    },
    forgot(lastN) {
      forgottenN = Math.max(forgottenN, lastN)
      for (const [n, batchId] of receiptNumbers) if (n <= lastN) forgotten.add(batchId)
    },
    dropped: () => lanesGone.size,
    submitted(batch, content, choose) {
      const data = sent(batch, content)
      const known = answers.get(batch.batchId)
      if (known !== undefined) return known
      const settlements = content.payloadIds().map((id, index) => {
        if (data[index]?.payloadId !== id) fail('the ids are not those of the body')
        const under = acceptedUnder.get(id)
        if (under !== undefined && isOnce(id))
          fail(`${id} was accepted under ${under} and came again under ${batch.batchId}`)
        const settlement = choose()
        if (settlement.kind === 'delivered') acceptedUnder.set(id, batch.batchId)
        return settlement
      })
      answers.set(batch.batchId, settlements)
      return settlements
    },
    check,
    finish(spool, durable) {
      check(durable)
      const places = placesIn(durable)
      for (const lane of spool.lanes()) {
        const { id, appended, settled, open } = lane
        const walked = places.open.get(id) ?? 0
        if (appended !== settled + open || open !== walked) {
          fail(`lane ${id}: appended ${appended}, settled ${settled}, open ${open}, walked ${walked}`)
        }
        if (places.lanes.get(id) !== lane.role.kind) fail(`lane ${id} is another one on the disk`)
        if (lane.pending !== 0 || lane.sealed !== 0 || lane.pendingBytes !== 0)
          fail(`lane ${id} is not empty`)
      }
      if (places.lanes.size !== spool.lanes().length) fail('the disk has lanes that the spool does not list')
      for (const provider of ['a', 'b']) {
        const left = spool
          .lanes()
          .filter((lane) => lane.provider === provider && lane.role.kind === 'backfill')
        if (left.length > 1) fail(`${left.length} drained backfill lanes of ${provider} are left`)
      }
      const { receipts, receiptBytes, receiptsDropped } = spool.totals()
      if (receipts + receiptBytes + receiptsDropped !== 0) fail(`${receipts} receipts are left`)
      const { openBytes, deadLetters, quarantined, quarantineBytes, stateEntries, stateBytes } =
        spool.totals()
      if (openBytes !== 0) fail(`${openBytes} bytes are open in an empty spool`)
      if (deadLetters !== sum(places.deadLetters))
        fail(`${deadLetters} dead letters of ${sum(places.deadLetters)}`)
      if (quarantined !== 0 || quarantineBytes !== 0) fail(`${quarantined} kept on empty shelves`)
      if (places.parts.size !== 0) fail(`${places.parts.size} parts are in an empty state`)
      const state = durable.filter(([key]) => key[0] === table.state)
      const bytes = state.reduce((all, [key, value]) => all + key.length + value.length, 0)
      if (stateEntries !== state.length || stateBytes !== bytes)
        fail(`${stateEntries} records of state with ${stateBytes} bytes of ${state.length} with ${bytes}`)
      for (const { shelf, kept, taken, messages } of spool.shelves())
        if (kept !== taken + messages) fail(`${shelf}: kept ${kept}, taken ${taken}, there are ${messages}`)
      for (const id of offered) {
        if (acked.has(id) && !acceptedUnder.has(id) && !places.deadLetters.has(id))
          fail(`${id} was neither accepted nor buried`)
      }
    },
    closed(durable) {
      const left = durable.filter(([key]) => key[0] === table.state).length
      if (left > 0) fail(`${left} records of an empty state are left after a stop`)
    },
    note(error) {
      noted = error
    },
  }
}

/** The payloads in a request body, by the operation that the batch goes by. */
function dataIn({ operation, batchId, payloads }: Batch, bytes: Buffer): { payloadId: string }[] {
  const parsed = JSON.parse(bytes.toString('utf8')) as
    { batchId: string; data: { payloadId: string }[] } | { payloadId: string }
  const isBatch = 'data' in parsed
  if (isBatch !== (operation === 'batch')) fail(`the body is not that of a ${operation}`)
  if (!isBatch) return [parsed]
  if (parsed.batchId !== batchId || parsed.data.length !== payloads) fail('the body is not the batch')
  return parsed.data
}

function count(place: Map<string, number>, id: string): void {
  place.set(id, (place.get(id) ?? 0) + 1)
}

function sum(place: Map<string, number>): number {
  let all = 0
  for (const found of place.values()) all += found
  return all
}

/** The entries of the mapping's state, as text: late ones from the last record that has them. */
function stateInForce(state: ReadonlyMap<string, Buffer>): string[] {
  const records = [...state].filter(([key]) => isLateRecordKey(key)).map(([, value]) => value)
  const late = [...lateEntriesIn(records, { fromSeq: 0 })].map(([key, { value }]) => [key, value] as const)
  const own = [...state].filter(([key]) => !isLateRecordKey(key))
  return [...new Map([...own, ...late]).values()].map((value) => value.toString())
}
