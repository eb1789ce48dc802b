// judge.ts: the rules of model.ts, on what a power cut would leave right now.

import { hash } from 'node:crypto'
import { readChunk, eachFrame } from '../../src/spool/chunk.ts'
import { laneOf, seqOf, table } from '../../src/spool/keys.ts'
import { claimRecord, keptRecord, letterRecord, partRecord } from '../../src/spool/records.ts'
import { payloadIdIn } from '../../src/domain/payload.ts'
import type { Fate } from '../../src/domain/settlement.ts'
import type { Batch, BatchContent, Spool } from '../../src/spool/spool.ts'
import type { StoreEntry } from '../../src/storage/storage.ts'
import { bodyOf } from '../support/batch-body.ts'
import { payloadNamed } from '../support/spool-world.ts'

export type Judge = {
  offered(id: string): void
  acked(id: string): void
  sealed(batch: Batch, durable: readonly StoreEntry[]): void
  knows(batchId: string): boolean
  /** The service gets a batch; the same batchId gets the same answer. */
  submitted(batch: Batch, content: BatchContent, choose: () => Fate): Fate[]
  check(durable: readonly StoreEntry[]): void
  finish(spool: Spool, durable: readonly StoreEntry[]): void
  /** An unexpected error of work under way; the next check throws it. */
  note(error: unknown): void
}

export function fail(message: string): never {
  throw new Error(message)
}

/** How often each payload stands in chunks, in dead letters, on shelves and in the state; payloads by lane. */
type Places = {
  chunks: Map<string, number>
  letters: Map<string, number>
  kept: Map<string, number>
  parts: Map<string, number>
  open: Map<number, number>
}

const ids = new Map<string, string>()

/** Whatever a message becomes, it is known by the payloadId that its name has. */
export function idOf(name: string): string {
  let id = ids.get(name)
  if (id === undefined) {
    id = payloadNamed(name).payloadId
    ids.set(name, id)
  }
  return id
}

