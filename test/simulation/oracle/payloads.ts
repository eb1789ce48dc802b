// payloads.ts: what the service has, compared with what the devices sent: each payload is that of a message, has its
// values, went to the provider of its device, and is in a batch once.

import type { ExpectedRecord } from '../world/contents.ts'
import { isUntimed } from '../world/contents.ts'
import type { LostPositions } from './lost-positions.ts'
import type { Fleet, SentMessage } from '../world/fleet.ts'
import type { Payload, PayloadRecord, Service } from '../world/service.ts'

export type Payloads = {
  /** What the service has of a record that a device sent. Of equal ones without a time all that are alike. */
  of(record: ExpectedRecord): readonly PayloadRecord[]
  /** The gateway may take the payload more than once, with each copy of its message. */
  isCopied(payloadId: string): boolean
  wrong: string[]
}

/** `mayBeBoth`: two of it may be here. */
export function payloadsOf(
  fleet: Fleet,
  services: readonly Service[],
  { positions, mayBeBoth }: { positions: LostPositions; mayBeBoth: (payloadId: string) => boolean },
): Payloads {
  const sent = new Map<string, { record: ExpectedRecord; message: SentMessage }[]>()
  for (const message of fleet.messages)
    for (const record of message.records) {
      const key = keyOf(record)
      const alike = sent.get(key)
      if (alike === undefined) sent.set(key, [{ record, message }])
      else alike.push({ record, message })
    }
  const byKey = new Map<string, PayloadRecord[]>()
  const mayBeTwice = new Set(
    fleet.messages.filter((message) => message.mayBeTwice).map((message) => nameOf(message)),
  )
  const copied = new Set<string>()
  const together = arrivedTogether(services)
  /** Without what is remembered. */
  const lacking = new Set<SentMessage>()
  const wrong: string[] = []
  for (const { provider, records } of services)
    for (const found of records.values()) {
      const { payload } = found
      const key = keysOf(payload).find((one) => sent.has(one))
      const text = JSON.stringify(payload)
      if (key === undefined) {
        wrong.push(`the service has a payload that no device sent: ${text}`)
        continue
      }
      const { record, message } = sent.get(key)![0]!
      const name = nameOf(message)
      if (sent.get(key)!.some((one) => mayBeTwice.has(nameOf(one.message)))) copied.add(payload.payloadId)
      if (message.device.provider !== provider) wrong.push(`${name} went to ${provider}`)
      const part = positions.mayLack(message) ? partOf(payload, record) : record
      if (!isRight(payload, part, { message, isAlone: !together.has(momentOf(payload)) }))
        wrong.push(`${name} has wrong values: ${text}`)
      if (message.forgettings.length > 0 && !message.mayBeTwice && lacksOptional(payload, record))
        lacking.add(message)
      const of = byKey.get(key)
      if (of === undefined) byKey.set(key, [found])
      else of.push(found)
    }
  const mayBeTwins = (payloadId: string) => copied.has(payloadId) || mayBeBoth(payloadId)
  wrong.push(...services.flatMap(({ journal }) => batchesWithTwins(journal, mayBeTwins)))
  wrong.push(...secondFirsts(fleet.messages.filter((message) => lacking.has(message))))
  return {
    of: (record) => byKey.get(keyOf(record)) ?? [],
    isCopied: mayBeTwins,
    wrong,
  }
}

/** A message that was on its way while twice something was forgotten may be the first behind either of them. */
function secondFirsts(lacking: readonly SentMessage[]): string[] {
  const taken = new Set<number>()
  return lacking.flatMap((message) => {
    const first = message.forgettings.find((one) => !taken.has(one))
    if (first !== undefined) taken.add(first)
    return first === undefined ? [`${nameOf(message)} lacks what a message before it lacks already`] : []
  })
}

/** Both copies of a kept message that nothing tells apart are released, and may be neighbours. */
function batchesWithTwins(journal: Service['journal'], mayBeTwins: (payloadId: string) => boolean): string[] {
  return journal.flatMap(({ batchId, payloadIds }) => {
    const twin = payloadIds.find((id, place) => payloadIds.indexOf(id) < place && !mayBeTwins(id))
    return twin === undefined ? [] : [`batch ${batchId} has payload ${twin} twice`]
  })
}

export const nameOf = ({ device, number }: SentMessage) => `message ${number} of ${device.id}`

/**
 * Messages without a time that were taken in the same millisecond: the second value of an odometer within no time is not
 * believed, and left out.
 */
function arrivedTogether(services: readonly Service[]): Set<string> {
  const seen = new Set<string>()
  const together = new Set<string>()
  for (const { records } of services)
    for (const { payload } of records.values()) {
      const moment = momentOf(payload)
      if (seen.has(moment)) together.add(moment)
      seen.add(moment)
    }
  return together
}

function momentOf({ deviceIdentifier, signalTimestamp }: Payload): string {
  return `${deviceIdentifier?.id} ${signalTimestamp}`
}

/** Of a record whose position was lost: the rest of it, or the position alone. */
function partOf({ gps, signals }: Payload, record: ExpectedRecord): ExpectedRecord {
  if (gps === undefined) return { ...record, latitude: null }
  return signals === undefined ? { ...record, values: {} } : record
}

/** Without a time the position tells records apart. */
export function keyOf({ device, ts, latitude }: ExpectedRecord): string {
  return ts === null ? `${device} at ${latitude}` : `${device} ${ts}`
}

/** The time of collected values is that of the newest one. */
export function keysOf({ deviceIdentifier, signalTimestamp, gps }: Payload): string[] {
  const id = deviceIdentifier?.id ?? ''
  return [
    ...[0, 1, 2].map((later) => `${id} ${signalTimestamp + later}`),
    `${id} at ${Number(gps?.['latitude'])}`,
  ]
}

function lacksOptional({ signals = [] }: Payload, { values, optional }: ExpectedRecord): boolean {
  return optional.some((type) => type in values && !signals.some((signal) => signal.type === type))
}

type Sent = { message: SentMessage; isAlone: boolean }

function isRight(payload: Payload, record: ExpectedRecord, { message, isAlone }: Sent): boolean {
  const { gps, signals = [] } = payload
  const { kind } = message.device
  if (record.latitude !== null && gps?.['latitude'] !== record.latitude) return false
  if (signals.some(({ type, value }) => record.values[type] !== Number(value))) return false
  // Values of a record come apart where its messages did. A copy without a time comes behind later values of the
  // odometer, and is not believed.
  const types = signals.map(({ type }) => type)
  const mayLack =
    kind === 'parts' || (isUntimed(kind) && (!isAlone || message.mayBeTwice))
      ? Object.keys(record.values)
      : message.mayBeTwice || message.forgettings.length > 0
        ? record.optional
        : []
  if (!Object.keys(record.values).every((type) => types.includes(type) || mayLack.includes(type)))
    return false
  return types.length > 0 || gps !== undefined || !isAlone
}
