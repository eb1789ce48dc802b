// model.ts: random histories of the spool, checked against a small model after each step.
//
// Parts: devices that send unacknowledged messages again, a service that keeps what it accepted under which
// batchId, power cuts, and failed writes. The disk is in memory, so that thousands of histories fit into CI.
// test/crash shows the same guarantees on real LevelDB and real processes.
//
// Rules that hold after every step, on what a power cut would leave at that moment (rules.ts):
//   - everything acknowledged is in exactly one place: a chunk, a dead letter, a shelf, the mapping state, or accepted
//     by the service
//   - no payload is accepted under two batchIds, unless the service answered `failed` in between
//   - a batch has the same bytes under the same batchId at each submission
//   - a number of a lane is never assigned to two payloads; claims never overlap and never change
//   - acks come in the order of the messages
//   - a live lane holds no payload that was late on arrival
//   - what was parked at the server that messages came from is there
//   - a settled batch has its receipt until that is forgotten, a batch that is not settled has none, and no number is
//     assigned to two receipts
//   - appended = settled + open in each lane, when no write runs

import { assertNever } from '../../src/std/assert.ts'
import type { LaneId } from '../../src/domain/ids.ts'
import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import type { SealLimits, Spool } from '../../src/spool/spool.ts'
import { openSpool } from '../../src/spool/spool.ts'
import { createFakeClock, turn } from '../support/fake-clock.ts'
import { createMemoryDisk } from '../support/memory-store.ts'
import { createRandom } from '../support/random.ts'
import {
  createMemoryFile,
  emptyDisk,
  keptNamed,
  deadLetterNamed,
  smallOptions,
} from '../support/spool-world.ts'
import { createRules, fail, idOf } from './rules.ts'
import {
  checkSome,
  createLanes,
  followSome,
  forgetAll,
  receiptFor,
  resealSome,
  checkClaimSums,
  rotateSome,
  setHeldSome,
  setOperationSome,
} from './batch-steps.ts'
import { closeSome, createMapping } from './state-steps.ts'
import { parkSome, returnBatch, takeBackAll, takeBackSome } from './return-steps.ts'
import { createShelves, emptyAll, releaseSome, requeueSome, shelfOf } from './kept-steps.ts'
import {
  isLateName,
  payloadOf,
  track,
  type Lanes,
  type Message,
  type Returns,
  type World,
} from './model-world.ts'

export type ModelReport = {
  sequences: number
  steps: number
  acked: number
  crashes: number
  failures: number
  /** Exchanges that took something, and those that were refused or lost. */
  exchanged: number
  refused: number
} & Lanes &
  Returns

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
    ...newReturns(),
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
      world.rules.check(world.disk.durable())
      checkClaimSums(world)
      report.steps += 1
      if (step.name.startsWith('crash')) report.crashes += 1
      if (step.name.startsWith('fail')) report.failures += 1
    }
    await drainAll(world)
    report.exchanged += world.shelves.exchanged
    report.refused += world.shelves.refused
    world.lanes.dropped = world.rules.dropped()
    for (const kind of laneKinds) report[kind] += world.lanes[kind]
    for (const kind of returnKinds) report[kind] += world.returns[kind]
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
    mark: createMemoryFile(),
    rules: createRules(),
    mapping: createMapping(),
    shelves: createShelves(),
    lanes: createLanes(),
    returns: newReturns(),
    engine: [],
    ifLost: new Set(),
    messages: [],
    answered: new Map(),
    settling: new Set(),
    running: new Set(),
    opening: 0,
    steps: [],
    ids: 0,
    ackOrder: { given: 0, asked: 0 },
  }
  return Object.assign(world, { spool: await open(world) })
}

