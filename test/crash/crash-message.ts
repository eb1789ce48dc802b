// crash-message.ts: the messages of a crash run. Device and time identify each message, and all its values
// follow from them, so that the rules know what the service must have received.

import type { Envelope } from '../../src/domain/message.ts'
import type { SentProperties } from './crash-link.ts'

export type Message = {
  device: string
  /** Counts the messages of its device. */
  n: number
  ts: number
  kind: 'good' | 'malformed'
  qos: 1 | 2
  /** Of a device of MQTT 5; null for 3.1.1. */
  properties: SentProperties | null
}

/** Every payload of this device is refused by the service: it ends as a dead letter. */
export const doomedDevice = 'doomed'

/** Every n-th message of a device is not JSON. */
const malformedEvery = 37

/** Milliseconds; the times of the messages count from here. */
const firstTs = Date.UTC(2026, 0, 1)

/** The messages of a device of MQTT 5 have properties. */
export function messageOf(device: string, n: number, { qos, version }: Sending): Message {
  const properties = version === 5 ? propertiesOf(n) : null
  const kind = n % malformedEvery === 0 ? 'malformed' : 'good'
  return { device, n, ts: firstTs + n * 10, kind, qos, properties }
}

type Sending = { qos: Message['qos']; version: 4 | 5 }

function propertiesOf(n: number): SentProperties {
  return { trip: String(1 + (n % 5000)), contentType: 'application/json', correlation: `message ${n}` }
}

export function topicOf({ device }: Message): string {
  return `telemetry/v1/${device}`
}

export function bytesOf(message: Message): string {
  if (message.kind === 'malformed') return malformedText(message)
  const { latitude, longitude, speed, odometer } = valuesOf(message)
  return JSON.stringify({
    ts: message.ts,
    gps: { lat: latitude, lon: longitude, speed, heading: message.n % 360, moving: true },
    odometer: { value: odometer },
  })
}

export function malformedText({ device, n }: Message): string {
  return `{"device":"${device}","n":${n},`
}

export function keyOf(device: string, ts: number): string {
  return `${device} ${ts}`
}

function valuesOf({ n }: Message) {
  return {
    latitude: (n % 18_000) / 100 - 90,
    longitude: (n % 36_000) / 100 - 180,
    speed: n % 130,
    // 0.1 m a message: no vehicle goes faster than plausibility allows.
    odometer: (1_000_000_000 + n) / 10_000,
  }
}

type Accepted = {
  signalTimestamp: number
  deviceIdentifier: { id: string }
  gps: { latitude: number; longitude: number; speed: number; heading: number; inMotion: boolean }
  signals: { type: string; value: string }[]
}

/** The difference between a message and the payload that the service received; null if there is none. */
export function wrongIn(message: Message, { gps, signals }: Accepted): string | null {
  const { latitude, longitude, speed, odometer } = valuesOf(message)
  const heading = message.n % 360
  const trip = signals.find(({ type }) => type === 'TRIP')?.value
  const found = [gps.latitude, gps.longitude, gps.speed, gps.heading, signals[0]?.value, trip]
  const meant = [latitude, longitude, speed, heading, String(odometer), message.properties?.trip]
  return JSON.stringify(found) === JSON.stringify(meant)
    ? null
    : `${JSON.stringify(found)} instead of ${JSON.stringify(meant)}`
}

/** The difference between the properties of a message and those of its envelope; null if there is none. */
export function wrongProperties({ properties }: Message, envelope: Envelope): string | null {
  const { userProperties, properties: kept } = envelope
  const found = [userProperties?.['trip'], kept?.contentType, kept?.correlation, kept?.isText]
  const meant =
    properties === null
      ? [undefined, undefined, undefined, undefined]
      : [
          properties.trip,
          properties.contentType,
          Buffer.from(properties.correlation).toString('base64'),
          true,
        ]
  return JSON.stringify(found) === JSON.stringify(meant)
    ? null
    : `${JSON.stringify(found)} instead of ${JSON.stringify(meant)}`
}

export type { Accepted }
