// model.ts: random histories of the spool, held against a small model after each step.
//
// The world: devices that resend what was not acknowledged, a service that remembers what it accepted under
// which batchId, a disk whose power can go, a write that can fail. The disk here is memory (5,000 histories in
// CI); the same promises are shown on real LevelDB and real processes in test/crash.
//
// What must hold after every step, judged on what a power cut would leave right now:
//   - whatever was acknowledged is in exactly one place: a chunk, a dead letter, a shelf, the state of the mapping,
//     or accepted by the service
//   - no payload was accepted under two batchIds, unless the service had answered `failed` in between
//   - a batch is the same bytes under the same batchId at each submission
//   - a number of a lane is never given to two payloads; claims never overlap and never change
//   - acks come in the order of the messages
//   - a live lane holds nothing that was late when it came
//   - a settled batch has its receipt until that was forgotten, a batch that is not settled has none, and no number
//     is given to two receipts
//   - appended = settled + open in each lane, when no write runs

import { assertNever } from '../../src/std/assert.ts'
import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import type { Spool } from '../../src/spool/spool.ts'
import { openSpool } from '../../src/spool/spool.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'
import { createMemoryDisk } from '../support/memory-store.ts'
import { createRandom } from '../support/random.ts'
import { emptyDisk, keptNamed, deadLetterNamed, smallOptions } from '../support/spool-world.ts'
import { createJudge, fail, idOf } from './judge.ts'
import {
  checkSome,
  createLanes,
  followSome,
  forgetAll,
  receiptFor,
  resealSome,
  rotateSome,
  turnSome,
} from './lanes.ts'
import { closeSome, createMapping } from './mapping.ts'
import { createShelves, emptyAll, releaseSome, requeueSome, shelfOf } from './shelves.ts'
import { isLateName, payloadOf, track, type Lanes, type Message, type World } from './world.ts'

export type ModelReport = {
  sequences: number
  steps: number
  acked: number
  crashes: number
  failures: number
  /** Exchanges that took something, and those that were refused or lost. */
  exchanged: number
  refused: number
} & Lanes

/** Runs `sequences` histories; throws with the seed and the steps of the first that breaks a rule. */
export async function runModel(options: {
  firstSeed: number
  sequences: number
  steps: number
}): Promise<ModelReport> {
  const report: ModelReport = {
    sequences: 0,
    steps: 0,
    acked: 0,
    crashes: 0,
    failures: 0,
    exchanged: 0,
    refused: 0,
    ...createLanes(),
  }
  for (let index = 0; index < options.sequences; index += 1) {
    await runSequence(options.firstSeed + index, options.steps, report)
    report.sequences += 1
  }
  return report
}

async function runSequence(seed: number, steps: number, report: ModelReport): Promise<void> {
  const world = await createWorld(seed)
  try {
    for (let index = 0; index < steps; index += 1) {
      const step = chooseStep(world)
      world.steps.push(step.name)
      await step.run(world)
      await turn()
      world.judge.check(world.disk.durable())
      report.steps += 1
      if (step.name.startsWith('crash')) report.crashes += 1
      if (step.name.startsWith('fail')) report.failures += 1
    }
    await drainAll(world)
    report.exchanged += world.shelves.exchanged
    report.refused += world.shelves.refused
    world.lanes.dropped = world.judge.dropped()
    for (const kind of laneKinds) report[kind] += world.lanes[kind]
    report.acked += world.messages.filter(({ state }) => state === 'acked').length
  } catch (error) {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
    throw new Error(`seed ${seed}: ${why}\nsteps: ${world.steps.join(', ')}`, { cause: error })
  }
}

async function createWorld(seed: number): Promise<World> {
  const random = createRandom(seed)
  const world: Omit<World, 'spool'> = {
    seed,
    random,
    clock: createFakeClock(),
    disk: createMemoryDisk(),
    judge: createJudge(),
    mapping: createMapping(),
    shelves: createShelves(),
    lanes: createLanes(),
    messages: [],
    answered: new Map(),
    settling: new Set(),
    running: new Set(),
    epoch: 0,
    steps: [],
    ids: 0,
    ackOrder: { given: 0, asked: 0 },
  }
  return Object.assign(world, { spool: await open(world) })
}

