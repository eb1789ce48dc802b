// engine.ts: what a message engine may expect of the gateway, by what the engine and the services have.
//
//   acknowledged   with custody `delivered` each payload of the message is accepted, parked in the engine, or a dead letter
//                  with a copy there: a gateway whose disk is lost then loses nothing. The same holds for what was parked
//   parked         what was parked is not here any more, so it has one further effect, unless the gateway cannot know
//                  that the engine has it, or ends before it has removed it
//   order          payloads that are new in a batch stand in the order in which their partition had the messages
//   the end        all queues are empty, but for whole messages that wait for a person

import type { Engine, Entry } from '../world/engine.ts'
import type { EngineFleet } from '../world/engine-fleet.ts'
import { deadQueue, parkedQueue, type EnginePlan } from '../engine-plan.ts'
import { poisons, type ExpectedRecord } from '../world/contents.ts'
import type { SentMessage } from '../world/fleet.ts'
import type { Payload, Service } from '../world/service.ts'
import type { OperatorAct, Trouble } from './deliveries.ts'
import { futureMaxMs } from './messages.ts'
import { keyOf, keysOf, nameOf, type Payloads } from './payloads.ts'

export type EngineOracle = {
  wrong: string[]
  /** What was parked, as acts of kind `park`. */
  acts: readonly OperatorAct[]
  isParked(payloadId: string): boolean
  /** It was parked, and may be here as well: it may have two effects. */
  mayBeBoth(payloadId: string): boolean
  wrongOrder(payloads: Payloads): string[]
  wrongAtEnd(): string[]
}

type Deps = {
  engine: Engine
  fleet: EngineFleet
  services: readonly Service[]
  troubles: readonly Trouble[]
  /** Of the operator. */
  acts: () => readonly OperatorAct[]
}

/** What is safe somewhere, or was. */
type Place = { payload: Payload; isSafe: () => boolean }
type Whole = { topic: string; bytes: string; isSafe: () => boolean }

/** The gateway waits so long for its confirms, and removes what is confirmed so soon. */
const confirmedMs = 25_000
const removedMs = 5000