async function open(world: Omit<World, 'spool'>): Promise<Spool> {
  const { clock, disk, mark, random, mapping } = world
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
        if (event.kind === 'writes_missing') fail(`nothing is missing: ${JSON.stringify(event)}`)
        if (event.kind === 'records_unbalanced') fail(`conservation: ${JSON.stringify(event)}`)
      },
      openStore: disk.boot(),
      disk: { ...emptyDisk, openFixedFile: (_path, _name, bytes) => mark.open(bytes) },
      isLate: (_provider, deviceTime) => deviceTime < 0,
    },
    smallOptions('memory', { bytesMax: 16 * 1024, backfillLanesMax: 4 }),
  )
  await mapping.follow(spool)
  return spool
}

const laneKinds = [
  'sealedTogether',
  'rotated',
  'resealed',
  'operationSet',
  'heldSet',
  'followed',
  'dropped',
] as const

const returnKinds = ['parked', 'takenBack'] as const

function newReturns(): Returns {
  return { parked: 0, takenBack: 0 }
}

type Step = { name: string; weight: number; run: (world: World) => void | Promise<void> }

const steps: Step[] = [
  { name: 'append', weight: 30, run: appendNew },
  { name: 'resend', weight: 10, run: resend },
  { name: 'add dead letter', weight: 3, run: (world) => publishNew(world, 'deadLetter') },
  { name: 'put state', weight: 8, run: (world) => publishNew(world, 'part') },
  { name: 'close record', weight: 4, run: closeSome },
  { name: 'keep', weight: 7, run: (world) => publishNew(world, 'kept') },
  { name: 'release', weight: 6, run: releaseSome },
  { name: 'requeue', weight: 3, run: requeueSome },
  { name: 'seal', weight: 14, run: sealSome },
  { name: 'submit', weight: 16, run: submitSome },
  { name: 'settle', weight: 14, run: settleSome },
  { name: 'rotate', weight: 4, run: rotateSome },
  { name: 'reseal', weight: 6, run: resealSome },
  { name: 'set operation', weight: 6, run: setOperationSome },
  { name: 'set held', weight: 4, run: setHeldSome },
  { name: 'follow', weight: 4, run: followSome },
  { name: 'park', weight: 4, run: parkSome },
  { name: 'return batch', weight: 2, run: returnBatch },
  { name: 'take back', weight: 4, run: takeBackSome },
  { name: 'check', weight: 1, run: checkSome },
  { name: 'hold disk', weight: 8, run: ({ disk }) => disk.hold() },
  { name: 'release disk', weight: 16, run: release },
  { name: 'advance', weight: 4, run: advance },
  { name: 'fail write', weight: 2, run: failWrite },
  { name: 'crash', weight: 4, run: crash },
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
  publish(world, message)
}

function publishNew(world: World, kind: Exclude<Message['kind'], 'payloads'>): void {
  const name = `${kind}${world.messages.length}`
  const message: Message = { name, parts: [name], kind, provider: 'a', state: 'new' }
  world.messages.push(message)
  publish(world, message)
}

/** A device that saw no ack sends again with DUP; sometimes one sends again although it was acked. */
function resend(world: World): void {
  const { random, messages } = world
  if (messages.length === 0) return
  const message = random.pick(messages.slice(-20))
  publish(world, message)
}

function publish(world: World, message: Message): void {
  const { spool, ackOrder, rules, mapping } = world
  // As ingest does: without its state the mapping takes nothing.
  if (spool.holdReason() !== null || !mapping.restored) return
  for (const part of message.parts) {
    rules.offered(idOf(part), isLateName(part))
    give(world, message, part)
  }
  if (message.state === 'new') message.state = 'sent'
  const opening = world.opening
  ackOrder.asked += 1
  const asked = ackOrder.asked
  spool.endMessage((fault) => {
    if (opening !== world.opening) fail('an ack came from before the crash')
    if (asked <= ackOrder.given) fail(`acks out of order: ${asked} after ${ackOrder.given}`)
    ackOrder.given = asked
    if (fault !== null) return
    message.state = 'acked'
    for (const part of message.parts) rules.acked(idOf(part))
    // The device forgets the message now: what a power cut would leave must hold it.
    rules.check(world.disk.durable())
  })
}

