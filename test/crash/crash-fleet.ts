// crash-fleet.ts: the devices of a crash run, what each of their messages contains, and what must become of it. All values
// follow from the device and the number of a message, so that the oracle knows what the service must have received.
//
//   truck-1 to truck-7   device times: exactly once, over both versions, both QoS, TCP and WebSocket, all kinds of sessions
//   doomed               every payload is refused by the service: dead letters
//   parked-1, parked-2, parked-3
//                        equal bytes without a time: no reading may be lost; where the gateway cannot decide, one comes twice
//   stored-1, stored-5   the same with QoS 2 in a stored session, always packet identifier 1: exactly once
//   Depot/plant/P1       Sparkplug B, whose aliases the gateway must remember: exactly once
//
// Every 37th message of a truck is not JSON: a dead letter, with the properties of MQTT 5.

import { Fleet, type Sent } from '../support/driver/fleet.ts'
import type { Content, DevicePlan } from '../support/driver/device.ts'
import { nameOf, type Came, type Expected } from '../support/driver/oracle.ts'
import type { Arrival, Payload } from '../support/driver/service.ts'
import type { Envelope } from '../../src/domain/message.ts'
import { property, text, userProperty } from '../support/mqtt5-packets.ts'
import { sparkplugPayload, types } from '../support/sparkplug-payload.ts'

export const doomedDevice = 'doomed'
const plant = 'Depot/plant/P1'

type Row = Omit<DevicePlan, 'message'> & { overWebSocket?: boolean; mayRepeat?: boolean }

const stored = { version: 5, window: 16, clean: false, expiryS: 86_400 } as const
/** It may be taken for the message before, except in a stored session of QoS 2. */
const parked = { everyMs: 20, packetIdOf: () => 1 } as const

const rows: readonly Row[] = [
  // Slower than the others: its payloads are retried.
  { name: doomedDevice },
  { name: 'truck-1', ...stored },
  { name: 'truck-2', window: 4 },
  { name: 'truck-3', ...stored, qos: 2, overWebSocket: true },
  { name: 'truck-4', window: 4, overWebSocket: true },
  { name: 'truck-5', ...stored, expiryS: 0 },
  { name: 'truck-6', window: 4, qos: 2 },
  { name: 'truck-7', ...stored, clean: true, overWebSocket: true },
  { name: 'parked-1', ...parked, mayRepeat: true },
  { name: 'parked-2', ...parked, version: 5, mayRepeat: true },
  { name: 'parked-3', everyMs: 20, qos: 2, mayRepeat: true },
  { name: 'stored-1', ...parked, qos: 2, clean: false },
  { name: 'stored-5', ...parked, ...stored, qos: 2, window: 1, overWebSocket: true },
  { name: plant, everyMs: 20 },
]

export function createCrashFleet(): Fleet {
  return new Fleet(
    rows.map((row) => ({
      ...row,
      message: (n) =>
        isUntimed(row.name) ? parkedOf(row.name) : row.name === plant ? plantOf(n) : truckOf(row, n),
    })),
  )
}

export type Ports = { mqttPort: number; wsPort: number }

export function urlOf({ name }: DevicePlan, { mqttPort, wsPort }: Ports): string {
  return rowOf(name).overWebSocket === true ? `ws://127.0.0.1:${wsPort}/mqtt` : `mqtt://127.0.0.1:${mqttPort}`
}

// ------------------------------------------------------------------------------------------------ messages

/** Milliseconds; the times of the messages count from here. */
const firstTs = Date.UTC(2026, 0, 1)
const tsOf = (n: number) => firstTs + n * 10
const malformedEvery = 37
const isMalformed = (name: string, n: number) => n % malformedEvery === 0 && name !== plant

const rowOf = (name: string) => rows.find((row) => row.name === name)!
const isUntimed = (name: string) => /^(parked|stored)-/.test(name)

const parkedOf = (name: string): Content => ({ topic: `parked/${name}`, payload: '{"lat":52.5,"lon":13.4}' })

function truckOf({ name, version }: Row, n: number): Content {
  const { latitude, longitude, speed, heading, odometer } = valuesOf(n)
  const body = {
    ts: tsOf(n),
    gps: { lat: latitude, lon: longitude, speed, heading, moving: true },
    odometer: { value: odometer },
  }
  const { trip, contentType, correlation } = propertiesOf(n)
  const properties = [
    Buffer.from([property.payloadFormat, 1]),
    Buffer.from([property.contentType]),
    text(contentType),
    Buffer.from([property.correlationData]),
    text(correlation),
    userProperty('depot', 'north'),
    userProperty('trip', trip),
  ]
  return {
    topic: `telemetry/v1/${name}`,
    payload: isMalformed(name, n) ? `{"device":"${name}","n":${n},` : JSON.stringify(body),
    ...(version === 5 && { properties }),
  }
}

