// message.ts: what MQTT delivered, before it is mapped.

import type { EpochMs } from '../std/clock.ts'
import type { ProviderName } from './ids.ts'
import type { ShelfName } from './kept-store.ts'

/** The sender of a message. One object per connection, shared by all its messages. */
export type Sender = {
  clientId: string
  userName: string | null
  /** Common name of the client certificate, where the listener asks for one. */
  certificateName: string | null
  /**
   * The name that the client proved: by a password or a token, else by its certificate. Null for an anonymous
   * client; a user name that nobody checked is not an identity.
   */
  identity: string | null
  /** From where it connected; missing for a message of another broker. */
  address?: string | null
}

/**
 * The name under which something is kept for a client: the same client id of another identity is another
 * client. U+0000 is in no client id, so the last one ends the identity (MQTT 1.5.3).
 */
export function clientNameOf({ clientId, identity }: Pick<Envelope, 'clientId' | 'identity'>): string {
  return identity === null || identity === undefined ? clientId : `${identity}\0${clientId}`
}

/** In place of a sender that is not known. */
export const noSender: Sender = { clientId: '', userName: null, certificateName: null, identity: null }

/**
 * A message of a client that gave no payload and names no device. `source`: null where no source takes its
 * topic. `detail`: '' where `reason` says all.
 */
export type UnnamedMessage = {
  topic: string
  source: string | null
  became: 'ignored' | 'dead' | 'quarantined'
  reason: string
  detail: string
}

export type QoS = 0 | 1 | 2

/** The name of the embedded broker as a message source. */
export const embeddedBrokerName = 'broker'

/** User properties of MQTT 5. Without a prototype. */
export type UserProperties = Readonly<Record<string, string>>

/** The other properties of a message of MQTT 5 that a mapping can read: only those that its sender set. */
export type MessageProperties = Readonly<{
  contentType?: string
  responseTopic?: string
  /** Base64. */
  correlation?: string
  /** Payload Format Indicator 1: the sender says that the bytes are UTF-8. 0 means the same as none. */
  isText?: true
  /** Message Expiry Interval in seconds. */
  expiryS?: number
}>

/**
 * When the server that a message came from had stored it. It is the same each time the message is delivered,
 * to whichever gateway, so it stands in for the arrival in the name of a payload without a device time.
 */
export type Stored = {
  at: EpochMs
  /** Its number at the server; 0 where the server gives none. It tells equal readings of one moment apart. */
  serial: number
}

/** When a message arrived, in a form that can be corrected later (arrival.ts). */
export type Arrival = {
  bootId: string
  /** The monotonic clock, with the time that the machine slept. */
  monotonicMs: number
  /** True time minus `arrivedAt` of the message, as known when it arrived; null where it was unknown. */
  offsetMs: number | null
}

/**
 * A record of a message: its place in the list from 0, and a hash. Of one that was sent in part: the fields
 * that were sent, and those that were lost then.
 */
export type RecordMark = { index: number; hash: string; sent?: readonly string[]; lost?: readonly string[] }

export type Message = {
  topic: string
  /** May be a view into a larger buffer. Copy it when it must outlive the call. */
  bytes: Buffer
  qos: QoS
  /**
   * It was stored by another broker and is not new. The embedded broker stores nothing: a message that a
   * client sends with RETAIN is new, and does not have this.
   */
  retain: boolean
  /** A will: the broker publishes it for a client whose connection ended without DISCONNECT. */
  will?: boolean
  /** DUP: the client says that it sent this message before (MQTT 3.3.1.1). */
  dup: boolean
  sender: Sender
  /** The message source that it came from (`from` of a source); without it, the embedded broker. */
  from?: string | null
  userProperties?: UserProperties | null
  /** Null or missing where there is none. */
  properties?: MessageProperties | null
  /** Our time at the moment the packet was read. */
  arrivedAt: EpochMs
  /** Its number among the messages that arrived in the same millisecond, from 0. */
  serial?: number
  /** Set by the intake. It is used again like the message: copy it when it must outlive the call. */
  arrival?: Arrival
  /** Null or missing where the server does not say it. It is used again like the message, too. */
  stored?: Stored | null
  /** Only these records are to be mapped: what became of the others was decided before. */
  records?: readonly RecordMark[]
}

/** A message kept whole, as a dead letter stores it. `bytes` is base64. */
export type Envelope = {
  topic: string
  bytes: string
  qos: QoS
  retain: boolean
  dup: boolean
  clientId: string
  userName: string | null
  certificateName: string | null
  /** Messages kept by version 0.1.0 have none. */
  identity?: string | null
  /** Where it is known. Messages kept by version 0.1.0 have none. */
  address?: string
  arrivedAt: EpochMs
  /** Messages kept by version 0.1.0 have none. */
  arrival?: Arrival
  source: string | null
  /** As in Message. The embedded broker is not named. */
  from?: string
  userProperties?: UserProperties
  properties?: MessageProperties
  stored?: Stored
  /** It is kept for these records only; missing for the whole message. */
  records?: readonly RecordMark[]
}

/**
 * What tells two messages with equal topics and bytes apart: '' without properties. The expiry is none of it:
 * a broker lowers it each time that it delivers the message.
 */