export function createJudge(): Judge {
  const offered = new Set<string>()
  const acked = new Set<string>()
  const bodies = new Map<string, { body: string; fates: Fate[] }>()
  /** Under which batch the service accepted a payload. */
  const acceptedUnder = new Map<string, string>()
  const numbers = new Map<string, string>()
  const claims = new Map<string, string>()
  const sealed = new Set<string>()
  let noted: unknown = null

  function check(durable: readonly StoreEntry[]): void {
    if (noted !== null) throw noted
    const places = placesIn(durable)
    const { chunks, letters, kept, parts } = places
    for (const [id, count] of chunks) if (count > 1) fail(`${id} is in ${count} chunks`)
    for (const id of offered) {
      const found =
        (chunks.get(id) ?? 0) + (letters.get(id) ?? 0) + (kept.get(id) ?? 0) + (parts.get(id) ?? 0)
      if (found > 1) fail(`${id} is in ${found} places`)
      if (found === 0 && acked.has(id) && !acceptedUnder.has(id))
        fail(`${id} was acknowledged and is nowhere`)
    }
    for (const place of [chunks, letters, kept, parts])
      for (const id of place.keys()) if (!offered.has(id)) fail(`${id} was never offered`)
  }

  function placesIn(durable: readonly StoreEntry[]): Places {
    const places: Places = {
      chunks: new Map(),
      letters: new Map(),
      kept: new Map(),
      parts: new Map(),
      open: new Map(),
    }
    const ends = new Map<number, number>()
    const claimEnds = new Map<number, number>()
    for (const [key, value] of durable) {
      if (key[0] === table.chunks) readPlaces(places, ends, key, value)
      if (key[0] === table.batches) checkClaim(claimEnds, key, value)
      if (key[0] === table.deadLetters) {
        const letter = letterRecord.decode(value) ?? fail('a dead letter is damaged')
        count(places.letters, letter.payloadId ?? idOf(letter.detail))
      }
      if (key[0] === table.kept)
        count(
          places.kept,
          idOf((keptRecord.decode(value) ?? fail('a kept message is damaged')).envelope.topic),
        )
      if (key[0] === table.parts) {
        const names = partRecord.decode(value) ?? fail('an entry of state is damaged')
        for (const name of names.toString().split(' ')) count(places.parts, idOf(name))
      }
    }
    return places
  }

  function readPlaces(places: Places, ends: Map<number, number>, key: Buffer, value: Buffer): void {
    const lane = laneOf(key)
    const chunk = readChunk(value) ?? fail('a chunk is damaged')
    let seq = seqOf(key)
    if (seq < (ends.get(lane) ?? 0)) fail(`chunks of lane ${lane} overlap at ${seq}`)
    eachFrame(chunk, (_attempts, start) => {
      const id: string = payloadIdIn(chunk.value, start)
      count(places.chunks, id)
      const number = `${lane}:${seq}`
      const known = numbers.get(number)
      if (known !== undefined && known !== id) fail(`number ${number} was given to ${known} and to ${id}`)
      numbers.set(number, id)
      seq += 1
    })
    ends.set(lane, seq)
    places.open.set(lane, (places.open.get(lane) ?? 0) + chunk.count)
  }

  function checkClaim(claimEnds: Map<number, number>, key: Buffer, value: Buffer): void {
    const lane = laneOf(key)
    const firstSeq = seqOf(key)
    const { batchId, endSeq, timestamp } = claimRecord.decode(value) ?? fail('a claim is damaged')
    if (firstSeq < (claimEnds.get(lane) ?? 0)) fail(`claims of lane ${lane} overlap at ${firstSeq}`)
    claimEnds.set(lane, endSeq)
    const text = `${lane} ${firstSeq} ${endSeq} ${timestamp}`
    const known = claims.get(batchId)
    if (known !== undefined && known !== text) fail(`batch ${batchId} changed from ${known} to ${text}`)
    claims.set(batchId, text)
    sealed.add(batchId)
  }

  return {
    offered: (id) => void offered.add(id),
    acked: (id) => void acked.add(id),
    sealed(batch, durable) {
      const found = durable.some(
        ([key, value]) => key[0] === table.batches && claimRecord.decode(value)?.batchId === batch.batchId,
      )
      if (!found) fail(`batch ${batch.batchId} may be sent and is not durable`)
      sealed.add(batch.batchId)
    },
    knows: (batchId) => sealed.has(batchId),
    submitted(batch, content, choose) {
      const body = hash('sha256', bodyOf(content), 'hex')
      const known = bodies.get(batch.batchId)
      if (known !== undefined) {
        if (known.body !== body) fail(`batch ${batch.batchId} has other bytes than before`)
        return known.fates
      }
      const parsed = JSON.parse(bodyOf(content).toString('utf8')) as {
        batchId: string
        data: { payloadId: string }[]
      }
      if (parsed.batchId !== batch.batchId || parsed.data.length !== batch.payloads)
        fail('the body is not the batch')
      const fates = content.payloadIds.map((id, index) => {
        if (parsed.data[index]?.payloadId !== id) fail('the ids are not those of the body')
        const under = acceptedUnder.get(id)
        if (under !== undefined)
          fail(`${id} was accepted under ${under} and came again under ${batch.batchId}`)
        const fate = choose()
        if (fate.kind === 'delivered') acceptedUnder.set(id, batch.batchId)
        return fate
      })
      bodies.set(batch.batchId, { body, fates })
      return fates
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
        if (lane.pending !== 0 || lane.sealed !== 0 || lane.pendingBytes !== 0)
          fail(`lane ${id} is not empty`)
      }
      const { openBytes, deadLetters, quarantined, quarantineBytes, stateEntries, stateBytes } =
        spool.totals()
      if (openBytes !== 0) fail(`${openBytes} bytes are open in an empty spool`)
      if (deadLetters !== sum(places.letters)) fail(`${deadLetters} dead letters of ${sum(places.letters)}`)
      if (quarantined !== 0 || quarantineBytes !== 0) fail(`${quarantined} kept on empty shelves`)
      if (stateEntries !== 0 || stateBytes !== 0) fail(`${stateEntries} entries of an empty state`)
      for (const { shelf, kept, taken, messages } of spool.shelves())
        if (kept !== taken + messages) fail(`${shelf}: kept ${kept}, taken ${taken}, there are ${messages}`)
      for (const id of offered) {
        if (acked.has(id) && !acceptedUnder.has(id) && !places.letters.has(id))
          fail(`${id} was neither accepted nor buried`)
      }
    },
    note(error) {
      noted = error
    },
  }
}

function count(place: Map<string, number>, id: string): void {
  place.set(id, (place.get(id) ?? 0) + 1)
}

function sum(place: Map<string, number>): number {
  let all = 0
  for (const found of place.values()) all += found
  return all
}