export function createEngineOracle(
  { engine, fleet, services, troubles, acts: operatorActs }: Deps,
  plan: EnginePlan,
): EngineOracle {
  const wrong: string[] = []
  const acts: OperatorAct[] = []
  const parked = new Map<string, Entry[]>()
  const places = new Map<string, Place[]>()
  const wholes: Whole[] = []
  const gone = new Set<Entry>()
  /** Records of each service that are among the places. */
  const read = new Map<Service, number>()
  engine.events.stored = stored
  const { acknowledged: toFleet } = engine.events
  engine.events.acknowledged = (entries) => {
    toFleet(entries)
    for (const entry of entries) gone.add(entry)
    if (plan.custody === 'delivered') for (const entry of entries) ofAcknowledged(entry)
  }
  return {
    wrong,
    acts,
    isParked: (payloadId) => parked.has(payloadId),
    mayBeBoth: (payloadId) => parked.get(payloadId)?.some(mayBeHere) === true,
    wrongOrder,
    wrongAtEnd,
  }

  // ---- what the gateway has put into the engine

  function stored(entry: Entry): void {
    const lines = entry.body.toString('latin1').split('\n')
    if (entry.queue === deadQueue) {
      const { payload, envelope } = JSON.parse(entry.body.toString()) as {
        payload?: Payload
        envelope?: Envelope
      }
      if (payload !== undefined) add(payload, () => true)
      if (envelope !== undefined) wholes.push({ ...envelope, isSafe: () => true })
      return
    }
    const isSafe = () => !gone.has(entry)
    if (entry.headers['kind'] === 'payload') {
      const payload = payloadOf(entry)
      const { payloadId } = payload
      parked.set(payloadId, [...(parked.get(payloadId) ?? []), entry])
      acts.push({ atMs: entry.storedMs, kind: 'park', ids: [payloadId] })
      add(payload, isSafe)
    } else {
      const { topic } = JSON.parse(lines[1]!) as Envelope
      const bytes = Buffer.from(lines.slice(2).join('\n'), 'latin1').toString('base64')
      wholes.push({ topic, bytes, isSafe })
    }
  }

  function add(payload: Payload, isSafe: () => boolean): void {
    for (const key of [payload.payloadId, ...keysOf(payload)]) {
      const list = places.get(key)
      if (list === undefined) places.set(key, [{ payload, isSafe }])
      else list.push({ payload, isSafe })
    }
  }

  function mayBeHere({ storedMs, confirmedMs: atMs, cutMs }: Entry): boolean {
    if (atMs === null || atMs - storedMs > confirmedMs || cutMs - storedMs < confirmedMs) return true
    return troubles.some(({ fromMs, toMs }) => fromMs <= atMs + removedMs && toMs >= storedMs)
  }

  // ---- what the gateway has acknowledged

  function ofAcknowledged(entry: Entry): void {
    readServices()
    const message = fleet.messageOf(entry)
    if (message !== undefined) {
      if (!isSafe(message))
        wrong.push(`${nameOf(message)} was acknowledged, and is nowhere but in the gateway`)
    } else if (entry.headers['kind'] === 'payload') {
      const { payloadId } = payloadOf(entry)
      if (!isPlaced(payloadId) && !isPurged(payloadId))
        wrong.push(`parked payload ${payloadId} was acknowledged, and is nowhere but in the gateway`)
    }
  }

  function readServices(): void {
    for (const service of services) {
      const known = read.get(service) ?? 0
      const { size } = service.records
      if (size === known) continue
      for (const { payload, accepted } of [...service.records.values()].slice(known))
        add(payload, () => accepted.length > 0)
      read.set(service, size)
    }
  }

  function isSafe(message: SentMessage): boolean {
    const { poison, records, device } = message
    if (poison !== null && !poisons[poison].isDead) return true
    if (isWholeSafe(message)) return true
    if (poison !== null && records.length === 0) return false
    return device.kind === 'parts' ? isPartSafe(message) : poison === null && records.every(isRecordSafe)
  }

  function isRecordSafe(record: ExpectedRecord): boolean {
    return isPlaced(keyOf(record))
  }

  /** One value, in a payload of about its time. */
  function isPartSafe({ device, payload: bytes }: SentMessage): boolean {
    const { ts, value } = JSON.parse(bytes.toString()) as { ts: number; value: number }
    const found = [-2, -1, 0, 1, 2].flatMap((by) => places.get(`${device.id} ${ts + by}`) ?? [])
    return found.some(
      ({ payload, isSafe }) =>
        (isSafe() || isPurged(payload.payloadId)) &&
        payload.signals?.some((signal) => Number(signal.value) === value),
    )
  }

  function isPlaced(key: string): boolean {
    return places.get(key)?.some((one) => one.isSafe() || isPurged(one.payload.payloadId)) === true
  }

  function isPurged(payloadId: string): boolean {
    return operatorActs().some(({ kind, ids }) => kind === 'purge' && ids.includes(payloadId))
  }

  function isWholeSafe({ topic, payload }: SentMessage): boolean {
    const bytes = payload.toString('base64')
    return wholes.some((one) => one.topic === topic && one.bytes === bytes && one.isSafe())
  }

  // ---- order, and the end

  function wrongOrder(payloads: Payloads): string[] {
    const found: string[] = []
    const messageOf = new Map<string, SentMessage>()
    for (const message of fleet.messages) {
      const { device, mayBeTwice, records } = message
      if (mayBeTwice || device.kind === 'parts' || device.kind === 'parkedUntimed') continue
      if (device.clockMs > futureMaxMs) continue
      for (const record of records)
        for (const { payload } of payloads.of(record)) messageOf.set(payload.payloadId, message)
    }
    const requeued = new Set(operatorActs().flatMap(({ kind, ids }) => (kind === 'requeue' ? ids : [])))
    for (const { journal } of services) {
      const seen = new Set<string>([...requeued, ...parked.keys()])
      for (const { batchId, payloadIds } of journal) {
        const last = new Map<string, number>()
        for (const id of payloadIds) {
          const message = messageOf.get(id)
          if (message === undefined || seen.has(id)) continue
          const entry = fleet.entryOf(message)
          if (entry.id < (last.get(entry.queue) ?? 0))
            found.push(`batch ${batchId} has ${nameOf(message)} behind a later message of ${entry.queue}`)
          last.set(entry.queue, entry.id)
        }
        for (const id of payloadIds) seen.add(id)
      }
    }
    return found
  }

  function wrongAtEnd(): string[] {
    return fleet.queues
      .filter((queue) => queue !== deadQueue)
      .map((queue) => ({ queue, left: engine.entriesOf(queue).filter((entry) => !isKept(entry)).length }))
      .filter(({ left }) => left > 0)
      .map(({ queue, left }) => `${left} messages are left in ${queue}`)
  }

  function isKept({ queue, headers }: Entry): boolean {
    return queue === parkedQueue && headers['kind'] === 'message'
  }
}

type Envelope = { topic: string; bytes: string }

function payloadOf({ body }: Entry): Payload {
  return JSON.parse(body.toString('utf8', body.indexOf('\n') + 1)) as Payload
}
