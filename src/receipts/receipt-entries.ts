// receipt-entries.ts: the payloads of one batch for the ledger: payloadId, device time and device of each,
// packed by column, with a Bloom filter of the devices and payloadIds.
//
//   0   payloads (4)   4 bytes of an id (1): 16, or 36 as text if an id is no UUID in lower case
//   5   bytes of a time (1): 1 to 6, counted from the earliest; 8: each a float64, NaN if a payload has none
//   6   bytes of a device number (1)   7 free (1)
//   8   earliest time (8)   16 latest time (8), NaN if there is none
//   24  devices (4)   28 bytes of the filter (4)
//   32  filter | ids | times | device numbers, 0 for none | names of the devices, each with its length (2)
//
// Little-endian. The thread that sends packs them, since it has the body (sender-thread.ts). The main thread
// only moves them. A payload takes some 22 bytes.

import type { EpochMs } from '../std/clock.ts'
import { hashOfText } from './bloom-filter.ts'

export type Entry = {
  payloadId: string
  deviceTime: EpochMs | null
  /** Null if the payload names neither a device nor an asset. */
  device: string | null
}

export type Entries = {
  readonly count: number
  readonly earliest: EpochMs | null
  readonly latest: EpochMs | null
  /** The names of the devices, each once. */
  readonly devices: readonly string[]
  at(index: number): Entry
  idAt(index: number): string
  /** The indexes of the payloads with this id, upper or lower case, and of this device; ascending. */
  ofPayload(payloadId: string): readonly number[]
  ofDevice(device: string): readonly number[]
}

/** What a query reads first. */
export type EntriesHead = Pick<Entries, 'count' | 'earliest' | 'latest'> & {
  /** Where the filter is, from the start of the entries. */
  filterStart: number
  filterBytes: number
}

export const entriesHeadBytes = 32
export const idTextBytes = 36

const deviceBytesMax = 4096

/** The key of an id in the filter: of a UUID its first digits, which are random enough. */
export function hashOfId(payloadId: string): number {
  const id = payloadId.toLowerCase()
  return isUuid(id) ? Number.parseInt(id.slice(0, 8), 16) : hashOfText(id)
}

/** The key of a device in the filter. */
export function hashOfDevice(device: string): number {
  return hashOfText(cut(device))
}

function isUuid(id: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id)
}

/** Null if the bytes cannot be entries. */
export function entriesHead(bytes: Uint8Array): EntriesHead | null {
  if (bytes.length < entriesHeadBytes) return null
  const view = viewOf(bytes)
  const filterBytes = view.getUint32(28, true)
  if (entriesHeadBytes + filterBytes > bytes.length || filterBytes === 0) return null
  return {
    count: view.getUint32(0, true),
    earliest: timeOrNull(view.getFloat64(8, true)),
    latest: timeOrNull(view.getFloat64(16, true)),
    filterStart: entriesHeadBytes,
    filterBytes,
  }
}

/** Null if the bytes cannot be entries. The record that holds them has a CRC. */
export function decodeEntries(bytes: Uint8Array): Entries | null {
  const head = entriesHead(bytes)
  if (head === null) return null
  const { count, earliest, latest, filterBytes } = head
  const view = viewOf(bytes)
  const [idBytes = 0, timeBytes = 0, deviceBytes = 0] = bytes.subarray(4, 7)
  const idsStart = entriesHeadBytes + filterBytes
  const timesStart = idsStart + count * idBytes
  const devicesStart = timesStart + count * timeBytes
  const namesStart = devicesStart + count * deviceBytes
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const names = namesIn(text, namesStart, view.getUint32(24, true))
  if (names === null || namesStart > bytes.length) return null
  const deviceAt = (index: number) => readLittle(bytes, devicesStart + index * deviceBytes, deviceBytes)
  const idAt = (index: number) => {
    const start = idsStart + index * idBytes
    return idBytes === 16 ? uuidIn(text, start) : text.toString('latin1', start, start + idTextBytes)
  }
  const timeAt = (index: number) => {
    const start = timesStart + index * timeBytes
    if (timeBytes === 8) return timeOrNull(view.getFloat64(start, true))
    return (earliest ?? 0) + readLittle(bytes, start, timeBytes)
  }

  return {
    count,
    earliest,
    latest,
    devices: names,
    idAt,
    at: (index) => ({
      payloadId: idAt(index),
      deviceTime: timeAt(index),
      device: names[deviceAt(index) - 1] ?? null,
    }),
    ofPayload(payloadId) {
      const id = payloadId.toLowerCase()
      return numbersWhere(count, (index) => idAt(index).toLowerCase() === id)
    },
    ofDevice(device) {
      const number = names.indexOf(cut(device)) + 1
      return number === 0 ? [] : numbersWhere(count, (index) => deviceAt(index) === number)
    },
  }
}

function numbersWhere(count: number, holds: (index: number) => boolean): number[] {
  const found: number[] = []
  for (let index = 0; index < count; index += 1) if (holds(index)) found.push(index)
  return found
}

/** The end of a name in UTF-8 that is cut at the bound, before a character that does not fit. */
export function cutEnd(from: Uint8Array, start: number, end: number): number {
  if (end - start <= deviceBytesMax) return end
  let cutAt = start + deviceBytesMax
  while (cutAt > start && ((from[cutAt] ?? 0) & 0xc0) === 0x80) cutAt -= 1
  return cutAt
}

/** A device as it is stored. */
function cut(device: string): string {
  const bytes = Buffer.from(device)
  return bytes.toString('utf8', 0, cutEnd(bytes, 0, bytes.length))
}

function namesIn(text: Buffer, start: number, count: number): string[] | null {
  const names: string[] = []
  let at = start
  for (let number = 0; number < count; number += 1) {
    if (at + 2 > text.length) return null
    const end = at + 2 + text.readUInt16LE(at)
    if (end > text.length) return null
    names.push(text.toString('utf8', at + 2, end))
    at = end
  }
  return names
}

function uuidIn(text: Buffer, at: number): string {
  const hex = text.toString('hex', at, at + 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

function readLittle(from: Uint8Array, at: number, bytes: number): number {
  let value = 0
  for (let index = bytes - 1; index >= 0; index -= 1) value = value * 256 + (from[at + index] ?? 0)
  return value
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function timeOrNull(time: number): number | null {
  return Number.isNaN(time) ? null : time
}
