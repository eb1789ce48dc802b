// damage-scan.ts: reads a range of the database and steps over what is damaged in it. Where a block or a
// table cannot be read, it reports a gap and reads on behind it.
//
// The end of the damage is not known in advance, so it is searched for: a read that starts behind the damage
// succeeds, a read that starts inside fails. The search doubles its distance and then halves it back, because
// a damaged block holds keys next to each other. It treats the first bytes of a key as one large number.
//
// LevelDB itself reads on behind a damaged block and reports the damage at the end of the iteration. What was
// read until then is right but incomplete. Where the search then finds no damage, the whole iteration is
// reported as a gap.

import { codeOf } from '../../std/gateway-error.ts'
import type { Store, StoreEntry, StoreRange } from '../../storage/storage.ts'
import { keyAfter } from './key-layout.ts'

export type Scanned =
  | { kind: 'entries'; entries: readonly StoreEntry[] }
  /** Something from `from` up to `until` cannot be read. */
  | { kind: 'gap'; from: Buffer; until: Buffer; why: unknown }

/** Page size after a failed read; it grows again while reads succeed. */
const cautiousMax = 256
/** Bytes of a key that the search considers. Readable keys within one step of damage are lost with it. */
const digitBytes = 40

/** Any other failure is a failure of the store. */
export function isCorruption(error: unknown): boolean {
  return codeOf(error) === 'LEVEL_CORRUPTION'
}

export type ScanOptions = {
  /** Distinguishes damage from an error that ends the scan. Default: a corruption that LevelDB reports. */
  isDamage?: (error: unknown) => boolean
  /** The caller needs about this many entries. */
  limit?: number
  /** The caller needs about so many bytes. */
  pageBytes?: number
}

export async function* scan(
  store: Store,
  range: StoreRange,
  { isDamage = isCorruption, ...options }: ScanOptions = {},
): AsyncGenerator<Scanned> {
  let from = range.gte
  /** Null: as large as the store makes it. */
  let limit: number | null = null
  /** A failure for which no gap was found yet. */
  let unexplained: { from: Buffer; why: unknown } | null = null
  for (;;) {
    const startedFrom = from
    const rest = { gte: from, lt: range.lt }
    try {
      if (limit === null) {
        for await (const entries of store.pages(rest, options)) {
          yield { kind: 'entries', entries }
          from = keyAfter(lastKeyOf(entries))
        }
        break
      }
      const entries: readonly StoreEntry[] = await firstPage(store, rest, limit)
      if (entries.length === 0) break
      yield { kind: 'entries', entries }
      from = keyAfter(lastKeyOf(entries))
      limit = limit >= cautiousMax ? null : limit * 4
    } catch (error) {
      if (!isDamage(error)) throw error
      unexplained ??= { from: startedFrom, why: error }
      if (limit !== 1) {
        limit = limit === null ? cautiousMax : Math.max(1, Math.floor(limit / 4))
        continue
      }
      const until = await findReadable(store, { gte: from, lt: range.lt }, isDamage)
      yield { kind: 'gap', from, until, why: error }
      unexplained = null
      if (until.compare(range.lt) >= 0) return
      from = until
      limit = cautiousMax
    }
  }
  if (unexplained !== null)
    yield { kind: 'gap', from: unexplained.from, until: range.lt, why: unexplained.why }
}

/** One short read: an open iteration makes LevelDB keep everything that is deleted meanwhile. */
export async function firstPage(
  store: Store,
  range: StoreRange,
  limit: number,
): Promise<readonly StoreEntry[]> {
  for await (const page of store.pages(range, { limit })) return page
  return []
}

/** One record. It is unreadable if the block that holds it is damaged. */
export async function readOne(
  store: Store,
  key: Buffer,
): Promise<{ value: Buffer | undefined; isUnreadable: boolean }> {
  try {
    return { value: await store.get(key), isUnreadable: false }
  } catch (error) {
    if (!isCorruption(error)) throw error
    return { value: undefined, isUnreadable: true }
  }
}

/**
 * The first `limit` records that can be read, in one short read where nothing is damaged. Not complete if
 * something between them cannot be read.
 */
export async function firstEntries(
  store: Store,
  range: StoreRange,
  limit: number,
): Promise<{ entries: StoreEntry[]; isComplete: boolean }> {
  const entries: StoreEntry[] = []
  let isComplete = true
  for await (const page of scan(store, range, { limit })) {
    if (page.kind === 'gap') isComplete = false
    else entries.push(...page.entries.slice(0, limit - entries.length))
    if (entries.length === limit) break
  }
  return { entries, isComplete }
}

/** The first record of a range that can be read. */
export async function firstReadable(
  store: Store,
  range: StoreRange,
): Promise<{ entry: StoreEntry | null; isComplete: boolean }> {
  let isComplete = true
  for await (const page of scan(store, range, { limit: 1 })) {
    if (page.kind === 'gap') isComplete = false
    else if (page.entries[0] !== undefined) return { entry: page.entries[0], isComplete }
  }
  return { entry: null, isComplete }
}

/** The first place behind `range.gte` from which reading succeeds, or `range.lt`. */
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

function lastKeyOf(entries: readonly StoreEntry[]): Buffer {
  return entries[entries.length - 1]![0]
}

function numberOf(key: Buffer): bigint {
  const digits = Buffer.alloc(digitBytes)
  key.copy(digits, 0, 0, digitBytes)
  return BigInt(`0x${digits.toString('hex')}`)
}

/** Without the zeros at its end: a shorter key with the same start must not precede it. */
function keyOf(place: bigint): Buffer {
  const digits = Buffer.from(place.toString(16).padStart(digitBytes * 2, '0'), 'hex')
  let end = digits.length
  while (end > 1 && digits[end - 1] === 0) end -= 1
  return digits.subarray(0, end)
}
