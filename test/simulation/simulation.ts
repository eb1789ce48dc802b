// simulation.ts: a whole gateway under one seed. The real daemon runs in this process; Node's modules below it, time,
// disk, network, devices and service are simulated (hooks.ts, machine/, world/).
//
//   safety     devices send; faults of the disk, network and service; kills, power cuts, stops; an operator
//   liveness   faults stop. Within `livenessMs` of virtual time everything is acknowledged, delivered or a dead letter,
//              the verdict is ok and no condition is open
//
// The same seed gives the same run, to the byte of the log.

import { createHash } from 'node:crypto'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { createRandom, type Random } from '../support/random.ts'
import type { EndAct, World } from './acts/act.ts'
import { awayAct, bootClock, clockAct, dropAct, showSynchronized } from './acts/world-acts.ts'
import { backUp, diskAct, failedWrite, lowDisk, slowWrites, swapped } from './acts/disk-acts.ts'
import { createFlips } from './acts/flip-acts.ts'
import { createKeys } from './acts/key-acts.ts'
import { configPath, createDaemon, spoolPath } from './daemon.ts'
import { Database } from './machine/database.ts'
import { switchOn, type Machine } from './machine/machine.ts'
import { createCauses } from './oracle/conditions.ts'
import { createEnds } from './oracle/ends.ts'
import { wrongAtEnd, wronglyOpen, wrongSoFar } from './oracle.ts'
import { mayFail } from './delivery-plan.ts'
import { drawPlan, mqttPort, type FaultKind, type Plan } from './plan.ts'
import { engineHost, enginePort, queuesOf } from './engine-plan.ts'
import { createEngine } from './world/engine.ts'
import { createEngineFleet } from './world/engine-fleet.ts'
import { createFleet, type DevicePlan } from './world/fleet.ts'
import { createEngineOracle, type EngineOracle } from './oracle/engine.ts'
import { createEndpointWatch, everyMs, toldMs } from './oracle/endpoint-watch.ts'
import { createLaneEvents } from './oracle/lanes.ts'
import { wrongInLedger, type LedgerEntry } from './oracle/ledger.ts'
import { createLostPositions } from './oracle/lost-positions.ts'
import { createOpenConditions } from './oracle/open-conditions.ts'
import { createOutageEvents } from './oracle/repeats.ts'
import { createOperator } from './acts/operator.ts'
import { faultOf, hasSlowWrites } from './themes.ts'
import { weekOf } from './week.ts'
import { createService, isOneOf, type Payload } from './world/service.ts'
import { drawFault } from './world/service-faults.ts'

export type Run = {
  seed: number
  hash: string
  wrong: readonly string[]
  log: readonly string[]
  messages: number
  starts: number
  virtualMs: number
  events: number
  /** Kinds of events, and what else a run can meet, with how often. */
  reached: ReadonlyMap<string, number>
}

/** What is left out of a run, to make one that failed smaller. */
export type Smaller = {
  /** Instead of what the seed draws of time and faults: week.ts. */
  isWeek: boolean
  without: readonly string[]
  devices: number | null
  safetyS: number | null
}

const keyOfEnvironment = 'AKIASIMULATION000000'
const storePath = `${spoolPath}/store`
const markPath = `${spoolPath}/mark`
const noMarkShare = 0.3
const startMs = Date.UTC(2026, 0, 5, 6)
/** A probe may wait for a batch that is due. */
const probeSlackMs = 20_000
const livenessMs = 60 * 60_000
const healthyMs = 8 * 60_000
/** 18 requests in a row that succeed end a condition. */
const healthyEveryMs = 4000
/** What is held waits for a person or a time, not for requests. */
const heldEveryMs = 20_000
const lookEveryMs = everyMs
/** A patient person looks this long at what is held. */
const patienceMs = 2 * 60_000
/** As soon as all is delivered. */
const firstLookMs = 3000
/** Longer than a batch waits for its next try. */
const stuckPatienceMs = 11 * 60_000
/** They are on their way when the process ends. */
const lastAcksMs = 100
/** Of each read, so that what is known of devices is not read at once when they may connect. */
const slowReadMs = 30
/** Nothing is open: a request of before may end by its time-out. */
const looksToBeCalm = 4
/** Without messages the gateway looks at its disk and at its time, each second or less often: 140 on average. */
const idleMs = 20_000
const idleEventsMax = 250
/** Heartbeats of its connections, and custody looks ten times a second. */
const engineEventsMax = 800

