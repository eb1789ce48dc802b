// source.ts: one source at work: a record of a message becomes a payload.
//
// The parts were compiled once (compile.ts) and are run here in the order in which they decide: the
// condition, the device, the time, the position, the signals; then one hash, and the text in one go.

import { payloadHead, type MappedPayload } from '../domain/payload.ts'
import type { Message } from '../domain/message.ts'
import { quote } from '../std/quote.ts'
import type { Attempt } from './attempt.ts'
import type { DeviceRule } from './device.ts'
import { shown, type WriteGps } from './gps.ts'
import { digestOf, messageKeyOf, partKeyOf, payloadIdOf, signalIdHeadOf, windowKeyOf } from './identity.ts'
import type { Decode } from './json.ts'
import type { Read } from './path.ts'
import type { DeviceEntry, Registry, RegistryOptions } from './registry.ts'
import { signalsText, type WriteSignals } from './signals.ts'
import type { ReadTime } from './time.ts'
import type { TopicPattern } from './topic.ts'
import type { Condition } from './when.ts'

export type CompiledSource = {
  name: string
  pattern: TopicPattern
  retained: 'take' | 'ignore'
  decode: Decode
  /** Chooses the record, or the list of records, inside the message. */
  each: Read | null
  when: { holds: Condition; reason: string } | null
  device: DeviceRule
  /** Null where messages have no time of their own. */
  time: { read: ReadTime; raw: Read; orArrival: boolean; format: string } | null
  gps: WriteGps
  signals: WriteSignals
  registry: RegistryOptions
}

/** What is known of a topic before its message is read. */
export type Route = {
  source: CompiledSource
  registry: Registry
  captures: readonly string[]
  /** The device, where the topic alone names it. */
  entry: DeviceEntry | null
}

/** Longer names are no names; they would fill the caches and the log. */
const deviceLengthMax = 256

/** The device of a record; null where the record was refused. */
export function deviceOf(
  route: Route,
  record: unknown,
  root: unknown,
  message: Message,
  attempt: Attempt,
): DeviceEntry | null {
  if (route.entry) return route.entry
  const { device } = route.source
  const name =
    device.kind === 'record' ? device.name(record, root) : device.name(route.captures, message.sender)
  if (name === '') return attempt.refuse('NO_DEVICE', 'What names the device is missing or empty.')
  if (name === null)
    return attempt.refuse('BAD_DEVICE', 'What names the device is neither a text nor a whole number.')
  if (name.length > deviceLengthMax)
    return attempt.refuse(
      'BAD_DEVICE',
      `The device's name ${quote(name, 40)} has more than ${deviceLengthMax} characters.`,
    )
  return route.registry.entryOf(name)
}

export type Part = {
  record: unknown
  root: unknown
  message: Message
  /** Position in the message's list of records. */
  index: number
  /** Names of the payloads that this message made before; null where it makes one. */
  namesBefore: Set<string> | null
}

/** The payload of a record; null where the record was refused. */
export function mapRecord(
  source: CompiledSource,
  entry: DeviceEntry,
  part: Part,
  attempt: Attempt,
): MappedPayload | null {
  const { record, root, message, index } = part
  const deviceTime = source.time ? timeOf(source.time, record, root, attempt) : Number.NaN
  if (deviceTime === null) return null
  const gps = source.gps(record, root, attempt)
  if (gps === null) return null
  const signals = source.signals(record, root, attempt)
  if (gps === '' && signals.length === 0)
    return attempt.refuse('NOTHING_TO_SEND', 'Neither a position nor a signal was found in the message.')
  const ownTime = !Number.isNaN(deviceTime)
  const time = ownTime ? deviceTime : message.arrivedAt
  let name = `${entry.nameHead}${time}${ownTime ? ']' : ',"arrival"]'}${gps}`
  for (const signal of signals) name += signal
  if (part.namesBefore) name = distinct(name, part.namesBefore, index)
  const digest = digestOf(name)
  const payloadId = payloadIdOf(digest)
  const ids = signals.length === 0 ? '' : signalIdHeadOf(digest)
  const json =
    payloadHead +
    payloadId +
    entry.jsonBeforeTime +
    time +
    entry.jsonAfterTime +
    gps +
    signalsText(signals, ids) +
    '}'
  return {
    provider: entry.provider,
    device: entry.device,
    deviceTime: ownTime ? deviceTime : null,
    payloadId,
    windowKey: ownTime ? windowKeyOf(digest) : partKeyOf(messageKeyOf(message), index),
    copyRule: ownTime ? 'always' : 'resend',
    json,
  }
}

/** NaN where the arrival time stands in; null where the record was refused. */
function timeOf(
  time: NonNullable<CompiledSource['time']>,
  record: unknown,
  root: unknown,
  attempt: Attempt,
): number | null {
  const moment = time.read(record, root)
  if (moment < Number.POSITIVE_INFINITY) return moment
  if (Number.isNaN(moment))
    return time.orArrival ? moment : attempt.refuse('NO_TIME', 'The message has no time.')
  const raw = shown(time.raw(record, root))
  return attempt.refuse('BAD_TIME', `The time ${raw} is not in the format "${time.format}".`)
}

/**
 * Two records of one message that say the same are two readings: the position in the list tells them apart.
 */
function distinct(name: string, before: Set<string>, index: number): string {
  const own = before.has(name) ? `${name}#${index}` : name
  before.add(own)
  return own
}
