// oracle.ts: what must hold, said by the world alone: what devices sent and saw acknowledged, what the service has, what
// the gateway says of itself. No code of the product decides here.

import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { latitudeOf, odometerOf, type Fleet, type SentMessage } from './world/fleet.ts'
import { modelOf, type Circumstances, type DeadLetter } from './oracle/deliveries.ts'
import type { Payload, PayloadRecord, Service } from './world/service.ts'

const ofDeadLetters = ['DEAD_LETTERS', 'DEAD_LETTERS_WAITING']
/** It stays until the next start. */
const ofKills = ['LAST_RUN_ENDED_UNCLEAN']
const ofDoomed = ['PAYLOADS_FAILING', 'NOTHING_ACCEPTED']

export type Known = {
  fleet: Fleet
  services: readonly Service[]
  /** Null where the gateway does not run. */
  status: Status | null
  deadLetters: readonly DeadLetter[]
  circumstances: Circumstances
  isConfigNew: boolean
}

/** While faults go on. */
export function wrongSoFar({ fleet, services }: Pick<Known, 'fleet' | 'services'>): string[] {
  return [...fleet.wrong, ...services.flatMap(({ wrong }) => wrong), ...wrongPayloads(fleet, services)]
}

/** When all faults have stopped and everything had time to settle. */
export function wrongAtEnd(known: Known): string[] {
  const { fleet, services, status, deadLetters, circumstances, isConfigNew } = known
  const wrong = wrongSoFar(known)
  const byKey = payloadsByKey(services)
  const models = services.map((service) => modelOf(service, circumstances))
  const letters = new Map(
    deadLetters.flatMap((letter) => (letter.payloadId === null ? [] : [[letter.payloadId, letter]])),
  )
  const gone = new Set(circumstances.acts.flatMap(({ kind, ids }) => (kind === 'purge' ? ids : [])))
  /** Poison is a dead letter, one for each time that it was taken. */
  let poison = 0
  let poisonMax = 0
  for (const message of fleet.messages) {
    const { device, qos, ackedMs, isPoison, sends } = message
    const name = nameOf(message)
    if (qos > 0 && ackedMs === null) wrong.push(`${name} was never acknowledged`)
    const records = byKey.get(keyOf(device.id, message.ts)) ?? []
    if (isPoison) {
      if (records.length > 0) wrong.push(`${name} is poison, and was sent`)
      if (ackedMs !== null) poison += 1
      poisonMax += sends
      continue
    }
    const effects = records.flatMap(({ accepted }) => accepted)
    const isDead = records.some(
      ({ payload }) => letters.has(payload.payloadId) || gone.has(payload.payloadId),
    )
    if (ackedMs !== null && qos > 0 && effects.length === 0 && !isDead)
      wrong.push(`${name} was acknowledged and is lost`)
    if (device.isDoomed && effects.length > 0) wrong.push(`${name} is refused always, and was accepted`)
    for (const { payload, accepted } of records) {
      const { payloadId } = payload
      const unexcused = accepted.filter(
        ({ batchId }) => !models.some((model) => model.isExcused(payloadId, batchId)),
      )
      if (unexcused.length > 1) wrong.push(`${name} was accepted ${accepted.length} times`)
      if (models.some((model) => model.isOver(payloadId)) && !isDead)
        wrong.push(`${name} (${payloadId}) failed in its last step, and is no dead letter`)
    }
  }
  for (const letter of deadLetters) {
    if (letter.stage !== 'delivery') continue
    const reasons = models.map((model) => model.whyNotDead(letter))
    if (!reasons.includes(null))
      wrong.push(`${letter.payloadId} is a dead letter by ${letter.reason}: ${reasons.join('; ')}`)
  }
  for (const model of models) wrong.push(...model.wrong)
  if (status === null) return [...wrong, 'the gateway does not run']
  // Dead letters are for a person to look at, and so is a device whose payloads are all refused.
  const hasDead = status.spool.deadLetters > 0
  const isDoomed = fleet.messages.some(({ device }) => device.isDoomed)
  const ofConfig = isConfigNew ? ['RESTART_NEEDED'] : []
  const ofPurge = circumstances.acts.some(({ kind }) => kind === 'purge') ? ['DEAD_LETTERS_PURGED'] : []
  const expected = [
    ...ofKills,
    ...ofPurge,
    ...ofConfig,
    ...(hasDead ? ofDeadLetters : []),
    ...(isDoomed ? ofDoomed : []),
  ]
  const conditions = status.conditions.filter(({ code }) => !expected.includes(code))
  for (const { code, what } of conditions) wrong.push(`condition ${code} is open: ${what}`)
  const isDegraded = status.conditions.some(({ severity }) => severity !== 'info')
  const verdicts = [isDegraded ? 'degraded' : 'ok', ...(isDoomed ? ['not_delivering'] : [])]
  if (!verdicts.includes(status.verdict)) wrong.push(`the verdict is ${status.verdict}`)
  const open = status.lanes.reduce((sum, { pending, sealed, held }) => sum + pending + sealed + held, 0)
  if (open > 0) wrong.push(`${open} payloads still wait`)
  const unmapped = deadLetters.filter(({ stage }) => stage === 'mapping').length
  if (unmapped < poison || unmapped > poisonMax)
    wrong.push(`${poison} to ${poisonMax} dead letters of messages are right, ${unmapped} are there`)
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
  const byKey = new Map<string, PayloadRecord[]>()
  for (const { records } of services)
    for (const record of records.values()) {
      const key = keyOf(record.payload.deviceIdentifier?.id ?? '', record.payload.signalTimestamp)
      byKey.set(key, [...(byKey.get(key) ?? []), record])
    }
  return byKey
}

const keyOf = (device: string, ts: number) => `${device} ${ts}`

const nameOf = ({ device, number }: SentMessage) => `message ${number} of ${device.id}`