export async function runSeed(
  seed: number,
  smaller: Smaller = { isWeek: false, without: [], devices: null, safetyS: null },
): Promise<Run> {
  const random = createRandom(seed)
  const plan = madeSmaller(drawPlan(seed, random), smaller)
  const machine = switchOn(startMs, createRandom(seed ^ 0x5bd1e995))
  const { kernel, disk } = machine
  kernel.turnMs = plan.turnMs
  const log: string[] = []
  const hash = createHash('sha256')
  const reached = new Map<string, number>()
  const reach = (state: string) => void reached.set(state, (reached.get(state) ?? 0) + 1)
  disk.world.write(configPath, plan.config(plan.delivery))
  disk.world.makeDirectory('/sim/run')
  if (!plan.hasClockBattery) showSynchronized(machine)
  const broken: string[] = []
  const ends = createEnds(machine, broken)
  const said = {
    lanes: createLaneEvents(),
    outages: createOutageEvents(),
    positions: createLostPositions(),
  }
  const daemon = createDaemon({
    machine,
    env: {
      AWS_ACCESS_KEY_ID: keyOfEnvironment,
      AWS_SECRET_ACCESS_KEY: 'simulated-secret-of-forty-characters-000',
    },
    spoolBounds: plan.spoolBounds,
    log(line) {
      log.push(line)
      hash.update(line)
    },
    observe(event: GatewayEvent) {
      reach(`event ${event.kind}`)
      for (const value of statesIn(event)) reach(`${event.kind} ${value}`)
      if (event.kind === 'gateway_starting') operator.started()
      if (event.kind === 'chunk_damaged' || event.kind === 'writes_missing')
        world.flips.reported(event.payloads)
      if (event.kind === 'store_lost') fleet.storeLost()
      if (event.kind === 'spool_refused') fleet.spoolRefused()
      if (event.kind === 'lane_rotated') rotated(world)
      if (event.kind === 'spool_held') fleet.held(true)
      if (event.kind === 'spool_resumed' || event.kind === 'gateway_starting') fleet.held(false)
      if (event.kind === 'spool_resumed') {
        fleet.resumed()
        resumed(world)
      }
      if (event.kind === 'endpoint_changed' && event.state === 'available')
        world.endpoints.available(event.provider, { atMs: kernel.monotonicMs, life: kernel.life })
      if (event.kind === 'endpoint_changed' && event.state === 'unavailable') {
        const { provider, why } = event
        const now = { atMs: kernel.monotonicMs, life: kernel.life }
        lookAtEndpoint(world, provider)
        if (/accepted none/.test(why))
          world.endpoints.outage(provider, now, (fromMs) => said.outages.has(provider, fromMs, now.atMs))
      }
      ends.observe(event)
      conditions.observe(event, { atMs: kernel.monotonicMs, life: kernel.life })
      for (const { observe } of [said.lanes, said.outages, said.positions]) observe(event, kernel.monotonicMs)
    },
    isExcused: (why) => ends.isExcused(why),
  })
  const { network } = machine
  const keys = createKeys(machine, createRandom(seed ^ 0x2c1b3c6d))
  const endOfFaultsAt = startMs + kernel.monotonicMs + plan.safetyMs
  const services = plan.providers.map(({ name, host, port, repeat, refusesEvery, answerMs }) =>
    createService(
      { kernel, network, random, reach },
      {
        provider: name,
        host,
        port,
        repeat,
        answerMs,
        payloadsMax: () => plan.delivery.payloadsMax,
        isRebuilt: (payloadId) => flips.batched.has(payloadId),
        isKnownKey: (id) => (plan.delivery.keysInFile ? keys.isKnown(id) : id === keyOfEnvironment),
        isInOrder: plan.everyMs.clock === 0 && plan.hasClockBattery,
        isReturned: (payloadId) => engine?.isParked(payloadId) === true,
        isDoomed: (payload) => deviceOf(plan, payload)?.isDoomed === true,
        // Later ones are accepted, so that something shows that the service accepts batches.
        isRefused: (payload) =>
          refusesEvery > 0 &&
          payload.signalTimestamp - (deviceOf(plan, payload)?.clockMs ?? 0) < endOfFaultsAt &&
          isOneOf(payload.payloadId, refusesEvery),
      },
    ),
  )
  const flips = createFlips(machine, services, createRandom(seed ^ 0x3ad8025f))
  const conditions = createOpenConditions(services, {
    troubles: ends.troubles,
    changedMs: () => operator.changedMs,
    mayHold: (name, reason) =>
      reason === 'repeated'
        ? plan.providers.some((one) => one.name === name && one.onRepeat === 'hold')
        : reason !== 'refused_repeat' || plan.delivery.onRefusedRepeat === 'hold',
    flips,
    probesMs: (plan.backoffS + 3 * plan.delivery.timeoutS) * 1000 + probeSlackMs,
    timeoutMs: plan.delivery.timeoutS * 1000,
  })
  const ofEngine = engineFleetOf(plan, machine, random)
  const fleet = ofEngine?.fleet ?? createFleet({ kernel, network, random, port: mqttPort }, plan.devices)
  const operator = createOperator({ machine, random, services, fleet, reach }, plan)
  const { troubles } = ends
  const engine: EngineOracle | null =
    ofEngine === null
      ? null
      : createEngineOracle({ ...ofEngine, services, troubles, acts: () => operator.acts }, ofEngine.plan)
  const world: World = {
    plan,
    machine,
    daemon,
    fleet,
    engine,
    services,
    keys,
    flips,
    operator,
    deadLetters: null,
    endpoints: createEndpointWatch(services, ends.troubles),
    conditions,
    said,
    random,
    reach,
    broken,
    ends,
    causes: createCauses({ machine, daemon, broken }),
    steps: [],
    last: { status: null, looks: 0 },
    isSwapped: false,
    isSettling: false,
  }
  fleet.onNewSession = () => cutSoon(world, machine.isDiskSlow ? cutShares.slowSession : cutShares.session)
  const endWatch = watchEndpoints(world)
  if (plan.theme === 'resends') disk.stall({ call: 'db-read', path: storePath, ms: slowReadMs })
  daemon.initSpool()
  await kernel.run(100)
  daemon.start()
  const endFaults = startFaults(world)
  const { positionLoss } = plan
  if (positionLoss !== null) {
    kernel.at(positionLoss.fromMs, () => losePosition(world, true))
    kernel.at(Math.min(positionLoss.toMs, plan.safetyMs), () => losePosition(world, false))
  }
  if (plan.rulesChange !== null) kernel.at(plan.rulesChange.atMs, operator.changeRules)
  // What cannot become right again ends the run.
  const judges = [fleet, ...(engine === null ? [] : [engine]), ...services, world.endpoints, conditions]
  const isDecided = () => broken.length > 0 || judges.some(({ wrong }) => wrong.length > 0)
  await kernel.run(plan.safetyMs, isDecided)
  endFaults()
  const endOfFaultsMs = kernel.monotonicMs
  world.isSettling = true
  fleet.faultsEnded()
  daemon.start()
  // The next line of the audit log ends the condition that none could be written.
  kernel.at(lookEveryMs, () => {
    const conditions = daemon.gateway?.status().conditions ?? []
    if (random.chance(0.7) || conditions.some(({ code }) => code === 'AUDIT_LOG_FAILED')) operator.probe()
  })
  if (!plan.isPatient) fleet.stopDoomed()
  await untilCalm(world, isDecided)
  fleet.stopNew()
  let wrong = [...wrongSoFar(knownOf(world)), ...daemon.ends, ...broken.slice(0, 3)]
  const endMs = kernel.monotonicMs + livenessMs
  let stuckSinceMs: number | null = null
  // A look takes as long as it waited for: some conditions stay open for an hour.
  for (let everyMs = firstLookMs; wrong.length === 0 && kernel.monotonicMs < endMs; everyMs *= 1.3) {
    await kernel.run(everyMs)
    look(world)
    if (isDecided()) break
    stuckSinceMs = isStuck(world) ? (stuckSinceMs ?? kernel.monotonicMs) : null
    if (stuckSinceMs !== null && kernel.monotonicMs - stuckSinceMs > stuckPatienceMs) {
      // A retry of before was refused after the devices had stopped, or the last requests opened a condition.
      stuckSinceMs = null
      await untilCalm(world, isDecided)
      fleet.stopNew()
    }
    if (!fleet.isIdle() || !isSettled(world)) continue
    await readDeadLetters(world)
    if (endOf(world).length === 0) break
  }
  const isRight = wrong.length === 0 && !isDecided()
  if (isRight) {
    await readDeadLetters(world)
    wrong = endOf(world)
    if (wrong.length > 0) {
      // The last batch may have been settled meanwhile, and its receipt is copied soon.
      await kernel.run(firstLookMs)
      await readDeadLetters(world)
      wrong = endOf(world)
    }
  } else if (wrong.length === 0) wrong = wrongSoFar(knownOf(world))
  endWatch()
  const idleMax = idleEventsMax + (engine === null ? 0 : engineEventsMax)
  let idleEvents = await eventsOf(machine, idleMs)
  // The last retries may still come in the first of them.
  if (idleEvents > idleMax) idleEvents = await eventsOf(machine, idleMs)
  if (isRight) wrong.push(...(await wrongLedger(world, endOfFaultsMs)))
  if (wrong.length === 0 && createRandom(seed ^ 0x6c078965).chance(lossShare))
    wrong.push(...(await wrongLoss(world, () => reached.get('event writes_missing') ?? 0)))
  if (idleEvents > idleMax) wrong.push(`${idleEvents} events in ${idleMs} ms in which nothing happens`)
  for (const what of broken.slice(0, 3)) if (!wrong.includes(what)) wrong.push(what)
  wrong.push(...world.endpoints.wrong, ...conditions.wrong.slice(0, 3))
  for (const why of daemon.ends) wrong.push(`a process ended by itself: ${why}`)
  hash.update(JSON.stringify([fleet.counters, services.map(({ counters }) => [...counters.faults])]))
  machine.kill()
  // The rest of the last turn must not meet the next machine.
  await kernel.run(0)
  return {
    seed,
    hash: hash.digest('hex').slice(0, 16),
    wrong,
    log: [...world.steps, ...log],
    messages: fleet.messages.length,
    starts: daemon.counters.starts,
    virtualMs: kernel.monotonicMs,
    events: kernel.counters.events,
    reached,
  }
}

