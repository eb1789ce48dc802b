// return-steps.ts: the steps in which the server that messages came from has them again. `engine` is that server.
//
//   park       what waits in a retry lane, or an unanswered batch, is stored there and then removed
//   take back  the engine gives it back, with the attempts that it had
//
// Whatever a crash leaves in both is accepted twice, and the rules allow that only there.

import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import type { PendingPayload } from '../../src/spool/spool.ts'
import { exchangeOf, payloadNamed } from '../support/spool-world.ts'
import { pickUntried } from './batch-steps.ts'
import { isLateName, track, type Parked, type World } from './model-world.ts'
import { fail } from './rules.ts'

const bounds = { bytesMax: 10_000 }

/** A read waits for the seals of its lane, and these for a disk that may be held: no step waits for it. */
export function parkSome(world: World): void {
  if (world.spool.holdReason() !== 'store_lost') track(world, park(world))
}

async function park(world: World): Promise<void> {
  const { random, spool, rules, returns } = world
  const lanes = spool.lanes().filter(({ role, pending }) => role.kind === 'retry' && pending > 0)
  if (lanes.length === 0) return
  const lane = random.pick(lanes)
  const opening = world.opening
  const run = await spool.readPending(lane.id, { ...bounds, payloadsMax: 1 + random.below(8) })
  if (run === null || opening !== world.opening) return
  const ids = store(world, run.contents, lane.provider)
  const isRemoved = await spool.returnPending(run, Buffer.from(`park ${run.lane} ${run.firstSeq}`))
  if (opening !== world.opening || !isRemoved) return
  returns.parked += ids.length
  rules.onlyInEngine(ids)
}

export async function returnBatch(world: World): Promise<void> {
  const { spool, rules, settling, returns } = world
  const batch = pickUntried(world, ({ batchId }) => !rules.answered(batchId) && !world.answered.has(batchId))
  if (batch === null || spool.holdReason() === 'store_lost') return
  settling.add(batch.batchId)
  const opening = world.opening
  const loaded = await spool.load(batch)
  if (opening !== world.opening) return
  if (loaded.kind !== 'content') fail('nothing was damaged')
  const { content } = loaded
  const contents = content.payloadIds().map((payloadId, index) => ({
    payloadId,
    json: content.payload(index),
    attempts: content.attempts()[index] ?? 0,
    committedAt: 0,
  }))
  const ids = store(world, contents, batch.provider)
  const each: PayloadSettlement = { kind: 'returned', reason: 'PARKED', detail: 'by the model' }
  const settlement = { payloads: contents.map(() => each), requestId: null }
  const removed = spool.settle(batch, settlement, Buffer.from(batch.batchId)).then(() => {
    if (opening !== world.opening) return
    returns.parked += ids.length
    rules.voided(batch.batchId)
    rules.onlyInEngine(ids)
  })
  track(world, removed)
}

/** The engine has them from now on. */
function store({ rules, engine }: World, contents: readonly PendingPayload[], provider: string): string[] {
  for (const { json, attempts } of contents)
    engine.push({ name: nameIn(json), json: json.toString(), attempts, provider })
  const ids = contents.map(({ payloadId }) => payloadId)
  rules.inEngine(ids)
  return ids
}

export function takeBackSome(world: World): void {
  const { random, engine } = world
  if (engine.length > 0 && mayTake(world)) takeBack(world, engine.splice(random.below(engine.length), 1))
}

export function takeBackAll(world: World): void {
  if (mayTake(world)) takeBack(world, world.engine.splice(0))
}

function mayTake({ spool, mapping }: World): boolean {
  return spool.holdReason() === null && mapping.restored
}

function takeBack(world: World, taken: readonly Parked[]): void {
  const { spool, rules, engine, returns } = world
  if (taken.length === 0) return
  const payloads = taken.map(({ name, json, attempts, provider }) => ({
    ...payloadNamed(name, { provider, deviceTime: isLateName(name) ? -1 : 1 }),
    json,
    attempts,
  }))
  const ids = payloads.map(({ payloadId }) => payloadId)
  const isLost = () => {
    // It may be on the disk all the same.
    rules.mayRepeat(ids)
    engine.push(...taken)
  }
  world.ifLost.add(isLost)
  const exchanged = spool.exchange(exchangeOf({ payloads })).then(
    () => {
      if (!world.ifLost.delete(isLost)) return
      returns.takenBack += ids.length
      rules.leftEngine(ids)
    },
    (error: unknown) => {
      if (world.ifLost.delete(isLost)) isLost()
      throw error
    },
  )
  track(world, exchanged)
}

function nameIn(json: Buffer): string {
  return (JSON.parse(json.toString()) as { deviceIdentifier: { id: string } }).deviceIdentifier.id
}