function give({ spool, mapping, random }: World, { kind, provider, name }: Message, part: string): void {
  switch (kind) {
    case 'payloads':
      spool.append(payloadOf(part, { provider, padding: part.length % 7 === 0 ? 200 : 20 }))
      return
    case 'deadLetter': {
      const { deadLetter, windowKey } = deadLetterNamed(part)
      if (spool.addWindowKey(windowKey) === 'stored') spool.addDeadLetter(deadLetter)
      return
    }
    case 'kept': {
      const device = name.length % 2 === 0 ? 'even' : null
      const { message, windowKey } = keptNamed(part, { shelf: shelfOf(name), device })
      if (spool.addWindowKey(windowKey) === 'stored') spool.keepMessage(message)
      return
    }
    case 'part':
      if (spool.addWindowKey(deadLetterNamed(part).windowKey) === 'stored')
        mapping.add(spool, part, { isLate: random.pick([true, true, false, null]) })
      return
    default:
      assertNever(kind)
  }
}

// ---------------------------------------------------------------------------- delivery

/** Up to three batches of a lane, whose seals run together. */
function sealSome(world: World): void {
  const { random, spool } = world
  const lanes = spool.lanes().filter(({ pending }) => pending > 0)
  if (lanes.length === 0) return
  const lane = random.pick(lanes)
  const limits = { payloadsMax: 1 + random.below(8), bodyBytesMax: 300 + random.below(3000) }
  const timestamp = random.chance(0.3) ? world.clock.now() - random.below(60_000) : undefined
  const seals = random.chance(0.5) ? 1 : 1 + random.below(3)
  for (let number = 0; number < seals; number += 1)
    sealOne(world, lane.id, { ...limits, timestamp }, number > 0)
}

function sealOne(world: World, lane: LaneId, limits: SealLimits, isTogether: boolean): void {
  const { spool, rules, lanes, opening } = world
  const { timestamp, payloadsMax } = limits
  track(
    world,
    spool.seal(lane, limits).then((batch) => {
      if (batch === null || opening !== world.opening) return
      if (timestamp !== undefined && batch.timestamp !== timestamp) fail('a batch has another timestamp')
      if (batch.payloads > payloadsMax) fail('a batch is larger than its limit')
      // From now on it may be sent: so it must be durable.
      rules.sealed(batch, world.disk.durable())
      if (isTogether) lanes.sealedTogether += 1
    }),
  )
}

async function submitSome(world: World): Promise<void> {
  const { random, spool, rules, answered } = world
  const batches = spool.batches().filter(({ batchId }) => rules.knows(batchId))
  if (batches.length === 0) return
  const batch = random.pick(batches)
  if (answered.has(batch.batchId) || world.settling.has(batch.batchId)) return
  const opening = world.opening
  const loaded = await spool.load(batch)
  if (opening !== world.opening) return
  if (loaded.kind !== 'content') fail('nothing was damaged')
  else if (!rules.answered(batch.batchId) && random.chance(0.15)) rules.refused(batch, loaded.content)
  else {
    const { content } = loaded
    const settlements = rules.submitted(batch, content, () => chooseFate(world))
    // The answer may be lost on its way back: then the same batch goes again.
    if (random.chance(0.8)) answered.set(batch.batchId, { batch, settlements })
  }
}

function chooseFate({ random }: World): PayloadSettlement {
  const failure = { payloadId: '', errorType: 'Internal', errorMessage: 'no', validationErrorDetails: [] }
  if (random.chance(0.75)) return { kind: 'delivered' }
  if (random.chance(0.7)) {
    const retry = { kind: 'retry', step: random.below(2), failure } as const
    const schedule = random.pick(['default', 'Validation'])
    return random.chance(0.7)
      ? { ...retry, schedule }
      : { ...retry, schedule, uncounted: random.pick(['outage', 'no_room'] as const) }
  }
  return { kind: 'dead', reason: 'Internal', detail: 'no', failure }
}

