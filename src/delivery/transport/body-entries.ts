// body-entries.ts: what the ledger records of a body that was sent: payloadId, signalTimestamp and device of
// each payload. Runs in the sender thread, once for each batch that may be settled.
//
// The mapper wrote this JSON (mapping/devices), and one expression finds time and device in the first members
// of a payload. A payload that does not start so (an edited one, a name with an escape) is parsed.

import { createEntriesBuilder, type EntriesBuilder } from '../../receipts/entries-builder.ts'
import { receiptKeys } from '../../receipts/receipts.ts'
import { deviceOf, member, parsedPayload } from '../payload-json.ts'
import { payloadHead, payloadIdEnd } from '../../domain/payload.ts'

/**
 * From the quote that ends the payloadId; groups: time, asset id, device id. On latin1, where a character is
 * a byte.
 */
const firstMembers = new RegExp(
  [
    '"(?:,"carrier":"[^"\\\\]*")?,"signalTimestamp":(-?\\d{1,15})',
    '(?:,"assetIdentifier":{"id":"([^"\\\\]+)"(?:,"[a-z]+":"[^"\\\\]*")*})?',
    '(?:,"deviceIdentifier":{"id":"([^"\\\\]+)")?',
  ].join(''),
  'y',
)
const firstMembersBytes = 400

/** `starts`: where each payload starts in the body, from BatchContent.writeBody(). */
export function entriesOfBody(body: Buffer, starts: Uint32Array): Uint8Array<ArrayBuffer> {
  const builder = createEntriesBuilder(body, starts.length)
  // A comma separates two payloads, and two brackets follow the last one of a batch.
  const bodyEnd = starts[0] === 0 ? body.length : body.length - 2
  for (let index = 0; index < starts.length; index += 1) {
    const start = starts[index] ?? 0
    const next = starts[index + 1]
    const end = next === undefined ? bodyEnd : next - 1
    const at = start + payloadIdEnd
    firstMembers.lastIndex = 0
    const found = firstMembers.exec(body.toString('latin1', at, Math.min(end, at + firstMembersBytes)))
    const [, time, asset, device] = found ?? []
    const idAt = start + payloadHead.length
    if (device !== undefined) {
      const deviceEnd = at + firstMembers.lastIndex - 1
      builder.add(idAt, Number(time), builder.device(body, deviceEnd - device.length, deviceEnd))
    } else if (asset !== undefined && !body.toString('latin1', at, end).includes('"deviceIdentifier"')) {
      builder.add(idAt, Number(time), builder.device(Buffer.from(asset, 'latin1'), 0, asset.length))
    } else addParsed(builder, idAt, body.toString('utf8', start, end))
  }
  return builder.finish(receiptKeys)
}

function addParsed(builder: EntriesBuilder, idAt: number, json: string): void {
  const payload = parsedPayload(json)
  const time = member(payload, 'signalTimestamp')
  const name = deviceOf(payload)
  const bytes = Buffer.from(name ?? '')
  const device = name === null ? 0 : builder.device(bytes, 0, bytes.length)
  builder.add(idAt, typeof time === 'number' ? time : Number.NaN, device)
}