/** The engine draws by itself. */
function engineFleetOf({ engine: plan, devices, seed }: Plan, { kernel, network }: Machine, random: Random) {
  if (plan === null) return null
  const place = { host: engineHost, port: enginePort, queues: queuesOf(plan) }
  const deps = { kernel, network, random: createRandom(seed ^ 0x6d0f3a95) }
  const engine = createEngine(deps, { ...place, stampsTime: plan.stampsTime })
  return { plan, engine, fleet: createEngineFleet({ kernel, random, engine }, devices, plan) }
}

function isHeld({ last }: World): boolean {
  return last.status?.lanes.some(({ held }) => held > 0) === true
}

/** Without new messages it stays as it is. */
function isStuck(world: World): boolean {
  const { status } = world.last
  return isHeld(world) || (status !== null && wronglyOpen(status, knownOf(world)).length > 0)
}

/** Something that spins shows itself where nothing happens. */
async function eventsOf({ kernel }: Machine, ms: number): Promise<number> {
  const { events } = kernel.counters
  await kernel.run(ms)
  return kernel.counters.events - events
}

/** Each value of these fields is a state of its own. */
function statesIn({ reason, outcome, end, cause }: Record<string, unknown>): string[] {
  const kind = typeof outcome === 'object' && outcome !== null && 'kind' in outcome ? outcome.kind : outcome
  return Object.entries({ reason, outcome: kind, end, cause }).flatMap(([field, value]) =>
    typeof value === 'string' ? [`${field} ${value}`] : [],
  )
}