export function propertiesText({ userProperties, properties }: PropertiesOf): string {
  if (!userProperties && !properties) return ''
  const { contentType, responseTopic, correlation, isText } = properties ?? {}
  const others = [contentType, responseTopic, correlation, isText].some((one) => one !== undefined)
  if (!userProperties && !others) return ''
  return JSON.stringify([
    Object.entries(userProperties ?? {}),
    contentType,
    responseTopic,
    correlation,
    isText,
  ])
}

/** Characters of the properties, for bounds in bytes; 0 without any. */
export function propertiesLength({ userProperties, properties }: PropertiesOf): number {
  let length = 0
  if (userProperties) for (const name in userProperties) length += name.length + userProperties[name]!.length
  if (!properties) return length
  const { contentType = '', responseTopic = '', correlation = '' } = properties
  return length + contentType.length + responseTopic.length + correlation.length
}

type PropertiesOf = Pick<Message, 'userProperties' | 'properties'>

/** The properties with names for a person. */
export function namedProperties({
  userProperties,
  properties,
}: PropertiesOf): (readonly [name: string, value: string])[] {
  const { contentType, responseTopic, correlation, isText, expiryS } = properties ?? {}
  const others = [
    ['content type', contentType],
    ['response topic', responseTopic],
    ['correlation data', correlation],
    ['payload format', isText && 'text'],
    ['expiry', expiryS === undefined ? undefined : `${expiryS} s`],
  ] as const
  return [
    ...Object.entries(userProperties ?? {}).map(([name, value]) => [`user property ${name}`, value] as const),
    ...others.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  ]
}

export function envelopeOf(message: Message, source: string | null): Envelope {
  const { topic, bytes, qos, retain, dup, sender, arrivedAt, arrival, from, stored } = message
  const { userProperties, properties } = message
  return {
    topic,
    bytes: bytes.toString('base64'),
    qos,
    retain,
    dup,
    clientId: sender.clientId,
    userName: sender.userName,
    certificateName: sender.certificateName,
    identity: sender.identity,
    ...(sender.address && { address: sender.address }),
    arrivedAt,
    ...(arrival && { arrival: { ...arrival } }),
    source,
    ...(from && { from }),
    ...(userProperties && { userProperties: { ...userProperties } }),
    ...(properties && { properties: { ...properties } }),
    ...(stored && { stored: { ...stored } }),
    ...(message.records && { records: message.records }),
  }
}

/** Whether a value from outside the gateway is an envelope. */
export function isEnvelope(value: unknown): value is Envelope {
  if (!isRecord(value)) return false
  const { topic, bytes, qos, retain, dup, arrivedAt, source, ...rest } = value
  const { clientId, userName, certificateName, identity = null, address = null, from = '' } = rest
  const { arrival, stored, userProperties = {}, properties = {}, records = [] } = rest
  return (
    typeof topic === 'string' &&
    typeof bytes === 'string' &&
    /^[A-Za-z0-9+/]*={0,2}$/.test(bytes) &&
    (qos === 0 || qos === 1 || qos === 2) &&
    typeof retain === 'boolean' &&
    typeof dup === 'boolean' &&
    typeof clientId === 'string' &&
    [userName, certificateName, identity, address, source].every(
      (one) => one === null || typeof one === 'string',
    ) &&
    Number.isFinite(arrivedAt) &&
    typeof from === 'string' &&
    (arrival === undefined || isArrival(arrival)) &&
    (stored === undefined || (isRecord(stored) && areFinite(stored['at'], stored['serial']))) &&
    isRecord(userProperties) &&
    Object.values(userProperties).every((one) => typeof one === 'string') &&
    areMessageProperties(properties) &&
    Array.isArray(records) &&
    records.every(isRecordMark)
  )
}

function isRecordMark(value: unknown): boolean {
  const { index, hash, sent = [], lost = [] } = isRecord(value) ? value : {}
  const areLists = Array.isArray(sent) && Array.isArray(lost)
  return (
    Number.isSafeInteger(index) &&
    areLists &&
    areTexts([hash, ...(sent as unknown[]), ...(lost as unknown[])])
  )
}

function areTexts(values: readonly unknown[]): boolean {
  return values.every((one) => typeof one === 'string')
}

/** Names that only a later version knows do not matter. */
function areMessageProperties(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { contentType = '', responseTopic = '', correlation = '', isText = true, expiryS = 0 } = value
  return (
    [contentType, responseTopic, correlation].every((one) => typeof one === 'string') &&
    isText === true &&
    Number.isFinite(expiryS)
  )
}

function isArrival(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { bootId, monotonicMs, offsetMs } = value
  return typeof bootId === 'string' && areFinite(monotonicMs, offsetMs ?? 0)
}

function areFinite(...values: readonly unknown[]): boolean {
  return values.every((value) => Number.isFinite(value))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A message that is kept whole on a message shelf. */
export type KeptMessage = {
  shelf: ShelfName
  provider: ProviderName | null
  /** Null while the device is not known. Such a message is found in order of arrival only. */
  device: string | null
  /** Of a message with records of several devices: all of them. `device` is the first. */
  devices?: readonly string[]
  /** Stable upper-case code, such as `UNKNOWN_DEVICE`. */
  reason: string
  /** One sentence for a person. */
  detail: string
  envelope: Envelope
}

/** A kept message is found by each of them. */
export function devicesOf({ device, devices }: Pick<KeptMessage, 'device' | 'devices'>): readonly string[] {
  return devices ?? (device === null ? [] : [device])
}
