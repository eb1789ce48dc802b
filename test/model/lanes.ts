// lanes.ts: what delivery does to lanes and batches besides settling: what waits goes behind what is fresh, a batch goes on
// as several or by the other operation, and somebody follows what was settled by its receipts.

import type { Batch } from '../../src/spool/spool.ts'
import { fail } from './judge.ts'
import { track, type Lanes, type World } from './world.ts'

export function createLanes(): Lanes {
  return { rotated: 0, resealed: 0, turned: 0, followed: 0, dropped: 0 }
}

export function rotateSome(world: World): void {
  const { random, spool, judge, lanes } = world
  const live = spool.lanes().filter(({ role }) => role.kind === 'live')
  if (live.length === 0) return
  const { id, provider } = random.pick(live)
  const epoch = world.epoch
  const rotated = spool.rotate(provider).then((done) => {
    if (!done || epoch !== world.epoch) return
    lanes.rotated += 1
    judge.rotated(id, world.disk.durable())
  })
  track(world, rotated)
}

/** One that the service has not answered yet; who splits others must know that nothing of them was accepted. */
function pickUntried({ random, spool, judge, settling }: World, fits: (batch: Batch) => boolean) {
  const batches = spool
    .batches()
    .filter((batch) => judge.knows(batch.batchId) && !settling.has(batch.batchId) && fits(batch))
  return batches.length === 0 ? null : random.pick(batches)
}

export function resealSome(world: World): void {
  const { random, spool, judge, settling, lanes } = world
  const batch = pickUntried(world, ({ batchId }) => !judge.answered(batchId))
  if (batch === null) return
  const counts: number[] = []
  for (let left = batch.payloads; left > 0; left -= counts.at(-1) ?? 0) counts.push(1 + random.below(left))
  const epoch = world.epoch
  settling.add(batch.batchId)
  const resealed = spool.reseal(batch, counts).then((parts) => {
    if (epoch !== world.epoch) return
    lanes.resealed += 1
    if (parts.map(({ payloads }) => payloads).join() !== counts.join()) fail('the parts are not as asked for')
    let seq = batch.firstSeq
    for (const part of parts) {
      if (part.firstSeq !== seq || part.operation !== 'batch') fail('the parts are not the whole')
      seq = part.endSeq
      judge.sealed(part, world.disk.durable())
    }
    judge.voided(batch.batchId)
  })
  track(world, resealed)
}

export function turnSome(world: World): void {
  const { random, spool, judge, settling, answered, lanes } = world
  const batch = pickUntried(world, ({ batchId, payloads }) => payloads === 1 && !answered.has(batchId))
  if (batch === null) return
  const to = random.pick(['batch', 'single'] as const)
  const epoch = world.epoch
  settling.add(batch.batchId)
  const turned = spool.setOperation(batch, to).then((other) => {
    if (epoch !== world.epoch) return
    settling.delete(batch.batchId)
    lanes.turned += 1
    if (other.batchId !== batch.batchId || other.operation !== to)
      fail('the operation is not the requested one')
    judge.turned(other, world.disk.durable())
  })
  track(world, turned)
}

/** Two batches of three have one, however often their settle is tried. */
export function receiptFor({ judge }: World, { batchId }: Batch): Buffer | null {
  if (Number(batchId.slice(-6)) % 3 === 0) return null
  judge.receiptGiven(batchId)
  return Buffer.from(batchId)
}

export async function followSome(world: World): Promise<void> {
  const { random, spool, judge, lanes } = world
  if (spool.holdReason === 'store_lost') return
  const epoch = world.epoch
  const found = await spool.receipts({ limit: 1 + random.below(4) })
  const last = found.at(-1)
  if (last === undefined || epoch !== world.epoch) return
  judge.followed(found)
  lanes.followed += found.length
  // Whoever dies here comes again for the same ones.
  if (random.chance(0.3)) return
  judge.forgot(last.n)
  track(world, spool.forgetReceipts(last.n))
}

export async function forgetAll(world: World): Promise<void> {
  const { spool, judge } = world
  for (;;) {
    const found = await spool.receipts({ limit: 100 })
    const last = found.at(-1)
    if (last === undefined) return
    judge.followed(found)
    judge.forgot(last.n)
    await spool.forgetReceipts(last.n)
  }
}

/** The walk over every record finds nothing to say, whatever is under way. */
export function checkSome(world: World): void {
  const { spool } = world
  if (spool.holdReason === 'store_lost') return
  const checked = spool.check(new AbortController().signal).then(({ ok, problems }) => {
    if (!ok) fail(`the records do not add up: ${problems.join(' ')}`)
  })
  track(world, checked)
}