async function open(world: Omit<World, 'spool'>): Promise<Spool> {
  const { clock, disk, random, mapping } = world
  const spool = await openSpool(
    {
      clock,
      newId: () => {
        world.ids += 1
        return `00000000-0000-4000-8000-${String(world.ids).padStart(12, '0')}`
      },
      random: random.next,
      emit(event) {
        if (event.kind === 'conservation_broken') fail(`conservation: ${JSON.stringify(event)}`)
        if (event.kind === 'chunk_damaged' || event.kind === 'record_damaged')
          fail(`nothing was damaged: ${JSON.stringify(event)}`)
        if (event.kind === 'records_unbalanced') fail(`conservation: ${JSON.stringify(event)}`)
      },
      openStore: disk.boot(),
      disk: emptyDisk,
      isLate: (_provider, deviceTime) => deviceTime < 0,
    },
    smallOptions('memory', { bytesMax: 16 * 1024, backfillLanesMax: 4 }),
  )
  await mapping.follow(spool)
  return spool
}

const laneKinds = ['rotated', 'resealed', 'turned', 'followed', 'dropped'] as const

type Step = { name: string; weight: number; run: (world: World) => void | Promise<void> }

const steps: Step[] = [
  { name: 'append', weight: 30, run: appendNew },
  { name: 'resend', weight: 10, run: resend },
  { name: 'bury', weight: 3, run: (world) => publishNew(world, 'letter') },
  { name: 'part', weight: 8, run: (world) => publishNew(world, 'part') },
  { name: 'close record', weight: 4, run: closeSome },
  { name: 'keep', weight: 7, run: (world) => publishNew(world, 'kept') },
  { name: 'release', weight: 6, run: releaseSome },
  { name: 'requeue', weight: 3, run: requeueSome },
  { name: 'seal', weight: 14, run: sealSome },
  { name: 'submit', weight: 16, run: submitSome },
  { name: 'settle', weight: 14, run: settleSome },
  { name: 'rotate', weight: 4, run: rotateSome },
  { name: 'reseal', weight: 6, run: resealSome },
  { name: 'turn', weight: 6, run: turnSome },
  { name: 'follow', weight: 4, run: followSome },
  { name: 'check', weight: 1, run: checkSome },
  { name: 'hold disk', weight: 8, run: ({ disk }) => disk.hold() },
  { name: 'release disk', weight: 16, run: release },
  { name: 'advance', weight: 4, run: advance },
  { name: 'fail write', weight: 2, run: failWrite },
  { name: 'crash', weight: 3, run: crash },
  { name: 'restart', weight: 1, run: restart },
]

const totalWeight = steps.reduce((sum, { weight }) => sum + weight, 0)

function chooseStep({ random }: World): Step {
  let place = random.below(totalWeight)
  for (const step of steps) {
    place -= step.weight
    if (place < 0) return step
  }
  throw new Error('the weights cover every place')
}

// ---------------------------------------------------------------------------- devices

function appendNew(world: World): void {
  const { random, messages } = world
  const name = `m${messages.length}`
  const parts = Array.from(
    { length: 1 + random.below(random.chance(0.1) ? 9 : 3) },
    (_, index) => `${name}.${index}`,
  )
  const message: Message = { name, parts, kind: 'payloads', provider: random.pick(['a', 'b']), state: 'new' }
  messages.push(message)
  publish(world, message, false)
}

function publishNew(world: World, kind: Exclude<Message['kind'], 'payloads'>): void {
  const name = `${kind}${world.messages.length}`
  const message: Message = { name, parts: [name], kind, provider: 'a', state: 'new' }
  world.messages.push(message)
  publish(world, message, false)
}

/** A device that saw no ack sends again with DUP; sometimes one sends again although it was acked. */
function resend(world: World): void {
  const { random, messages } = world
  if (messages.length === 0) return
  const message = random.pick(messages.slice(-20))
  publish(world, message, true)
}