/** Notes what the gateway says of itself. */
function look({ last, daemon, reach, broken, machine }: World): Status | null {
  const status = daemon.gateway?.status() ?? null
  last.status = status
  last.looks += 1
  for (const { code, what, why } of status?.conditions ?? []) {
    reach(`condition ${code}`)
    // No fault that is drawn here may break a sum.
    if (code === 'CONSERVATION_BROKEN' || code === 'RECORDS_UNBALANCED')
      broken.push(`condition ${code} ${what} at ${(machine.kernel.monotonicMs / 1000).toFixed(3)}: ${why}`)
  }
  return status
}

function madeSmaller(drawn: Plan, { isWeek, without, devices, safetyS }: Smaller): Plan {
  const plan = isWeek ? weekOf(drawn) : drawn
  const everyMs = { ...plan.everyMs }
  for (const kind of without) everyMs[kind as FaultKind] = 0
  const safetyMs = safetyS === null ? plan.safetyMs : safetyS * 1000
  return { ...plan, everyMs, safetyMs, devices: plan.devices.slice(0, devices ?? plan.devices.length) }
}

/**
 * What is measured over the last requests needs requests. What was refused once is a dead letter only when something
 * else was accepted since, and what is released may be held again. So the devices go on.
 */
async function untilCalm(world: World, isDecided: () => boolean): Promise<void> {
  const { plan, last, operator, fleet } = world
  const { kernel } = world.machine
  const releaseMs = kernel.monotonicMs + (plan.isPatient ? patienceMs : 0)
  const limitMs = kernel.monotonicMs + livenessMs
  let endMs = kernel.monotonicMs + healthyMs
  fleet.setRate(healthyEveryMs)
  let wasHeld = false
  for (let calm = 0; !isDecided() && calm < looksToBeCalm && kernel.monotonicMs < endMs;) {
    const { looks } = last
    await kernel.run(2 * lookEveryMs, () => last.looks > looks)
    calm = isCalm(world) ? calm + 1 : 0
    if (kernel.monotonicMs < releaseMs) continue
    // Of devices whose clocks are ahead nothing is accepted otherwise.
    if (calm === 0 && (last.status?.spool.quarantined ?? 0) > 0) operator.releaseKept()
    const held = isHeld(world)
    if (held !== wasHeld) fleet.setRate(held ? heldEveryMs : healthyEveryMs)
    wasHeld = held
    if (!held) continue
    operator.releaseHeld()
    endMs = Math.min(kernel.monotonicMs + healthyMs, limitMs)
  }
}

