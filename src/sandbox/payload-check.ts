// payload-check.ts: checks type and range of every payload field that the specification shows
// (ingestion-api.md 2.1 to 2.5). Written by hand, because a benchmark sends tens of thousands of payloads a
// second through it.
//
// Values outside the known enumerations are accepted, and so are fields that the specification does not show.
// Which fields are required is "not shown": Requirement lists the defaults and their reasons.

import { quote } from '../std/quote.ts'
import { isUuid } from './uuid.ts'

/**
 * payloadId in a single submission too; in a batch it is always required, because it is the key of the answer
 * identity an assetIdentifier or deviceIdentifier with an id; without it the owner of the data is unknown
 * content gps or at least one signal; without them the payload is empty position latitude and longitude in
 * gps: the specification shows an empty latitude as a failure signal type and value in each signal timestamp
 * signalTimestamp carrier carrier
 */
export type Requirement =
  'payloadId' | 'identity' | 'content' | 'position' | 'signal' | 'timestamp' | 'carrier'

export const requirements = [
  'payloadId',
  'identity',
  'content',
  'position',
  'signal',
  'timestamp',
  'carrier',
] as const

export const defaultRequirements: readonly Requirement[] = ['identity', 'content', 'position', 'signal']

export type FieldProblem = { field: string; message: string }

export type JsonObject = Readonly<Record<string, unknown>>

/** The most problems that are reported for one payload, which may have a thousand wrong signals. */
const problemsMax = 100
/** The largest time that a Date can represent. */
const epochMsMax = 8.64e15

export type PayloadCheck = (payload: JsonObject, inBatch: boolean) => readonly FieldProblem[]

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function createPayloadCheck(required: ReadonlySet<Requirement>): PayloadCheck {
  const needs = {
    payloadId: required.has('payloadId'),
    identity: required.has('identity'),
    content: required.has('content'),
    position: required.has('position'),
    signal: required.has('signal'),
    timestamp: required.has('timestamp'),
    carrier: required.has('carrier'),
  }

  return (payload, inBatch) => {
    const problems: FieldProblem[] = []
    uuid(problems, payload, '', 'payloadId', needs.payloadId || inBatch)
    text(problems, payload, '', 'carrier', needs.carrier)
    moment(problems, payload, needs.timestamp)
    identity(problems, payload, needs.identity)
    const gps = object(problems, payload, 'gps')
    if (gps) position(problems, gps, needs.position)
    const signals = signalsOf(problems, payload, needs.signal)
    if (needs.content && payload['gps'] === undefined && (signals ?? 1) === 0)
      add(problems, '', 'gps', 'or at least one signal is required')
    return problems
  }
}

function add(problems: FieldProblem[], prefix: string, key: string, message: string): void {
  if (problems.length < problemsMax)
    problems.push({ field: prefix + key, message: `${prefix}${key} ${message}` })
}

function found(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'string' ? quote(value, 60) : `${value as number | boolean}`
}

function missing(problems: FieldProblem[], prefix: string, key: string, required: boolean): void {
  if (required) add(problems, prefix, key, 'is required')
}

function uuid(
  problems: FieldProblem[],
  from: JsonObject,
  prefix: string,
  key: string,
  required: boolean,
): void {
  const value = from[key]
  if (value === undefined) missing(problems, prefix, key, required)
  else if (!isUuid(value)) add(problems, prefix, key, `must be a UUID, found ${found(value)}`)
}

function text(
  problems: FieldProblem[],
  from: JsonObject,
  prefix: string,
  key: string,
  required = false,
): void {
  const value = from[key]
  if (value === undefined) missing(problems, prefix, key, required)
  else if (typeof value !== 'string') add(problems, prefix, key, `must be a string, found ${found(value)}`)
  else if (value === '') add(problems, prefix, key, 'must not be empty')
}

type Range = { least: number; most: number; required?: boolean }

const latitudes: Range = { least: -90, most: 90 }
const longitudes: Range = { least: -180, most: 180 }
const speeds: Range = { least: 0, most: Infinity }
const headings: Range = { least: 0, most: 360 }
const times: Range = { least: 0, most: epochMsMax }
const requiredLatitudes: Range = { ...latitudes, required: true }
const requiredLongitudes: Range = { ...longitudes, required: true }
const requiredTimes: Range = { ...times, required: true }