function publish(world: World, message: Message, dup: boolean): void {
  const { spool, ackOrder, judge, mapping } = world
  // As ingest does: without its state the mapping takes nothing.
  if (spool.holdReason !== null || !mapping.restored) return
  for (const part of message.parts) {
    judge.offered(idOf(part), isLateName(part))
    give(world, message, part, dup)
  }
  if (message.state === 'new') message.state = 'sent'
  const epoch = world.epoch
  ackOrder.asked += 1
  const asked = ackOrder.asked
  spool.endMessage((fault) => {
    if (epoch !== world.epoch) fail('an ack came from before the crash')
    if (asked <= ackOrder.given) fail(`acks out of order: ${asked} after ${ackOrder.given}`)
    ackOrder.given = asked
    if (fault !== null) return
    message.state = 'acked'
    for (const part of message.parts) judge.acked(idOf(part))
    // The device forgets the message now: what a power cut would leave must hold it.
    judge.check(world.disk.durable())
  })
}

function give(
  { spool, mapping }: World,
  { kind, provider, name }: Message,
  part: string,
  dup: boolean,
): void {
  switch (kind) {
    case 'payloads':
      spool.append(payloadOf(part, { provider, padding: part.length % 7 === 0 ? 200 : 20 }), dup)
      return
    case 'letter': {
      const { deadLetter, windowKey } = deadLetterNamed(part)
      spool.addDeadLetter(deadLetter, windowKey, dup)
      return
    }
    case 'kept': {
      const device = name.length % 2 === 0 ? 'even' : null
      const { message, windowKey } = keptNamed(part, { shelf: shelfOf(name), device })
      spool.keepMessage(message, windowKey, dup)
      return
    }
    case 'part':
      if (spool.addWindowKey(deadLetterNamed(part).windowKey, dup) === 'stored') mapping.add(spool, part)
      return
    default:
      assertNever(kind)
  }
}

// ---------------------------------------------------------------------------- delivery

function sealSome(world: World): void {
  const { random, spool, judge } = world
  const lanes = spool.lanes().filter(({ pending }) => pending > 0)
  if (lanes.length === 0) return
  const lane = random.pick(lanes)
  const limits = { payloadsMax: 1 + random.below(8), bodyBytesMax: 300 + random.below(3000) }
  const epoch = world.epoch
  track(
    world,
    spool.seal(lane.id, limits).then((batch) => {
      if (batch === null || epoch !== world.epoch) return
      if (batch.payloads > limits.payloadsMax) fail('a batch is larger than its limit')
      // From now on it may be sent: so it must be durable.
      judge.sealed(batch, world.disk.durable())
    }),
  )
}

async function submitSome(world: World): Promise<void> {
  const { random, spool, judge, answered } = world
  const batches = spool.batches().filter(({ batchId }) => judge.knows(batchId))
  if (batches.length === 0) return
  const batch = random.pick(batches)
  if (answered.has(batch.batchId) || world.settling.has(batch.batchId)) return
  const epoch = world.epoch
  const loaded = await spool.load(batch)
  if (epoch !== world.epoch) return
  if (loaded.kind !== 'content') fail('nothing was damaged')
  else if (!judge.answered(batch.batchId) && random.chance(0.15)) judge.refused(batch, loaded.content)
  else {
    const { content } = loaded
    const fates = judge.submitted(batch, content, () => chooseFate(world))
    // The answer may be lost on its way back: then the same batch goes again.
    if (random.chance(0.8)) answered.set(batch.batchId, { batch, fates })
  }
}

function chooseFate({ random }: World): PayloadSettlement {
  const failure = { payloadId: '', errorType: 'Internal', errorMessage: 'no', validationErrorDetails: [] }
  if (random.chance(0.75)) return { kind: 'delivered' }
  if (random.chance(0.7)) {
    return { kind: 'retry', schedule: random.pick(['default', 'Validation']), step: random.below(2), failure }
  }
  return { kind: 'dead', reason: 'Internal', detail: 'no', failure }
}