/** Nothing that waits can open a condition again. Fresh payloads always wait somewhere. */
function isCalm(world: World): boolean {
  const { status } = world.last
  if (status === null || wronglyOpen(status, knownOf(world)).length > 0) return false
  if (world.fleet.isAnyAway()) return false
  return status.lanes.every(
    ({ urgency, pending, sealed, held }) => held + sealed === 0 && (urgency !== 'retry' || pending === 0),
  )
}

function knownOf({ fleet, engine, services, operator, ends, plan, flips, said: { positions } }: World) {
  const isRefusedRepeatSplit = plan.delivery.onRefusedRepeat === 'split'
  const { retryDelays } = plan.delivery
  const { rulesChange } = plan
  const acts = [...operator.acts, ...(engine?.acts ?? [])]
  const circumstances = { retryDelays, rulesChange, acts, troubles: ends.troubles, isRefusedRepeatSplit }
  const { isConfigNew } = operator
  return { fleet, engine, services, positions, circumstances, isConfigNew, isPatient: plan.isPatient, flips }
}

function endOf(world: World): string[] {
  const { daemon, deadLetters, plan, said } = world
  const { disk } = world.machine
  const holding = plan.providers.filter(({ onRepeat }) => onRepeat === 'hold').map(({ name }) => name)
  return wrongAtEnd({
    ...knownOf(world),
    status: daemon.gateway?.status() ?? null,
    deadLetters: deadLetters ?? [],
    lanes: { events: said.lanes, afterMs: plan.delivery.backfillAfterS * 1000, epochMs: startMs },
    repeats: {
      outages: said.outages,
      holdsRepeated: (provider) => holding.includes(provider),
      holdsRefused: plan.delivery.onRefusedRepeat === 'hold',
    },
    store: disk.exists(storePath) ? disk.attachment(storePath) : null,
  })
}

function isSettled({ daemon }: World): boolean {
  const lanes = daemon.gateway?.status().lanes ?? []
  return lanes.every(({ pending, sealed, held }) => pending + sealed + held === 0)
}

/** Long lists take some time. */
const readsMs = 30_000

async function readDeadLetters(world: World): Promise<void> {
  let isRead = false
  world.operator.deadLetters((letters) => {
    world.deadLetters = letters
    isRead = true
  })
  await world.machine.kernel.run(readsMs, () => isRead)
}

/** Until the function that it returns is called. */
function watchEndpoints(world: World): () => void {
  const { plan, machine, endpoints, conditions } = world
  const { kernel, network } = machine
  let hasEnded = false
  const isCut = (host: string) => network.world.path(host).isRefusing
  let dueMs = 0
  const lookNow = () => {
    if (hasEnded) return
    kernel.at(Math.min(lookEveryMs, plan.lookEveryMs), lookNow)
    const now = { atMs: kernel.monotonicMs, life: kernel.life }
    if (now.atMs < dueMs && !world.isSettling) return
    dueMs = now.atMs + plan.lookEveryMs
    const status = look(world)
    if (world.isSettling && plan.positionLoss !== null) mendPositions(world)
    // Looks that are far apart say nothing of the time between them.
    if (status === null || (plan.lookEveryMs > lookEveryMs && !world.isSettling)) return
    endpoints.look(status, { ...now, isCut })
    conditions.look(status, now)
  }
  kernel.at(lookEveryMs, lookNow)
  return () => {
    hasEnded = true
  }
}

