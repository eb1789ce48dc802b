// device-record-codec.ts: a record as bytes.
//
//   key    20 | provider and device, as UTF-8
//   value  JSON (checked-json.ts): the format version, the device, its numbers, and the rest by short names
//
// A value has at most some 8 KB: losses, withheld values and the length of each text are bounded.

import type { ProviderName } from '../domain/ids.ts'
import type { Sender } from '../domain/message.ts'
import type { WithheldValue } from '../domain/payload.ts'
import type { EpochMs } from '../std/clock.ts'
import type { StoreRange } from '../storage/storage.ts'
import { decodeChecked, encodeChecked } from './checked-json.ts'
import { hoursKept, pausesLength } from './row-history.ts'
import { column, hoursColumn, pausesColumn, storedNumbers } from './record-table.ts'
import { gapsKept } from './rhythm.ts'
import type { Accepted, DeviceRecord, Loss, Refused, UnknownClock } from './types.ts'

const table = 0x20
const version = 2
const withheldMax = 16
const textLengthMax = 256

/** A record that was read. */
export type StoredRecord = {
  device: string
  provider: ProviderName
  assetId: string
  isListed: boolean
  isPrivate: boolean
  numbers: readonly number[]
  gaps: readonly number[]
  /** As in the row. */
  hours: readonly number[]
  /** The same; not in those of version 0.2.0-dev. */
  pauses?: readonly number[]
  from?: string | null
  source?: string | null
  mutedUntil?: EpochMs | null
  sender: Sender | null
  isFixed: boolean
  /** In the order of the last of each. */
  losses: readonly Loss[]
  /** Its last message gave no payload. Builds before this one did not note it. */
  isLost?: boolean
  accepted: Accepted | null
  /** Builds before this one did not count. */
  refused: (Omit<Refused, 'times'> & Partial<Refused>) | null
  withheld: readonly WithheldValue[]
  skewMs: number | null
  /** Only where it was not known to be right. */
  unknownClock?: UnknownClock
}

export const recordRange: StoreRange = { gte: Buffer.from([table]), lt: Buffer.from([table + 1]) }

export function recordKey(key: string): Buffer {
  return Buffer.concat([Buffer.from([table]), Buffer.from(key)])
}

export function encodeRecord(
  record: DeviceRecord,
  numbers: Float64Array,
  { withheld, unknownClock }: { withheld: readonly WithheldValue[]; unknownClock: UnknownClock | null },
): Buffer {
  const { device, provider, assetId, isListed, isPrivate, base, sender, isFixed, accepted, refused } = record
  const gapCount = Math.min(numbers[base + column.gapCount] ?? 0, gapsKept)
  const stored: StoredRecord = {
    device,
    provider,
    assetId: cut(assetId),
    isListed,
    isPrivate,
    numbers: filled(numberRow, storedNumbers, (index) => numbers[base + index]!),
    gaps: filled(gapRow, gapCount, (index) => Math.round(numbers[base + column.gaps + index]!)),
    hours: filled(hourRow, hoursKept, (index) => numbers[base + hoursColumn + index]!),
    pauses: filled(pauseRow, pausesLength, (index) => numbers[base + pausesColumn + index]!),
    from: record.from,
    source: record.source,
    mutedUntil: record.mutedUntil,
    sender: sender && boundedSender(sender),
    isFixed,
    losses: record.losses,
    isLost: record.became === 'lost',
    accepted,
    refused,
    withheld: withheld.slice(0, withheldMax),
    skewMs: record.skewMs,
    ...(unknownClock === null ? {} : { unknownClock }),
  }
  return encodeChecked([version, stored])
}

/** Used again for each record: they are text when `encodeRecord` returns. */
const [numberRow, gapRow, hourRow, pauseRow]: [number[], number[], number[], number[]] = [[], [], [], []]

function filled(row: number[], length: number, numberAt: (index: number) => number): readonly number[] {
  row.length = length
  for (let index = 0; index < length; index += 1) row[index] = numberAt(index)
  return row
}

/** Null for what is no record of this version. */
export function decodeRecord(value: Buffer): StoredRecord | null {
  const [found, stored] = (decodeChecked(value) ?? []) as [number?, StoredRecord?]
  return found === version && typeof stored?.device === 'string' ? stored : null
}

/** A client chooses these texts. */
function boundedSender({ clientId, userName, certificateName, identity }: Sender): Sender {
  return {
    clientId: cut(clientId),
    userName: userName === null ? null : cut(userName),
    certificateName: certificateName === null ? null : cut(certificateName),
    identity: identity === null ? null : cut(identity),
  }
}

function cut(text: string): string {
  return text.length <= textLengthMax ? text : text.slice(0, textLengthMax).toWellFormed()
}
