// damage-scan.ts: reads a range of the database whatever is damaged in it. Where a block or a table cannot be read, it
// steps over it and says so, and reads on behind it.
//
// How far the damage goes is not known beforehand, so it is felt for: a look behind it succeeds, a look into it fails.
// Looks are made at keys in doubling distances and then halved back, as chunk-log.ts does it with numbers; here the first
// bytes of a key are taken as one large number.
//
// LevelDB reads on behind a damaged block by itself and tells of it at the end of the iteration. What was read until then is
// right, but not whole; where the damage cannot be felt any more, the whole iteration is called a gap.

import type { Store, StoreEntry, StoreRange } from '../../storage/storage.ts'
import { keyAfter } from '../chunk-log/key-layout.ts'

export type Scanned =
  | { kind: 'entries'; entries: readonly StoreEntry[] }
  /** Something from `from` up to `until` cannot be read. */
  | { kind: 'gap'; from: Buffer; until: Buffer; why: unknown }

/** Of a page that was read after a failed one; the next good ones are larger again. */
const cautiousMax = 256
/** So much of a key is looked at; what lies within one such step of damage is stepped over with it. */
const digitBytes = 40

/** `isDamage` tells an error that is damage from one that ends the scan. */
export async function* scan(
  store: Store,
  range: StoreRange,
  isDamage: (error: unknown) => boolean,
): AsyncGenerator<Scanned> {
  let from = range.gte
  /** Null: as large as the store likes. */
  let limit: number | null = null
  /** A failure that no gap was found for. */
  let untold: { from: Buffer; why: unknown } | null = null
  for (;;) {
    const began = from
    const asked = { gte: from, lt: range.lt }
    try {
      if (limit === null) {
        for await (const entries of store.pages(asked)) {
          yield { kind: 'entries', entries }
          from = keyAfter(lastOf(entries))
        }
        break
      }
      const entries: readonly StoreEntry[] = await firstPage(store, asked, limit)
      if (entries.length === 0) break
      yield { kind: 'entries', entries }
      from = keyAfter(lastOf(entries))
      limit = limit >= cautiousMax ? null : limit * 4
    } catch (error) {
      if (!isDamage(error)) throw error
      untold ??= { from: began, why: error }
      if (limit !== 1) {
        limit = limit === null ? cautiousMax : Math.max(1, Math.floor(limit / 4))
        continue
      }
      const until = await findReadable(store, { gte: from, lt: range.lt }, isDamage)
      yield { kind: 'gap', from, until, why: error }
      untold = null
      if (until.compare(range.lt) >= 0) return
      from = until
      limit = cautiousMax
    }
  }
  if (untold !== null) yield { kind: 'gap', from: untold.from, until: range.lt, why: untold.why }
}

/** The first place behind `range.gte` from where reading succeeds, or `range.lt`. */
async function findReadable(
  store: Store,
  { gte, lt }: StoreRange,
  isDamage: (error: unknown) => boolean,
): Promise<Buffer> {
  const isReadable = async (place: bigint) => {
    try {
      await firstPage(store, { gte: keyOf(place), lt }, 1)
      return true
    } catch (error) {
      if (!isDamage(error)) throw error
      return false
    }
  }
  const end = numberOf(lt)
  let bad = numberOf(gte)
  let good = end
  for (let stride = 1n; bad + stride < end; stride *= 2n) {
    if (await isReadable(bad + stride)) {
      good = bad + stride
      break
    }
    bad += stride
  }
  while (good - bad > 1n) {
    const middle = (bad + good) / 2n
    if (await isReadable(middle)) good = middle
    else bad = middle
  }
  return good >= end ? lt : keyOf(good)
}

async function firstPage(store: Store, range: StoreRange, limit: number): Promise<readonly StoreEntry[]> {
  for await (const page of store.pages(range, { limit })) return page
  return []
}

function lastOf(entries: readonly StoreEntry[]): Buffer {
  return entries[entries.length - 1]![0]
}

function numberOf(key: Buffer): bigint {
  const digits = Buffer.alloc(digitBytes)
  key.copy(digits, 0, 0, digitBytes)
  return BigInt(`0x${digits.toString('hex')}`)
}

/** Without the zeros at its end: a shorter key that begins like it must not lie before it. */
function keyOf(place: bigint): Buffer {
  const digits = Buffer.from(place.toString(16).padStart(digitBytes * 2, '0'), 'hex')
  let end = digits.length
  while (end > 1 && digits[end - 1] === 0) end -= 1
  return digits.subarray(0, end)
}