function lookAtEndpoint({ machine: { kernel }, daemon, endpoints }: World, provider: string): void {
  const { life } = kernel
  kernel.at(toldMs, () => {
    const status = kernel.life === life && !daemon.isStopping ? daemon.gateway?.status() : undefined
    if (status !== undefined) endpoints.told(status, provider, kernel.monotonicMs)
  })
}

function losePosition({ operator, said, machine: { kernel }, steps }: World, isLost: boolean): void {
  steps.push(`${(kernel.monotonicMs / 1000).toFixed(3)} the position is ${isLost ? 'lost' : 'there again'}\n`)
  said.positions.changed(isLost, kernel.monotonicMs)
  operator.losePosition(isLost)
}

/** The control socket may not have been there, and what was mapped again while nothing was found stays. */
function mendPositions(world: World): void {
  const { said, operator, last } = world
  if (said.positions.needsReload()) operator.losePosition(false)
  else if ((last.status?.spool.deadLetters ?? 0) > 0) operator.remapLost()
}

/** What was delivered just after the faults may be under the last of them. Receipts are copied later. */
const ledgerMs = 30_000

async function wrongLedger(
  { operator, services, plan, flips, machine: { kernel } }: World,
  endOfFaultsMs: number,
): Promise<string[]> {
  const entries: LedgerEntry[] = []
  // An answer ends where it took too long, and says where to go on.
  for (let next: string | null = ''; next !== null;) {
    const from: string = next === '' ? '' : `&after=${encodeURIComponent(next)}`
    let page: { entries: LedgerEntry[]; next: string | null } | null = null
    operator.ask(`/ledger?limit=10000${from}`, (reply) => {
      if (reply?.status === 200) page = reply.value as { entries: LedgerEntry[]; next: string | null }
    })
    await kernel.run(ledgerMs, () => page !== null)
    if (page === null) return ['the ledger was not read']
    const read: { entries: LedgerEntry[]; next: string | null } = page
    entries.push(...read.entries)
    next = read.next
  }
  const isWhole = plan.everyMs.powerCut === 0 && plan.everyMs.disk === 0
  const struck = new Set(flips.payloads.map(({ payloadId }) => payloadId))
  return wrongInLedger(services, { entries, wholeFromMs: isWhole ? 0 : endOfFaultsMs + ledgerMs, struck })
}

/** Seeds in which the disk loses, when all is over, the last write that it had confirmed. */
const lossShare = 0.04
const lossMs = 30_000

/** The next start says so. */
async function wrongLoss({ machine, daemon }: World, reports: () => number): Promise<string[]> {
  const { kernel, disk } = machine
  // One that has just ended is perhaps not in the mark, and nothing was told of it.
  await kernel.run(lossMs, () => machine.runningWrites.size === 0)
  machine.kill()
  // What is left of its last turn must not meet the next process.
  await kernel.run(0)
  const database = disk.exists(storePath) ? disk.attachment(storePath) : null
  if (!(database instanceof Database) || !database.loseLast()) return []
  const before = reports()
  daemon.start()
  await kernel.run(lossMs, () => reports() > before)
  return reports() > before ? [] : ['the last write was lost, and the next start does not say so']
}

/** Of one that has several vehicles, each has an identifier that begins with its own. */
function deviceOf({ devices }: Plan, { deviceIdentifier }: Payload): DevicePlan | undefined {
  return devices.find(({ id }) => `${deviceIdentifier?.id}-`.startsWith(`${id}-`))
}

/** One of them may begin so shortly before all faults end. */
const lastFaults: readonly FaultKind[] = ['disk', 'disk', 'service', 'network']
const lastShare = 0.5
const lastMs = 20_000

/** What the sums of a process say is looked at before it ends. */
const endsProcess: readonly FaultKind[] = ['kill', 'powerCut', 'stop']

