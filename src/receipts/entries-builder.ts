// entries-builder.ts: packs the entries of one batch (receipt-entries.ts). It makes no object for each
// payload, since it runs for every answered batch.

import { addToBloom, bloomBytesFor, hashOfBytes } from './bloom-filter.ts'
import { cutEnd, entriesHeadBytes, hashOfId, idTextBytes } from './receipt-entries.ts'

export type EntriesBuilder = {
  /** The number of a device, by its name in UTF-8. A name that is too long is cut. */
  device(from: Uint8Array, start: number, end: number): number
  /** The next payload: where its id of 36 characters starts; time NaN or device 0 if it has none. */
  add(idAt: number, time: number, device: number): void
  /** The filter has room for `moreKeys` other keys. */
  finish(moreKeys: number): Uint8Array<ArrayBuffer>
}

/** Offsets of the pairs of hexadecimal digits in a UUID. */
const pairsAt = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34)
const dashesAt = [8, 13, 18, 23] as const
const dash = 0x2d
const invalid = 0x80

/** Values of `0-9a-f`; `invalid` for every other byte. */
const digits = new Uint8Array(256).fill(invalid)
for (let value = 0; value < 16; value += 1) digits['0123456789abcdef'.charCodeAt(value)] = value

/** `ids` holds the ids, and must not change until `finish`. */
export function createEntriesBuilder(ids: Uint8Array, payloads: number): EntriesBuilder {
  const uuids = new Uint8Array(payloads * 16)
  const idsAt = new Uint32Array(payloads)
  const times = new Float64Array(payloads)
  const devices = new Uint32Array(payloads)
  const names = createNames(payloads)
  let count = 0
  let earliest = Number.POSITIVE_INFINITY
  let latest = Number.NEGATIVE_INFINITY
  /** Every time is a whole number of milliseconds, and every id a UUID in lower case. */
  let whole = true
  let plain = true

  return { device: names.numberOf, add, finish }

  function add(idAt: number, time: number, device: number): void {
    plain = readUuid(ids, idAt, uuids, count * 16) && plain
    idsAt[count] = idAt
    times[count] = time
    devices[count] = device
    count += 1
    if (time < earliest) earliest = time
    if (time > latest) latest = time
    whole = whole && Number.isSafeInteger(time)
  }

  function finish(moreKeys: number): Uint8Array<ArrayBuffer> {
    const idBytes = plain ? 16 : idTextBytes
    const timeBytes = count > 0 && whole && latest - earliest < 2 ** 48 ? bytesFor(latest - earliest) : 8
    const deviceBytes = bytesFor(names.count())
    const filterBytes = bloomBytesFor(count + names.count() + moreKeys)
    const idsStart = entriesHeadBytes + filterBytes
    const timesStart = idsStart + count * idBytes
    const devicesStart = timesStart + count * timeBytes
    const namesStart = devicesStart + count * deviceBytes
    const bytes = new Uint8Array(namesStart + names.bytes())
    const view = new DataView(bytes.buffer)
    view.setUint32(0, count, true)
    bytes[4] = idBytes
    bytes[5] = timeBytes
    bytes[6] = deviceBytes
    view.setFloat64(8, latest >= earliest ? earliest : Number.NaN, true)
    view.setFloat64(16, latest >= earliest ? latest : Number.NaN, true)
    view.setUint32(24, names.count(), true)
    view.setUint32(28, filterBytes, true)
    if (plain) bytes.set(uuids.subarray(0, count * 16), idsStart)
    for (let index = 0; index < count; index += 1) {
      const hash = plain ? uuidHash(uuids, index * 16) : copyId(index, bytes, idsStart + index * idTextBytes)
      addToBloom(bytes, entriesHeadBytes, filterBytes, hash)
      const time = times[index] ?? Number.NaN
      const timeAt = timesStart + index * timeBytes
      if (timeBytes === 8) view.setFloat64(timeAt, time, true)
      else writeLittle(bytes, timeAt, timeBytes, time - earliest)
      writeLittle(bytes, devicesStart + index * deviceBytes, deviceBytes, devices[index] ?? 0)
    }
    names.write(bytes, namesStart, (hash) => addToBloom(bytes, entriesHeadBytes, filterBytes, hash))
    return bytes
  }

  /** Copies an id as text, and returns its hash. */
  function copyId(index: number, to: Uint8Array, at: number): number {
    const idAt = idsAt[index] ?? 0
    const text = ids.subarray(idAt, idAt + idTextBytes)
    to.set(text, at)
    return hashOfId(Buffer.from(text).toString('latin1'))
  }
}

/** Names by their bytes, numbered from 1 in order of arrival. */
function createNames(most: number) {
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(most * 2 + 2)))
  const places: { from: Uint8Array; start: number; end: number; hash: number }[] = []
  let bytes = 0

  return {
    numberOf,
    write,
    count() {
      return places.length
    },
    bytes() {
      return bytes
    },
  }

  function numberOf(from: Uint8Array, start: number, fullEnd: number): number {
    const end = cutEnd(from, start, fullEnd)
    const hash = hashOfBytes(from, start, end)
    const mask = slots.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot] ?? 0
      if (number === 0) {
        places.push({ from, start, end, hash })
        bytes += 2 + end - start
        slots[slot] = places.length
        return places.length
      }
      const known = places[number - 1]
      if (known !== undefined && known.hash === hash && sameBytes(known, from, start, end)) return number
    }
  }

  function write(to: Uint8Array, at: number, each: (hash: number) => void): void {
    let place = at
    for (const { from, start, end, hash } of places) {
      writeLittle(to, place, 2, end - start)
      // Names are short: a loop takes less time than a view.
      for (let at = start; at < end; at += 1) to[place + 2 + at - start] = from[at] ?? 0
      place += 2 + end - start
      each(hash)
    }
  }
}

type Place = { from: Uint8Array; start: number; end: number }

function sameBytes(known: Place, from: Uint8Array, start: number, end: number): boolean {
  if (known.end - known.start !== end - start) return false
  for (let at = start, other = known.start; at < end; at += 1, other += 1)
    if (from[at] !== known.from[other]) return false
  return true
}

/** False if it is no UUID in lower case. */
function readUuid(from: Uint8Array, idAt: number, to: Uint8Array, at: number): boolean {
  let bad = 0
  for (let byte = 0; byte < 16; byte += 1) {
    const pair = idAt + (pairsAt[byte] ?? 0)
    const high = digits[from[pair] ?? 0] ?? invalid
    const low = digits[from[pair + 1] ?? 0] ?? invalid
    bad |= high | low
    to[at + byte] = (high << 4) | low
  }
  for (const place of dashesAt) if (from[idAt + place] !== dash) return false
  return bad < invalid
}

/** Equal to hashOfId(). */
function uuidHash(uuids: Uint8Array, at: number): number {
  const [a, b, c, d] = [uuids[at] ?? 0, uuids[at + 1] ?? 0, uuids[at + 2] ?? 0, uuids[at + 3] ?? 0]
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
}

function bytesFor(value: number): number {
  let bytes = 1
  while (bytes < 6 && value >= 2 ** (bytes * 8)) bytes += 1
  return bytes
}

function writeLittle(to: Uint8Array, at: number, bytes: number, value: number): void {
  let rest = value
  let place = at
  for (let left = bytes; left > 0; left -= 1) {
    to[place] = rest
    place += 1
    // A shift works on 32 bits.
    rest = rest < 2 ** 31 ? rest >> 8 : Math.floor(rest / 256)
  }
}
