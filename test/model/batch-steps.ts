// batch-steps.ts: the steps of delivery other than settling: rotation, reseal, change of
// operation, hold and release, and the ledger that copies receipts.

import { isDeepStrictEqual } from 'node:util'
import type { Batch } from '../../src/spool/spool.ts'
import { fail } from './rules.ts'
import { track, type Lanes, type World } from './model-world.ts'

export function createLanes(): Lanes {
  return {
    sealedTogether: 0,
    rotated: 0,
    resealed: 0,
    operationSet: 0,
    heldSet: 0,
    followed: 0,
    dropped: 0,
  }
}

export function rotateSome(world: World): void {
  const { random, spool, rules, lanes } = world
  const live = spool.lanes().filter(({ role }) => role.kind === 'live')
  if (live.length === 0) return
  const { id, provider } = random.pick(live)
  const opening = world.opening
  const rotated = spool.rotate(provider).then((done) => {
    if (!done || opening !== world.opening) return
    lanes.rotated += 1
    rules.rotated(id, world.disk.durable())
  })
  track(world, rotated)
}

/** A batch without an answer: delivery splits a batch only if nothing of it was accepted. */
export function pickUntried({ random, spool, rules, settling }: World, fits: (batch: Batch) => boolean) {
  const batches = spool
    .batches()
    .filter((batch) => rules.knows(batch.batchId) && !settling.has(batch.batchId) && fits(batch))
  return batches.length === 0 ? null : random.pick(batches)
}

export function resealSome(world: World): void {
  const { random, spool, rules, settling, lanes } = world
  const batch = pickUntried(world, ({ batchId }) => !rules.answered(batchId))
  if (batch === null) return
  const counts: number[] = []
  for (let left = batch.payloads; left > 0; left -= counts.at(-1) ?? 0) counts.push(1 + random.below(left))
  const opening = world.opening
  settling.add(batch.batchId)
  const resealed = spool.reseal(batch, counts).then((parts) => {
    if (opening !== world.opening) return
    lanes.resealed += 1
    if (parts.map(({ payloads }) => payloads).join() !== counts.join()) fail('the parts are not as asked for')
    let seq = batch.firstSeq
    for (const part of parts) {
      if (part.firstSeq !== seq || part.operation !== 'batch') fail('the parts are not the whole')
      seq = part.endSeq
      rules.sealed(part, world.disk.durable())
    }
    rules.voided(batch.batchId)
  })
  track(world, resealed)
}

export function setOperationSome(world: World): void {
  const { random, spool, rules, settling, answered, lanes } = world
  const batch = pickUntried(world, ({ batchId, payloads }) => payloads === 1 && !answered.has(batchId))
  if (batch === null) return
  const to = random.pick(['batch', 'single'] as const)
  const opening = world.opening
  settling.add(batch.batchId)
  const operationSet = spool.setOperation(batch, to).then((other) => {
    if (opening !== world.opening) return
    settling.delete(batch.batchId)
    lanes.operationSet += 1
    if (other.batchId !== batch.batchId || other.operation !== to)
      fail('the operation is not the requested one')
    rules.operationSet(other, world.disk.durable())
  })
  track(world, operationSet)
}

/** Holds a batch, or releases it, whatever the service has answered so far. */
export function setHeldSome(world: World): void {
  const { random, spool, rules, settling, answered, lanes } = world
  const batch = pickUntried(world, ({ batchId }) => !answered.has(batchId))
  if (batch === null) return
  const reason = random.pick(['repeated', 'stuck', 'forbidden'] as const)
  const held = { reason, since: world.clock.now(), requestId: 'r', why: `because of ${batch.batchId}` }
  const to = random.chance(0.6) ? held : null
  const opening = world.opening
  settling.add(batch.batchId)
  const heldSet = spool.setHeld(batch, to).then((other) => {
    if (opening !== world.opening) return
    settling.delete(batch.batchId)
    lanes.heldSet += 1
    if (!isDeepStrictEqual({ ...batch, held: to }, other)) fail('a held batch differs in more than its state')
    rules.heldSet(other, world.disk.durable())
  })
  track(world, heldSet)
}

/** The sums that each lane keeps are those of its batches. */
export function checkClaimSums({ spool }: World): void {
  const sums = new Map<number, number[]>()
  for (const { lane, payloads, bytes, held } of spool.batches()) {
    const [all = 0, allBytes = 0, heldBatches = 0, heldPayloads = 0] = sums.get(lane) ?? []
    const isHeld = held === null ? 0 : 1
    sums.set(lane, [all + payloads, allBytes + bytes, heldBatches + isHeld, heldPayloads + isHeld * payloads])
  }
  for (const { id, sealed, sealedBytes, heldBatches, heldPayloads } of spool.lanes()) {
    const kept = [sealed, sealedBytes, heldBatches, heldPayloads].join()
    const counted = (sums.get(id) ?? [0, 0, 0, 0]).join()
    if (kept !== counted) fail(`the sums of the claims of lane ${id} are ${kept}, counted ${counted}`)
  }
}

/** Two batches of three have one, however often their settle is tried. */
export function receiptFor({ rules }: World, { batchId }: Batch): Buffer | null {
  if (Number(batchId.slice(-6)) % 3 === 0) return null
  rules.receiptGiven(batchId)
  return Buffer.from(batchId)
}

export async function followSome(world: World): Promise<void> {
  const { random, spool, rules, lanes } = world
  if (spool.holdReason() === 'store_lost') return
  const opening = world.opening
  const found = await spool.receipts({ limit: 1 + random.below(4) })
  const last = found.at(-1)
  if (last === undefined || opening !== world.opening) return
  rules.followed(found)
  lanes.followed += found.length
  // After a crash here, the ledger copies the same receipts again.
  if (random.chance(0.3)) return
  rules.forgot(last.n)
  track(world, spool.forgetReceipts(last.n))
}

export async function forgetAll(world: World): Promise<void> {
  const { spool, rules } = world
  for (;;) {
    const found = await spool.receipts({ limit: 100 })
    const last = found.at(-1)
    if (last === undefined) return
    rules.followed(found)
    rules.forgot(last.n)
    await spool.forgetReceipts(last.n)
  }
}

/** The walk over every record finds no problem, also while other work runs. */
export function checkSome(world: World): void {
  const { spool } = world
  if (spool.holdReason() === 'store_lost') return
  const checked = spool.check(new AbortController().signal).then(({ ok, problems }) => {
    if (!ok) fail(`the records do not add up: ${problems.join(' ')}`)
  })
  track(world, checked)
}
