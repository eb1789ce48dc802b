// body-entries.ts: what the ledger records of a body that was sent: payloadId, signalTimestamp and device of
// each payload. Runs in the sender thread, once for each batch that may be settled.
//
// The mapper wrote this JSON (mapping/devices), and time and device are in the first members of a payload:
//
//   {"payloadId":"…"(,"carrier":"…"),"signalTimestamp":1(,"assetIdentifier":{"id":"…"(,"type":"…")…})
//   (,"deviceIdentifier":{"id":"…"
//
// They are found byte by byte, without a text or an object for a payload. A payload that does not start so
// (an edited one, a name with an escape) is parsed.

import { createEntriesBuilder, type EntriesBuilder } from '../../receipts/entries-builder.ts'
import { receiptKeys } from '../../receipts/receipts.ts'
import { deviceOf, member, parsedPayload } from '../payload-json.ts'
import { payloadHead, payloadIdEnd } from '../../domain/payload.ts'

/** Text to compare with, four bytes at a time: that takes a quarter of the time. */
type Literal = { bytes: Buffer; words: Uint32Array }

/** Behind the quote that ends the payloadId. */
const carrierHead = literal(',"carrier":"')
const timeHead = literal(',"signalTimestamp":')
const assetHead = literal(',"assetIdentifier":{"id":"')
const deviceHead = literal(',"deviceIdentifier":{"id":"')
const deviceKey = Buffer.from('"deviceIdentifier"')

/** More of them are not exact as a number. */
const timeDigitsMax = 15

const quote = 0x22
const comma = 0x2c
const minus = 0x2d
const zero = 0x30
const colon = 0x3a
const backslash = 0x5c
const brace = 0x7d

/** `starts`: where each payload starts in the body, from BatchContent.writeBody(). */
export function entriesOfBody(body: Buffer, starts: Uint32Array): Uint8Array<ArrayBuffer> {
  const builder = createEntriesBuilder(body, starts.length)
  const bytes = { body, view: new DataView(body.buffer, body.byteOffset, body.length) }
  // A comma separates two payloads, and two brackets follow the last one of a batch.
  const bodyEnd = starts[0] === 0 ? body.length : body.length - 2
  for (let index = 0; index < starts.length; index += 1) {
    const start = starts[index] ?? 0
    const next = starts[index + 1]
    const end = next === undefined ? bodyEnd : next - 1
    if (!addFound(builder, bytes, start, end)) addParsed(builder, body, start, end)
  }
  return builder.finish(receiptKeys)
}

/** False, and nothing is added, where the payload starts in another way. */
function addFound(
  builder: EntriesBuilder,
  { body, view }: { body: Buffer; view: DataView },
  start: number,
  end: number,
): boolean {
  let at = start + payloadIdEnd
  if (body[at] !== quote) return false
  at += 1
  if (holds(view, at, carrierHead)) {
    at = textEnd(body, at + carrierHead.bytes.length, end) + 1
    if (at === 0) return false
  }
  if (!holds(view, at, timeHead)) return false
  at += timeHead.bytes.length
  const isNegative = body[at] === minus
  if (isNegative) at += 1
  const digitsAt = at
  let time = 0
  for (let digit = digitAt(body, at); digit <= 9; digit = digitAt(body, at)) {
    time = time * 10 + digit
    at += 1
  }
  if (at === digitsAt || at - digitsAt > timeDigitsMax) return false
  let nameAt = 0
  let nameEnd = 0
  if (holds(view, at, assetHead)) {
    nameAt = at + assetHead.bytes.length
    nameEnd = textEnd(body, nameAt, end)
    at = textMembersEnd(body, nameEnd + 1, end)
    if (nameEnd <= nameAt || at < 0) return false
  }
  if (holds(view, at, deviceHead)) {
    nameAt = at + deviceHead.bytes.length
    nameEnd = textEnd(body, nameAt, end)
    if (nameEnd <= nameAt) return false
  } else if (nameEnd === 0 || body.subarray(at, end).includes(deviceKey)) return false
  const device = builder.device(body, nameAt, nameEnd)
  builder.add(start + payloadHead.length, isNegative ? -time : time, device)
  return true
}

function literal(text: string): Literal {
  const bytes = Buffer.from(text)
  const words = Uint32Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) =>
    bytes.readUInt32LE(index * 4),
  )
  return { bytes, words }
}

function holds(view: DataView, from: number, { bytes, words }: Literal): boolean {
  if (from + bytes.length > view.byteLength) return false
  let at = from
  for (let index = 0; index < words.length; index += 1) {
    if (view.getUint32(at, true) !== words[index]) return false
    at += 4
  }
  for (; at < from + bytes.length; at += 1) if (view.getUint8(at) !== bytes[at - from]) return false
  return true
}

/** Above 9 if it is no digit. */
function digitAt(body: Buffer, at: number): number {
  return ((body[at] ?? 0) - zero) & 0xff
}

/** Where the quote is that ends a text; -1 where an escape is before it. */
function textEnd(body: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && body[at] !== quote && body[at] !== backslash) at += 1
  return at < end && body[at] === quote ? at : -1
}

/** The end of an object whose further members are texts; -1 where one is something else. */
function textMembersEnd(body: Buffer, from: number, end: number): number {
  let at = from
  while (body[at] === comma) {
    if (body[at + 1] !== quote) return -1
    const nameEnd = textEnd(body, at + 2, end)
    if (nameEnd < 0 || body[nameEnd + 1] !== colon || body[nameEnd + 2] !== quote) return -1
    at = textEnd(body, nameEnd + 3, end) + 1
    if (at === 0) return -1
  }
  return body[at] === brace ? at + 1 : -1
}

function addParsed(builder: EntriesBuilder, body: Buffer, start: number, end: number): void {
  const payload = parsedPayload(body.toString('utf8', start, end))
  const time = member(payload, 'signalTimestamp')
  const name = deviceOf(payload)
  const bytes = Buffer.from(name ?? '')
  const device = name === null ? 0 : builder.device(bytes, 0, bytes.length)
  builder.add(start + payloadHead.length, typeof time === 'number' ? time : Number.NaN, device)
}
