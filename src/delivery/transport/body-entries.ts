// body-entries.ts: what the ledger records of a body that was sent: payloadId, signalTimestamp and device of
// each payload. Runs in the sender thread, once for each batch that may be settled.
//
// The mapper wrote this JSON, so it is not parsed: the members of a payload are skipped until device and time
// are found, which are among the first. A payload that is not written as expected is parsed.

import { createEntriesBuilder, type EntriesBuilder } from '../../receipts/entries-builder.ts'
import { payloadHead, payloadIdEnd } from '../../domain/payload.ts'
import { receiptKeys } from '../../receipts/receipts.ts'

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const minus = 0x2d
const zero = 0x30
const openingBrace = 0x7b
const closingBrace = 0x7d
const openingBracket = 0x5b
const closingBracket = 0x5d

const timeKey = Buffer.from('signalTimestamp')
const deviceKey = Buffer.from('deviceIdentifier')
const assetKey = Buffer.from('assetIdentifier')
const idHead = Buffer.from('{"id":"')

/** Found in one payload: positions in the body, 0 for none. */
type Found = { time: number; deviceStart: number; deviceEnd: number; assetStart: number; assetEnd: number }

/** `starts`: where each payload starts in the body, from BatchContent.writeBody(). */
export function entriesOfBody(body: Uint8Array, starts: Uint32Array): Uint8Array<ArrayBuffer> {
  const builder = createEntriesBuilder(body, starts.length)
  const found: Found = { time: Number.NaN, deviceStart: 0, deviceEnd: 0, assetStart: 0, assetEnd: 0 }
  // A comma separates two payloads, and two brackets follow the last one of a batch.
  const bodyEnd = starts[0] === 0 ? body.length : body.length - 2
  for (let index = 0; index < starts.length; index += 1) {
    const start = starts[index] ?? 0
    const next = starts[index + 1]
    const end = next === undefined ? bodyEnd : next - 1
    const idAt = start + payloadHead.length
    if (scan(body, start, end, found)) {
      const device =
        found.deviceEnd > 0
          ? builder.device(body, found.deviceStart, found.deviceEnd)
          : found.assetEnd > 0
            ? builder.device(body, found.assetStart, found.assetEnd)
            : 0
      builder.add(idAt, found.time, device)
    } else addParsed(builder, body, start, end)
  }
  return builder.finish(receiptKeys)
}

/** False where something is not as the mapper writes it, or a name has an escape. */
function scan(body: Uint8Array, start: number, end: number, found: Found): boolean {
  found.time = Number.NaN
  found.deviceEnd = found.assetEnd = 0
  // After the payloadId and its quote.
  let at = start + payloadIdEnd + 1
  while (at < end && body[at] === comma) {
    const keyStart = at + 2
    const keyEnd = endOfText(body, at + 1, end)
    if (keyEnd < 0 || body[keyEnd + 1] !== colon) return false
    const valueStart = keyEnd + 2
    if (is(body, keyStart, keyEnd, timeKey)) {
      at = endOfValue(body, valueStart, end)
      found.time = wholeNumber(body, valueStart, at)
    } else if (is(body, keyStart, keyEnd, deviceKey)) {
      found.deviceStart = valueStart + idHead.length
      found.deviceEnd = endOfId(body, valueStart, end)
      if (found.deviceEnd < 0) return false
      if (!Number.isNaN(found.time)) return true
      at = endOfValue(body, valueStart, end)
    } else if (is(body, keyStart, keyEnd, assetKey)) {
      found.assetStart = valueStart + idHead.length
      found.assetEnd = endOfId(body, valueStart, end)
      if (found.assetEnd < 0) return false
      at = endOfObject(body, found.assetEnd + 1, end)
    } else at = endOfValue(body, valueStart, end)
    if (at < 0) return false
  }
  return at === end - 1 && body[at] === closingBrace && !Number.isNaN(found.time)
}

/** The end of the name in `{"id":"name"...`; -1 where it is something else, empty, or has an escape. */
function endOfId(body: Uint8Array, at: number, end: number): number {
  const start = at + idHead.length
  if (!is(body, at, start, idHead)) return -1
  for (let place = start; place < end; place += 1) {
    const byte = body[place]
    if (byte === quote) return place > start ? place : -1
    if (byte === backslash) return -1
  }
  return -1
}

/** After the object that continues at `at`, where it has simple members only; else -1. */
function endOfObject(body: Uint8Array, at: number, end: number): number {
  for (let place = at; place < end; place += 1) {
    const byte = body[place]
    if (byte === closingBrace) return place + 1
    if (byte === quote) {
      place = endOfText(body, place, end)
      if (place < 0) return -1
    } else if (byte === openingBrace || byte === openingBracket) return -1
  }
  return -1
}

/** The closing quote of the text that starts with the quote at `at`; -1 for none. */
function endOfText(body: Uint8Array, at: number, end: number): number {
  if (body[at] !== quote) return -1
  for (let place = at + 1; place < end; place += 1) {
    const byte = body[place]
    if (byte === quote) return place
    if (byte === backslash) place += 1
  }
  return -1
}

/** After the value that starts at `at`; -1 where it has no end. */
function endOfValue(body: Uint8Array, at: number, end: number): number {
  let depth = 0
  for (let place = at; place < end; place += 1) {
    const byte = body[place] ?? 0
    if (byte === quote) {
      place = endOfText(body, place, end)
      if (place < 0) return -1
      if (depth === 0) return place + 1
    } else if (byte === openingBrace || byte === openingBracket) depth += 1
    else if (byte === closingBrace || byte === closingBracket) {
      if (depth === 0) return place
      depth -= 1
      if (depth === 0) return place + 1
    } else if (byte === comma && depth === 0) return place
  }
  return -1
}

function is(body: Uint8Array, start: number, end: number, key: Uint8Array): boolean {
  if (end - start !== key.length) return false
  for (let index = 0; index < key.length; index += 1) if (body[start + index] !== key[index]) return false
  return true
}

/** NaN where it is not a whole number. */
function wholeNumber(body: Uint8Array, start: number, end: number): number {
  const negative = body[start] === minus
  const first = negative ? start + 1 : start
  if (end <= first || end - first > 15) return Number.NaN
  let value = 0
  for (let at = first; at < end; at += 1) {
    const digit = (body[at] ?? 0) - zero
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return negative ? -value : value
}

/** For a payload that is not written as expected. */
function addParsed(builder: EntriesBuilder, body: Uint8Array, start: number, end: number): void {
  const idAt = start + payloadHead.length
  const payload = parsed(Buffer.from(body.subarray(start, end)).toString('utf8'))
  const time = member(payload, 'signalTimestamp')
  const name =
    member(member(payload, 'deviceIdentifier'), 'id') ?? member(member(payload, 'assetIdentifier'), 'id')
  const bytes = Buffer.from(typeof name === 'string' ? name : '')
  const device = typeof name === 'string' ? builder.device(bytes, 0, bytes.length) : 0
  builder.add(idAt, typeof time === 'number' ? time : Number.NaN, device)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name]
}