function startFaults(world: World): () => void {
  const { plan, machine, random } = world
  const { kernel } = machine
  let hasEnded = false
  const ends = new Set<() => void>()
  for (const kind of Object.keys(plan.everyMs) as FaultKind[]) {
    const mean = plan.everyMs[kind]
    const next = () =>
      kernel.at(mean * (0.3 + 1.4 * random.next()), () => {
        if (hasEnded) return
        world.steps.push(`${(kernel.monotonicMs / 1000).toFixed(3)} ${kind}\n`)
        if (endsProcess.includes(kind)) look(world)
        const end = acts[kind](world)
        if (end !== undefined) {
          ends.add(end)
          // Some last so long that a backlog grows meanwhile. A service must be met by submissions.
          const usual = kind === 'service' ? 3 * mean : mean
          const longest = kind !== 'disk' && random.chance(0.15) ? 6 * mean : usual
          kernel.at(random.below(longest), () => {
            if (ends.delete(end)) end()
          })
        }
        next()
      })
    if (mean > 0) next()
  }
  // The process that meets it mostly goes on until the end.
  const last = lastFaults.filter((kind) => plan.everyMs[kind] > 0)
  if (last.length > 0 && random.chance(lastShare))
    kernel.at(plan.safetyMs - random.below(lastMs), () => {
      const kind = random.pick(last)
      world.steps.push(`${(kernel.monotonicMs / 1000).toFixed(3)} ${kind}\n`)
      const end = acts[kind](world)
      if (end !== undefined) ends.add(end)
    })
  return () => {
    hasEnded = true
    for (const end of ends) end()
    ends.clear()
  }
}

/** Each returns what ends it, where it lasts. */
const acts: Record<FaultKind, (world: World) => EndAct | undefined> = {
  kill(world) {
    const { machine, daemon, random } = world
    atSomeMoment(world, () => {
      machine.kill()
      backUp(machine)
      machine.kernel.at(random.below(5000), daemon.start)
    })
    return undefined
  },
  powerCut(world) {
    const { machine, daemon, plan, random } = world
    atSomeMoment(world, () => {
      machine.powerCut()
      // It was made by the last process, and is never synced.
      if (random.chance(plan.theme === 'lanes' ? 0.8 : noMarkShare)) machine.disk.world.remove(markPath)
      if (!plan.hasClockBattery) bootClock(world)
      machine.kernel.at(2000 + random.below(random.chance(0.1) ? 60_000 : 8000), daemon.start)
    })
    return undefined
  },
  stop(world) {
    atSomeMoment(world, () => stopNow(world))
    return undefined
  },
  dropDevice: dropAct,
  network({ machine, plan, fleet, services, random }) {
    const host = random.pick([fleet.host, ...plan.providers.map(({ host }) => host)])
    const path = machine.network.world.path(host)
    const disturbed = (atMs: number) => {
      for (const service of services) if (service.host === host) service.disturbedMs = atMs
      if (host === fleet.host) fleet.disturbedMs = atMs
    }
    disturbed(Number.POSITIVE_INFINITY)
    const kind = random.below(4)
    if (kind === 0) machine.network.world.cut(host)
    const endSilence = kind === 1 ? path.silence() : () => undefined
    if (kind === 2) path.isRefusing = true
    if (kind === 3) path.delayMs = random.below(2000)
    return () => {
      endSilence()
      if (kind !== 1) Object.assign(path, { isRefusing: false, delayMs: 1 })
      // Another act goes on.
      if (!path.isSilent) disturbed(machine.kernel.monotonicMs)
    }
  },
  service({ services, plan, random }) {
    const index = random.below(services.length)
    const service = services[index]!
    const provider = plan.providers[index]!
    const share = plan.theme === 'backoffs' ? 0.7 : random.pick([0.3, 0.7, 1, 1])
    const usual = { mayFail: mayFail(provider), remembers: provider.repeat === 'same' }
    const fault = faultOf(plan.theme, random) ?? drawFault(random, usual)
    // What lasts goes on below what comes and ends meanwhile.
    const below = service.nextFault
    let isOver = false
    service.nextFault = () => (!isOver && random.chance(share) ? fault : below())
    return () => {
      isOver = true
    }
  },
  disk(world) {
    const { theme } = world.plan
    // What stops when one ends, stops in order.
    if (theme === 'full' && world.ends.troubles.some(({ toMs }) => toMs === Infinity)) return undefined
    const usual = hasSlowWrites(theme) ? slowWrites : diskAct
    const own = theme === 'swaps' ? swapped : theme === 'losses' ? failedWrite : usual
    const act = theme === 'full' && world.random.chance(0.5) ? lowDisk : own
    return world.causes.act(world.ends.faulty(act(world)))
  },
  away: awayAct,
  clock: clockAct,
  keys({ keys, services, random }) {
    if (random.chance(0.5)) return keys.act()
    // While the answer to a request of before is on its way.
    let end: EndAct = () => undefined
    const service = random.pick(services)
    service.atNextBatch = () => void (end = keys.withdraw())
    return () => {
      service.atNextBatch = null
      end()
    }
  },
  flip({ flips }) {
    flips.act()
    return undefined
  },
  operator(world) {
    const { operator, random } = world
    operator.act()
    // While it is under way.
    if (random.chance(0.3)) acts.kill(world)
    return undefined
  },
}