/** JSON.parse reads a number beyond the range of doubles (1e400) as Infinity, which fails every range. */
function number(problems: FieldProblem[], from: JsonObject, prefix: string, key: string, range: Range): void {
  const { least, most, required = false } = range
  const value = from[key]
  if (value === undefined) missing(problems, prefix, key, required)
  else if (value === null || value === '') add(problems, prefix, key, 'must not be empty')
  else if (typeof value !== 'number') add(problems, prefix, key, `must be a number, found ${found(value)}`)
  else if (!(value >= least && value <= most && Number.isFinite(value)))
    add(
      problems,
      prefix,
      key,
      `must be ${most === Infinity ? `at least ${least}` : `${least} to ${most}`}, found ${value}`,
    )
}

function object(problems: FieldProblem[], from: JsonObject, key: string): JsonObject | null {
  const value = from[key]
  if (value === undefined) return null
  if (isJsonObject(value)) return value
  add(problems, '', key, `must be an object, found ${found(value)}`)
  return null
}

function moment(problems: FieldProblem[], payload: JsonObject, required: boolean): void {
  const before = problems.length
  number(problems, payload, '', 'signalTimestamp', required ? requiredTimes : times)
  const value = payload['signalTimestamp']
  if (problems.length === before && value !== undefined && !Number.isInteger(value))
    add(problems, '', 'signalTimestamp', `must be whole milliseconds, found ${found(value)}`)
}

function identity(problems: FieldProblem[], payload: JsonObject, required: boolean): void {
  const asset = object(problems, payload, 'assetIdentifier')
  if (asset) {
    text(problems, asset, 'assetIdentifier.', 'id')
    text(problems, asset, 'assetIdentifier.', 'type')
    text(problems, asset, 'assetIdentifier.', 'operator')
  }
  const device = object(problems, payload, 'deviceIdentifier')
  if (device) {
    text(problems, device, 'deviceIdentifier.', 'id')
    text(problems, device, 'deviceIdentifier.', 'manufacturer')
    text(problems, device, 'deviceIdentifier.', 'model')
  }
  if (!required || asset?.['id'] !== undefined || device?.['id'] !== undefined) return
  if (asset) add(problems, 'assetIdentifier.', 'id', 'is required')
  else if (device) add(problems, 'deviceIdentifier.', 'id', 'is required')
  else if (payload['assetIdentifier'] === undefined && payload['deviceIdentifier'] === undefined)
    add(problems, '', 'assetIdentifier', 'or deviceIdentifier is required')
}

function position(problems: FieldProblem[], gps: JsonObject, required: boolean): void {
  number(problems, gps, 'gps.', 'latitude', required ? requiredLatitudes : latitudes)
  number(problems, gps, 'gps.', 'longitude', required ? requiredLongitudes : longitudes)
  number(problems, gps, 'gps.', 'speed', speeds)
  text(problems, gps, 'gps.', 'speedUnits')
  number(problems, gps, 'gps.', 'heading', headings)
  const moving = gps['inMotion']
  if (moving !== undefined && typeof moving !== 'boolean')
    add(problems, 'gps.', 'inMotion', `must be true or false, found ${found(moving)}`)
}

/** The number of signals; null where `signals` is not a list. */
function signalsOf(problems: FieldProblem[], payload: JsonObject, required: boolean): number | null {
  const signals: unknown = payload['signals']
  if (signals === undefined) return 0
  if (!Array.isArray(signals)) {
    add(problems, '', 'signals', `must be an array, found ${found(signals)}`)
    return null
  }
  for (let index = 0; index < signals.length && problems.length < problemsMax; index += 1) {
    const signal: unknown = signals[index]
    if (isJsonObject(signal)) checkSignal(problems, signal, `signals[${index}].`, required)
    else add(problems, '', `signals[${index}]`, `must be an object, found ${found(signal)}`)
  }
  return signals.length
}

function checkSignal(problems: FieldProblem[], signal: JsonObject, prefix: string, required: boolean): void {
  uuid(problems, signal, prefix, 'id', false)
  text(problems, signal, prefix, 'type', required)
  text(problems, signal, prefix, 'valueUnit')
  text(problems, signal, prefix, 'assetPart')
  const value = signal['value']
  if (value === undefined) missing(problems, prefix, 'value', required)
  else if (typeof value !== 'string')
    add(problems, prefix, 'value', `must be a string, found ${found(value)}`)
  else if (!/^-?\d+(?:\.\d+)?$/.test(value))
    add(problems, prefix, 'value', `must hold a decimal number such as 152340.7, found ${found(value)}`)
}
