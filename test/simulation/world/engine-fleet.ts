// engine-fleet.ts: devices whose messages come to the gateway through a message engine (engine.ts). What a device has sent
// the engine keeps until the gateway acknowledges it. To the oracle a delivery of the engine is a sending of the message.

import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import { isUntimed } from './contents.ts'
import type { Engine, Entry } from './engine.ts'
import { engineHost, parkedQueue, partitionQueue, queuesOf, type EnginePlan } from '../engine-plan.ts'
import type { DevicePlan, Fleet, SentMessage } from './fleet.ts'
import { createMessageMaker } from './message-maker.ts'

export type EngineFleet = Fleet & {
  queues: readonly string[]
  /** Undefined of what the gateway has put into the engine. */
  messageOf(entry: Entry): SentMessage | undefined
  entryOf(message: SentMessage): Entry
}

type Deps = { kernel: Kernel; random: Random; engine: Engine }

const calmMsMax = 15_000
/** Until what waited meanwhile has been delivered. */
const backMs = 20_000
const slowConfirmMs = 8000

export function createEngineFleet(
  { kernel, random, engine }: Deps,
  plans: readonly DevicePlan[],
  plan: EnginePlan,
): EngineFleet {
  const messages: SentMessage[] = []
  const messageOf = new Map<number, SentMessage>()
  const entryOf = new Map<SentMessage, Entry>()
  const clockSetMs: number[] = []
  const counters = { connects: 0, refused: 0, acks: 0, resends: 0 }
  let isStopped = false
  let isDoomedStopped = false
  let awayUntilMs = Number.NEGATIVE_INFINITY
  const devices = plans.map((device, index) => createDevice(device, index))
  const fleet: EngineFleet = {
    messages,
    queues: queuesOf(plan),
    messageOf: ({ id }) => messageOf.get(id),
    entryOf: (message) => entryOf.get(message)!,
    host: engineHost,
    wrong: engine.wrong,
    counters,
    clockSetMs,
    disturbedMs: 0,
    atNextAnswer: null,
    onNewSession: () => undefined,
    faultsEnded: () => undefined,
    setRate(everyMs) {
      isStopped = false
      for (const device of devices) device.setRate(Math.min(everyMs * devices.length, calmMsMax))
    },
    stopDoomed() {
      isDoomedStopped = true
    },
    stopNew() {
      isStopped = true
    },
    isIdle: () => messages.every(({ ackedMs }) => ackedMs !== null) && !hasParked(),
    isAnyAway: () => kernel.monotonicMs < awayUntilMs + backMs,
    dropOne: () => engine.cut(random.pick([null, 'store', 'delivery', 'acknowledgement'] as const)),
    sendAway({ awayMs }) {
      awayUntilMs = Math.max(awayUntilMs, kernel.monotonicMs + awayMs)
      const end = random.pick([engine.freeze, engine.refuse, confirmSlowly])()
      kernel.at(awayMs, end)
    },
    clockStepped: () => void clockSetMs.push(kernel.monotonicMs),
    sendAtOnce: () => random.pick(devices).produce(),
    // Only what devices do that are connected to the gateway.
    storeLost: () => undefined,
    held: () => undefined,
    resumed: () => undefined,
    forget: () => null,
    spoolRefused: () => undefined,
    stopping: () => () => undefined,
  }
  engine.events.delivered = delivered
  const { acknowledged } = engine.events
  engine.events.acknowledged = (entries) => {
    for (const entry of entries) ended(entry)
    acknowledged(entries)
  }
  return fleet

  /** A whole message there waits for a person. */
  function hasParked(): boolean {
    return engine.entriesOf(parkedQueue).some(({ headers }) => headers['kind'] !== 'message')
  }

  function confirmSlowly(): () => void {
    const before = engine.confirmMs
    engine.confirmMs = slowConfirmMs
    return () => void (engine.confirmMs = before)
  }

  function createDevice(device: DevicePlan, index: number) {
    const maker = createMessageMaker({ kernel, random }, device, index)
    const isReplaceable =
      device.isDoomed && plans.some(({ isDoomed, provider }) => !isDoomed && provider === device.provider)
    let { everyMs, burst } = device
    let cancel = kernel.at(random.below(Math.min(5000, everyMs)), produceAgain)
    return {
      produce,
      setRate(next: number) {
        burst = 1
        everyMs = next
        cancel()
        cancel = kernel.at(random.below(everyMs), produceAgain)
      },
    }

    function produceAgain(): void {
      if (isStopped || (isDoomedStopped && isReplaceable)) return
      for (let left = burst; left > 0; left -= 1) produce()
      cancel = kernel.at(everyMs * (0.5 + random.next()), produceAgain)
    }

    /** RabbitMQ writes `.` for `/`. A device is in one partition. */
    function produce(): void {
      for (const message of maker.next(null)) {
        const { topic, payload: body } = message
        messages.push(message)
        const queue = partitionQueue(index % plan.partitions)
        const entry = engine.put(queue, { routingKey: topic.replaceAll('/', '.'), body })
        messageOf.set(entry.id, message)
        entryOf.set(message, entry)
      }
    }
  }

  function delivered({ id }: Entry): void {
    const message = messageOf.get(id)
    if (message === undefined) return
    if (message.sentMs.length > 0) {
      counters.resends += 1
      message.mayBeTwice ||= isUndecidable(message)
    }
    message.sentMs.push(kernel.monotonicMs)
  }

  /** What has no time is the same message only where the engine says when it got it; what is kept whole has no name. */
  function isUndecidable({ device, poison }: SentMessage): boolean {
    return poison !== null || (isUntimed(device.kind) && !plan.stampsTime)
  }

  function ended({ id }: Entry): void {
    const message = messageOf.get(id)
    if (message === undefined || message.ackedMs !== null) return
    message.ackedMs = kernel.monotonicMs
    counters.acks += 1
    const { atNextAnswer } = fleet
    fleet.atNextAnswer = null
    atNextAnswer?.()
  }
}