const propertiesOf = (n: number) => ({
  trip: String(1 + (n % 5000)),
  contentType: 'application/json',
  correlation: `message ${n}`,
})

function plantOf(n: number): Content {
  const isBirth = n % 5 === 1
  const metric = (alias: number, name: string, double: number) => ({
    alias,
    ts: tsOf(n),
    double,
    ...(isBirth ? { name, type: types.double } : {}),
  })
  const { latitude, longitude } = plantValues(n)
  const metrics = [metric(1, 'GPS/Latitude', latitude), metric(2, 'GPS/Longitude', longitude)]
  return {
    topic: `spBv1.0/Depot/${isBirth ? 'DBIRTH' : 'DDATA'}/plant/P1`,
    payload: sparkplugPayload({ ts: tsOf(n), seq: n % 256, metrics }),
  }
}

const plantValues = (n: number) => ({ latitude: 50 + (n % 1000) / 1000, longitude: 13 })

function valuesOf(n: number) {
  return {
    latitude: (n % 18_000) / 100 - 90,
    longitude: (n % 36_000) / 100 - 180,
    speed: n % 130,
    heading: n % 360,
    // 0.1 m a message: no vehicle goes faster than plausibility allows.
    odometer: (1_000_000_000 + n) / 10_000,
  }
}

// ---------------------------------------------------------------------------------------------- expectation

export function* expectedOf(messages: Iterable<Sent>): Iterable<Expected> {
  for (const { plan, n, isAcked } of messages) {
    const { name, version, mayRepeat = false } = plan as Row
    const timed = { name: nameOf(name, tsOf(n)), isAcked }
    const properties = version === 5 ? propertiesOf(n) : {}
    if (isUntimed(name)) yield { name, isAcked, mayRepeat }
    else if (isMalformed(name, n)) yield { ...timed, end: 'dead letter', content: propertiesText(properties) }
    else if (name === doomedDevice) yield { ...timed, end: 'dead letter' }
    else
      yield { ...timed, content: textOf(name === plant ? plantValues(n) : { ...valuesOf(n), ...properties }) }
  }
}

export function* cameOf(arrivals: Iterable<Arrival>): Iterable<Came> {
  for (const { device, ts, gateway, content } of arrivals)
    yield { name: isUntimed(device) ? device : nameOf(device, ts), gateway, content }
}

/** A line of `dead-letters export`. */
export function deadLetterOf(line: string): Came {
  const { envelope, payload } = JSON.parse(line) as DeadLetter
  if (envelope === undefined)
    return { name: nameOf(payload.deviceIdentifier.id, payload.signalTimestamp), end: 'dead letter' }
  const { topic, bytes, userProperties, properties = {} } = envelope
  const [, device = topic, n] =
    /"device":"(.*)","n":(\d+)/.exec(Buffer.from(bytes, 'base64').toString()) ?? []
  const correlation = properties.correlation && Buffer.from(properties.correlation, 'base64').toString()
  const content = propertiesText({ ...properties, ...userProperties, correlation })
  return { name: nameOf(device, tsOf(Number(n))), end: 'dead letter', content }
}

type DeadLetter =
  | { envelope: Envelope; payload: undefined }
  | { envelope: undefined; payload: { signalTimestamp: number; deviceIdentifier: { id: string } } }

/** Of a payload that the service accepted. */
export function contentOf({ gps, signals = [] }: Payload): string {
  const valueOf = (type: string) => signals.find((signal) => signal.type === type)?.value
  return textOf({ ...gps, odometer: valueOf('OBD_LIFETIME_ODOMETER'), trip: valueOf('TRIP') })
}

type Values = Partial<Record<'latitude' | 'longitude' | 'speed' | 'heading' | 'odometer' | 'trip', unknown>>
const textOf = ({ latitude, longitude, speed, heading, odometer, trip }: Values) =>
  [latitude, longitude, speed, heading, odometer, trip].join(' ')

type Properties = Partial<Record<'trip' | 'contentType' | 'correlation', unknown>>
const propertiesText = ({ trip, contentType, correlation }: Properties) =>
  [trip, contentType, correlation].join(' ')
