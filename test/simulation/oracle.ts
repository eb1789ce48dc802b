// oracle.ts: what must hold, said by the world alone: what devices sent and saw acknowledged, what the service has, what
// the gateway says of itself. No code of the product decides here.

import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { latitudeOf, odometerOf, type Fleet, type SentMessage } from './world/fleet.ts'
import type { Payload, Service } from './world/service.ts'

const ofDeadLetters = ['DEAD_LETTERS', 'DEAD_LETTERS_WAITING']
/** It stays until the next start. */
const ofKills = ['LAST_RUN_ENDED_UNCLEAN']
const ofDoomed = ['PAYLOADS_FAILING', 'NOTHING_ACCEPTED']

/** A payload that failed as often may have become a dead letter: by `delivery.errors` of plan.ts. */
const failuresToDeath = 3

export type Known = {
  fleet: Fleet
  services: readonly Service[]
  /** Null where the gateway does not run. */
  status: Status | null
}

/** While faults go on. */
export function wrongSoFar({ fleet, services }: Pick<Known, 'fleet' | 'services'>): string[] {
  return [...fleet.wrong, ...services.flatMap(({ wrong }) => wrong), ...wrongPayloads(fleet, services)]
}

/** When all faults have stopped and everything had time to settle. */
export function wrongAtEnd(known: Known): string[] {
  const { fleet, services, status } = known
  const wrong = wrongSoFar(known)
  const byKey = payloadsByKey(services)
  let dead = 0
  /** Further dead letters: of payloads that failed often, and of poison that was sent more than once. */
  let mayBeDead = 0
  for (const message of fleet.messages) {
    const { device, qos, ackedMs, isPoison, sends } = message
    const name = nameOf(message)
    if (qos > 0 && ackedMs === null) wrong.push(`${name} was never acknowledged`)
    const records = byKey.get(keyOf(device.id, message.ts)) ?? []
    const accepted = records.flatMap(({ accepted }) => accepted).length
    if (isPoison || device.isDoomed) {
      if (accepted > 0) wrong.push(`${name} is poison, and was accepted`)
      if (ackedMs !== null) dead += 1
      mayBeDead +=
        device.isDoomed && !isPoison ? (ackedMs === null ? 1 : 0) : sends - (ackedMs === null ? 0 : 1)
      continue
    }
    const hasFailed = records.some(({ failed }) => failed >= failuresToDeath)
    if (accepted === 0 && hasFailed) {
      mayBeDead += 1
      continue
    }
    if (ackedMs !== null && qos > 0 && accepted === 0) wrong.push(`${name} was acknowledged and is lost`)
    const mayBeTwice = records.some(({ mayBeTwice }) => mayBeTwice)
    if (accepted > 1 && !mayBeTwice) wrong.push(`${name} was accepted ${accepted} times`)
  }
  if (status === null) return [...wrong, 'the gateway does not run']
  // Dead letters are for a person to look at, and so is a device whose payloads are all refused.
  const hasDead = status.spool.deadLetters > 0
  const isDoomed = fleet.messages.some(({ device }) => device.isDoomed)
  const expected = [...ofKills, ...(hasDead ? ofDeadLetters : []), ...(isDoomed ? ofDoomed : [])]
  const conditions = status.conditions.filter(({ code }) => !expected.includes(code))
  for (const { code, what } of conditions) wrong.push(`condition ${code} is open: ${what}`)
  const isDegraded = status.conditions.some(({ severity }) => severity !== 'info')
  const verdicts = [isDegraded ? 'degraded' : 'ok', ...(isDoomed ? ['not_delivering'] : [])]
  if (!verdicts.includes(status.verdict)) wrong.push(`the verdict is ${status.verdict}`)
  const open = status.lanes.reduce((sum, { pending, sealed, held }) => sum + pending + sealed + held, 0)
  if (open > 0) wrong.push(`${open} payloads still wait`)
  if (status.spool.deadLetters < dead || status.spool.deadLetters > dead + mayBeDead)
    wrong.push(`${dead} to ${dead + mayBeDead} dead letters are right, ${status.spool.deadLetters} are there`)
  return wrong
}

function wrongPayloads(fleet: Fleet, services: readonly Service[]): string[] {
  const wrong: string[] = []
  const sent = new Map(fleet.messages.map((message) => [keyOf(message.device.id, message.ts), message]))
  for (const { provider, records } of services)
    for (const { payload } of records.values()) {
      const id = payload.deviceIdentifier?.id ?? ''
      const message = sent.get(keyOf(id, payload.signalTimestamp))
      if (message === undefined) wrong.push(`the service has a payload of ${id} that no device sent`)
      else if (message.device.provider !== provider) wrong.push(`${nameOf(message)} went to ${provider}`)
      else if (!isRight(payload, message))
        wrong.push(`${nameOf(message)} has wrong values: ${JSON.stringify(payload)}`)
    }
  return wrong
}

function isRight({ gps, signals }: Payload, { number }: SentMessage): boolean {
  return gps?.['latitude'] === latitudeOf(number) && Number(signals?.[0]?.value) === odometerOf(number)
}

function payloadsByKey(services: readonly Service[]) {
  const byKey = new Map<string, { accepted: readonly unknown[]; failed: number; mayBeTwice: boolean }[]>()
  for (const { records } of services)
    for (const record of records.values()) {
      const key = keyOf(record.payload.deviceIdentifier?.id ?? '', record.payload.signalTimestamp)
      byKey.set(key, [...(byKey.get(key) ?? []), record])
    }
  return byKey
}

const keyOf = (device: string, ts: number) => `${device} ${ts}`

const nameOf = ({ device, number }: SentMessage) => `message ${number} of ${device.id}`