function settleSome(world: World): void {
  const { random, spool, answered } = world
  if (answered.size === 0) return
  // Any of them: a later batch may settle before an earlier one.
  const { batch, fates } = random.pick([...answered.values()])
  answered.delete(batch.batchId)
  world.settling.add(batch.batchId)
  const all = fates.every(({ kind }) => kind === 'delivered')
  const receipt = receiptFor(world, batch)
  track(world, spool.settle(batch, { payloads: all ? 'all delivered' : fates, requestId: 'r' }, receipt))
}

// ---------------------------------------------------------------------------- the disk and the power

async function release(world: World): Promise<void> {
  world.disk.release()
  await turn()
}

async function advance(world: World): Promise<void> {
  await world.clock.advance(world.random.pick([10, 1000, 60_000]))
}

async function failWrite(world: World): Promise<void> {
  const { disk, random, clock, answered } = world
  disk.failNextWrite({ reachesDisk: random.chance(0.5), ...(random.chance(0.3) ? { code: 'ENOSPC' } : {}) })
  publish(world, { name: 'x', parts: [], kind: 'payloads', provider: 'a', state: 'new' }, false)
  appendNew(world)
  disk.release()
  await Promise.all(world.running)
  await turn()
  // The keeper opens the store again after a pause; answers of before are void.
  answered.clear()
  world.settling.clear()
  for (let round = 0; round < 5 && world.spool.holdReason === 'store_lost'; round += 1)
    await clock.advance(1000)
}

async function crash(world: World): Promise<void> {
  const { disk, random } = world
  world.epoch += 1
  world.answered.clear()
  world.settling.clear()
  disk.crash({ keepRunning: random.chance(0.5) })
  world.judge.check(disk.durable())
  world.ackOrder.given = world.ackOrder.asked
  world.running.clear()
  // The timers of the dead process are gone with it.
  world.clock = createFakeClock(world.clock.now())
  world.spool = await open(world)
}

async function restart(world: World): Promise<void> {
  world.disk.release()
  await turn()
  await Promise.all(world.running)
  await world.spool.close()
  world.epoch += 1
  world.answered.clear()
  world.settling.clear()
  world.ackOrder.given = world.ackOrder.asked
  world.spool = await open(world)
}

/** In the end every device gets its ack, everything is delivered, and nothing is left. */
async function drainAll(world: World): Promise<void> {
  const { disk, judge, messages } = world
  disk.heal()
  disk.release()
  await Promise.all(world.running)
  for (let round = 0; messages.some(({ state }) => state !== 'acked'); round += 1) {
    if (round > 50) fail('a device never gets its ack')
    disk.release()
    await turn()
    await Promise.all(world.running)
    if (world.spool.holdReason === 'store_lost') {
      world.answered.clear()
      world.settling.clear()
      await world.clock.advance(1000)
    }
    for (const message of messages) if (message.state !== 'acked') publish(world, message, true)
    await turn()
    await deliverAll(world)
  }
  await emptyAll(world)
  await deliverAll(world)
  await forgetAll(world)
  // What is drained for good is looked for from time to time.
  await world.clock.advance(61_000)
  judge.finish(world.spool, disk.durable())
  await world.spool.close()
}

async function deliverAll(world: World): Promise<void> {
  const { spool, disk, judge, answered } = world
  if (spool.holdReason === 'store_lost') return
  for (let round = 0; round < 1000; round += 1) {
    for (const lane of spool.lanes()) {
      if (lane.pending === 0) continue
      const batch = await spool.seal(lane.id, { payloadsMax: 50, bodyBytesMax: 1e6 })
      if (batch === null) fail(`lane ${lane.id} has ${lane.pending} pending and nothing to seal`)
      else judge.sealed(batch, disk.durable())
    }
    const batches = spool.batches()
    if (batches.length === 0) return
    for (const batch of batches) {
      const loaded = await spool.load(batch)
      if (loaded.kind !== 'content') return fail('nothing was damaged')
      const known = answered.get(batch.batchId)
      answered.delete(batch.batchId)
      const fates = known?.fates ?? judge.submitted(batch, loaded.content, () => ({ kind: 'delivered' }))
      await spool.settle(batch, { payloads: fates, requestId: 'r' }, receiptFor(world, batch))
      judge.check(disk.durable())
    }
  }
  fail('the spool never runs empty')
}
