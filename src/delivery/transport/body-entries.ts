// body-entries.ts: what the ledger records of a body that was sent: payloadId, signalTimestamp and device of
// each payload. Runs in the sender thread, once for each batch that may be settled.
//
// The mapper wrote this JSON (mapping/devices), with time and device in the first members of a payload. One
// expression finds them, at a fraction of the cost of JSON.parse(). A payload that does not start so (an
// edited one, a name with an escape) is parsed.

import { createEntriesBuilder, type EntriesBuilder } from '../../receipts/entries-builder.ts'
import { receiptKeys } from '../../receipts/receipts.ts'
import { deviceOf, member, parsedPayload } from '../payload-json.ts'
import { payloadHead, payloadIdEnd } from '../../domain/payload.ts'

/** Behind the payloadId. A time of more digits is not exact as a number. */
const usualHead = new RegExp(
  [
    /^"(?:,"carrier":"[^"\\]*")?,"signalTimestamp":(-?\d{1,15})(?=[,}])/,
    /(,"assetIdentifier":\{"id":"([^"\\]+)"(?:,"[^"\\]*":"[^"\\]*")*\})?/,
    /(?:,"deviceIdentifier":\{"id":"([^"\\]+)")?/,
  ]
    .map(({ source }) => source)
    .join(''),
)
/** What is longer is parsed. */
const headBytesMax = 320
const assetHead = ',"assetIdentifier":{"id":"'
const deviceKey = Buffer.from('"deviceIdentifier"')

/** `starts`: where each payload starts in the body, from BatchContent.writeBody(). */
export function entriesOfBody(body: Buffer, starts: Uint32Array): Uint8Array<ArrayBuffer> {
  const builder = createEntriesBuilder(body, starts.length)
  // A comma separates two payloads, and two brackets follow the last one of a batch.
  const bodyEnd = starts[0] === 0 ? body.length : body.length - 2
  for (let index = 0; index < starts.length; index += 1) {
    const start = starts[index] ?? 0
    const next = starts[index + 1]
    const end = next === undefined ? bodyEnd : next - 1
    const idAt = start + payloadHead.length
    const found = findHead(body, start, end)
    if (found !== null) builder.add(idAt, found.time, builder.device(body, found.nameAt, found.nameEnd))
    else addParsed(builder, body, start, end)
  }
  return builder.finish(receiptKeys)
}

/** Null where the payload starts in another way. */
function findHead(body: Buffer, start: number, end: number) {
  const headAt = start + payloadIdEnd
  // One character for each byte.
  const match = usualHead.exec(body.toString('latin1', headAt, Math.min(end, headAt + headBytesMax)))
  if (match === null) return null
  const [found, time, asset, assetName, deviceName] = match
  const foundEnd = headAt + found.length
  if (deviceName !== undefined) {
    const nameEnd = foundEnd - 1
    return { time: Number(time), nameAt: nameEnd - deviceName.length, nameEnd }
  }
  if (asset === undefined || assetName === undefined) return null
  if (body.subarray(foundEnd, end).includes(deviceKey)) return null
  const nameAt = foundEnd - asset.length + assetHead.length
  return { time: Number(time), nameAt, nameEnd: nameAt + assetName.length }
}

function addParsed(builder: EntriesBuilder, body: Buffer, start: number, end: number): void {
  const payload = parsedPayload(body.toString('utf8', start, end))
  const time = member(payload, 'signalTimestamp')
  const name = deviceOf(payload)
  const bytes = Buffer.from(name ?? '')
  const device = name === null ? 0 : builder.device(bytes, 0, bytes.length)
  builder.add(start + payloadHead.length, typeof time === 'number' ? time : Number.NaN, device)
}