function settleSome(world: World): void {
  const { random, spool, answered } = world
  if (answered.size === 0) return
  // Any of them: a later batch may settle before an earlier one.
  const { batch, settlements } = random.pick([...answered.values()])
  answered.delete(batch.batchId)
  world.settling.add(batch.batchId)
  const all = settlements.every(({ kind }) => kind === 'delivered')
  const receipt = receiptFor(world, batch)
  track(
    world,
    spool.settle(batch, { payloads: all ? 'all delivered' : settlements, requestId: 'r' }, receipt),
  )
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
  publish(world, { name: 'x', parts: [], kind: 'payloads', provider: 'a', state: 'new' })
  appendNew(world)
  disk.release()
  await Promise.all(world.running)
  await turn()
  // The supervisor opens the store again after a pause; answers from before are void.
  answered.clear()
  world.settling.clear()
  for (let round = 0; round < 5 && world.spool.holdReason() === 'store_lost'; round += 1)
    await clock.advance(1000)
}

async function crash(world: World): Promise<void> {
  const { disk, random } = world
  world.opening += 1
  world.answered.clear()
  world.settling.clear()
  disk.crash({ keepRunning: random.chance(0.5) })
  world.rules.check(disk.durable())
  world.ackOrder.given = world.ackOrder.asked
  world.running.clear()
  for (const redeliver of world.ifLost) redeliver()
  world.ifLost.clear()
  // Without the mark, the database alone must show which numbers were given.
  if (random.chance(0.8)) world.mark = createMemoryFile()
  // A crash also ends the timers of the process.
  world.clock = createFakeClock(world.clock.now())
  world.spool = await open(world)
}

async function restart(world: World): Promise<void> {
  world.disk.release()
  await turn()
  await Promise.all(world.running)
  await world.spool.close()
  world.opening += 1
  world.answered.clear()
  world.settling.clear()
  world.ackOrder.given = world.ackOrder.asked
  world.spool = await open(world)
}

/** At the end every device gets its ack, everything is delivered, and the spool is empty. */
async function drainAll(world: World): Promise<void> {
  const { disk, rules, messages } = world
  disk.heal()
  disk.release()
  await Promise.all(world.running)
  for (let round = 0; messages.some(({ state }) => state !== 'acked'); round += 1) {
    if (round > 50) fail('a device never gets its ack')
    disk.release()
    await turn()
    await Promise.all(world.running)
    if (world.spool.holdReason() === 'store_lost') {
      world.answered.clear()
      world.settling.clear()
      await world.clock.advance(1000)
    }
    for (const message of messages) if (message.state !== 'acked') publish(world, message)
    await turn()
    await deliverAll(world)
  }
  takeBackAll(world)
  disk.release()
  await Promise.all(world.running)
  if (world.engine.length > 0) fail('the engine cannot give back what it has')
  await emptyAll(world)
  await deliverAll(world)
  await forgetAll(world)
  // Drained lanes are searched at intervals.
  await world.clock.advance(61_000)
  rules.finish(world.spool, disk.durable())
  await world.spool.close()
  rules.closed(disk.durable())
}

async function deliverAll(world: World): Promise<void> {
  const { spool, disk, rules, answered } = world
  if (spool.holdReason() === 'store_lost') return
  for (let round = 0; round < 1000; round += 1) {
    for (const lane of spool.lanes()) {
      if (lane.pending === 0) continue
      const batch = await spool.seal(lane.id, { payloadsMax: 50, bodyBytesMax: 1e6 })
      if (batch === null) fail(`lane ${lane.id} has ${lane.pending} pending and nothing to seal`)
      else rules.sealed(batch, disk.durable())
    }
    const batches = spool.batches()
    if (batches.length === 0) return
    for (const batch of batches) {
      const loaded = await spool.load(batch)
      if (loaded.kind !== 'content') return fail('nothing was damaged')
      const known = answered.get(batch.batchId)
      answered.delete(batch.batchId)
      const settlements =
        known?.settlements ?? rules.submitted(batch, loaded.content, () => ({ kind: 'delivered' }))
      await spool.settle(batch, { payloads: settlements, requestId: 'r' }, receiptFor(world, batch))
      rules.check(disk.durable())
    }
  }
  fail('the spool never runs empty')
}