function stopNow({ machine, daemon, fleet, random, ends }: World): void {
  // One that starts is ended by the signal at once.
  if (daemon.gateway === null) return
  // A store that is lost cannot be closed.
  const wasOpen = daemon.isReady
  const stopped = ends.stopping()
  const acknowledged = fleet.stopping()
  void daemon.stop().then((isInOrder) => {
    if (stopped(isInOrder && wasOpen)) machine.kernel.at(lastAcksMs, acknowledged)
    if (daemon.isRunning) return
    backUp(machine)
    machine.kernel.at(random.below(5000), daemon.start)
  })
}

/** Of moments in which something must be durable that is seldom written. */
const cutShares = { rotation: 0.4, session: 0.12, slowSession: 0.5 } as const
const failShare = 0.3
const resumedShare = 0.4
const slowStopMs = 3000
const failMs = 2000

/** The power is cut, or the next write fails. */
function rotated(world: World): void {
  const { machine, plan, random, causes, ends, isSettling } = world
  // Not where lanes are to become many.
  if (plan.theme !== 'lanes') cutSoon(world, cutShares.rotation)
  if (plan.everyMs.disk === 0 || isSettling || !random.chance(failShare)) return
  const end = causes.act(ends.faulty(machine.disk.fail({ call: 'db-write', code: 'EIO', times: 1 })))
  if (end !== undefined) machine.kernel.at(failMs, end)
}

/** What waited is taken in, and the gateway stops meanwhile. */
function resumed(world: World): void {
  const { machine, fleet, plan, random, isSettling } = world
  if (plan.theme !== 'full' || isSettling) return
  // In the turn in which it is taken in.
  fleet.sendAtOnce()
  if (!random.chance(resumedShare)) return
  machine.kernel.afterEvents(random.below(20), () => {
    if (world.isSettling) return
    // A slow disk is no fault: all that was read is taken in, one message after the other.
    const slow = { call: 'db-write', path: storePath, ms: 100 + random.below(400) } as const
    machine.kernel.at(slowStopMs, machine.disk.stall(slow))
    stopNow(world)
  })
}

function cutSoon(world: World, share: number): void {
  const { machine, plan, random } = world
  if (plan.everyMs.powerCut === 0 || world.isSettling || !random.chance(share)) return
  machine.kernel.afterEvents(random.below(6), () => {
    if (!world.isSwapped && !world.isSettling) acts.powerCut(world)
  })
}

/** Now, or some steps after the next write begins, when most is under way, or after what must be durable by then. */
function atSomeMoment(world: World, act: () => void): void {
  const { machine, fleet, services, plan, random, steps } = world
  if (world.isSwapped) return
  if (random.chance(0.2)) {
    act()
    return
  }
  const count = random.below(random.pick([3, 10, 60]))
  const soon = () =>
    machine.kernel.afterEvents(count, () => {
      if (world.isSwapped || world.isSettling) return
      steps.push(`${(machine.kernel.monotonicMs / 1000).toFixed(3)} the end of the process or of the power\n`)
      act()
    })
  const isRefusing = plan.providers.some(({ refusesEvery }) => refusesEvery > 0)
  if (isRefusing && random.chance(0.4)) for (const service of services) service.atNextSingle = soon
  else if (random.chance(0.3)) fleet.atNextAnswer = soon
  else {
    // Most writes take messages. What is settled or sealed is removed elsewhere.
    const removes = random.chance(0.4)
    machine.atNextWrite = (ops) => {
      if (removes && !ops.some(({ type }) => type === 'del')) return false
      soon()
      return true
    }
  }
}
