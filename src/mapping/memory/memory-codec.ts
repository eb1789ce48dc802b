// memory-codec.ts: the stored form of what is remembered of a device: JSON.
//
//   { "asset": "TRUCK-7", "values": { "lock": [time, "no"] },
//     "counters": { "OBD_LIFETIME_ODOMETER": [time, "48211.4"] } }
//
// While readings are withheld, a counter goes on with the run: since, withheld, agreeing, agreeingSince, and
// time and value of its last reading.
//
// Decoding is total: bytes that are no such entry give null. Unknown keys are of a newer version; they are
// ignored.

import { jsonString } from '../fields/json-string.ts'
import { isRecord } from '../path/path-eval.ts'
import type { CounterReading, CounterState, DeviceMemory, Plain, RememberedValue } from './device-memory.ts'

type Content = Pick<DeviceMemory, 'asset' | 'values' | 'counters'>

/** Put together by hand: a truck in motion is encoded with every message. */
export function encodeMemory({ asset, values, counters }: Content): Buffer {
  let text = `{"asset":${jsonString(asset)}`
  let before = ',"values":{'
  for (const [name, { time, value }] of values) {
    text += `${before}${jsonString(name)}:[${time},${JSON.stringify(value)}]`
    before = ','
  }
  if (values.size > 0) text += '}'
  before = ',"counters":{'
  for (const [name, { time, text: value, run }] of counters) {
    text += `${before}${jsonString(name)}:[${time},"${value}"${run === null ? '' : runText(run)}]`
    before = ','
  }
  if (counters.size > 0) text += '}'
  return Buffer.from(`${text}}`)
}

function runText(run: NonNullable<CounterState['run']>): string {
  const { since, withheld, agreeing, agreeingSince, last } = run
  return `,${since},${withheld},${agreeing},${agreeingSince},${last.time},"${last.text}"`
}

export function decodeMemory(bytes: Buffer): Content | null {
  const found = parsed(bytes)
  if (!isRecord(found) || typeof found['asset'] !== 'string') return null
  const values = new Map<string, RememberedValue>()
  for (const [name, stored] of entriesOf(found['values'])) {
    if (!Array.isArray(stored)) return null
    const [time, value] = stored as unknown[]
    if (typeof time !== 'number' || !isPlain(value)) return null
    values.set(name, { time, value })
  }
  const counters = new Map<string, CounterState>()
  for (const [name, stored] of entriesOf(found['counters'])) {
    const state = counterIn(stored)
    if (state === null) return null
    counters.set(name, state)
  }
  return { asset: found['asset'], values, counters }
}

function entriesOf(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : []
}

function counterIn(stored: unknown): CounterState | null {
  if (!Array.isArray(stored)) return null
  const [time, text, since, withheld, agreeing, agreeingSince, lastTime, lastText] = stored as unknown[]
  const reading = readingOf(time, text)
  if (reading === null || stored.length === 2) return reading && { ...reading, run: null }
  const last = readingOf(lastTime, lastText)
  if (typeof since !== 'number' || typeof withheld !== 'number' || last === null) return null
  if (typeof agreeing !== 'number' || typeof agreeingSince !== 'number') return null
  return { ...reading, run: { since, withheld, agreeing, agreeingSince, last } }
}

function readingOf(time: unknown, text: unknown): CounterReading | null {
  if (typeof time !== 'number' || typeof text !== 'string' || !Number.isFinite(Number(text))) return null
  return { time, value: Number(text), text }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
