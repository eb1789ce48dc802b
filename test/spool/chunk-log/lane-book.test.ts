// What a lane holds, over random lanes of which records are lost, against what is known of each number.

import { describe, expect, test } from 'vitest'
import {
  bookOf,
  LaneChunks,
  lengthOf,
  noTotals,
  type LaneFacts,
  type LaneTotals,
  type SeqRange,
} from '../../../src/spool/chunk-log/lane-book.ts'
import { createRandom, type Random } from '../../support/random.ts'

type Truth = {
  /** In order; each was settled, is claimed or is pending. */
  chunks: (SeqRange & { is: 'settled' | 'claimed' | 'pending' })[]
  sealSeq: number
  nextSeq: number
}

/** Batches are sealed in order, and settled in any. */
function drawLane(random: Random): Truth {
  const chunks: Truth['chunks'] = []
  let nextSeq = 0
  const sealed = random.below(8)
  for (let n = 0; n < sealed + random.below(8); n += 1) {
    const endSeq = nextSeq + 1 + random.below(4)
    const is = n >= sealed ? 'pending' : random.chance(0.5) ? 'settled' : 'claimed'
    chunks.push({ firstSeq: nextSeq, endSeq, is })
    nextSeq = endSeq
  }
  return { chunks, sealSeq: chunks.findLast(({ is }) => is !== 'pending')?.endSeq ?? 0, nextSeq }
}

const those = ({ chunks }: Truth, ...kinds: Truth['chunks'][number]['is'][]) =>
  chunks.filter(({ is }) => kinds.includes(is))
const openOf = (truth: Truth) => lengthOf(those(truth, 'claimed', 'pending'))

function totalsOf(truth: Truth): LaneTotals {
  const { nextSeq, sealSeq } = truth
  return { nextSeq, sealSeq, settled: lengthOf(those(truth, 'settled')), gapPayloads: 0 }
}

function chunksOf(ranges: readonly SeqRange[], bad: readonly number[] = []): LaneChunks {
  const chunks = new LaneChunks()
  const starts = [...ranges.map(({ firstSeq }) => firstSeq), ...bad].sort((one, other) => one - other)
  for (const start of new Set(starts)) {
    const range = ranges.find(({ firstSeq }) => firstSeq === start)
    const count = range === undefined ? 0 : range.endSeq - range.firstSeq
    chunks.add(start, range === undefined ? null : { kind: 'chunk', count, committedAt: start })
  }
  return chunks
}

/** Without loss. */
function factsOf(truth: Truth): LaneFacts {
  const claims = those(truth, 'claimed')
  return {
    chunks: chunksOf(those(truth, 'claimed', 'pending')),
    totals: totalsOf(truth),
    claims,
    claimsEnd: claims.at(-1)?.endSeq ?? 0,
    marked: { nextSeq: truth.nextSeq, open: openOf(truth) },
    isDeleted: false,
  }
}

/** Numbers that a book takes as open. */
function openNumbers({ sealSeq, nextSeq, unclaimed }: ReturnType<typeof bookOf>, { claims }: LaneFacts) {
  const ranges = [...claims, ...unclaimed, { firstSeq: sealSeq, endSeq: nextSeq }]
  return new Set(ranges.flatMap(({ firstSeq, endSeq }) => numbersOf(firstSeq, endSeq)))
}

function numbersOf(firstSeq: number, endSeq: number): number[] {
  return Array.from({ length: endSeq - firstSeq }, (_, index) => firstSeq + index)
}

const seeds = Array.from({ length: 400 }, (_, index) => index + 1)

function forEachLane(check: (truth: Truth, random: Random) => void): void {
  for (const seed of seeds) {
    const random = createRandom(seed)
    check(drawLane(random), random)
  }
}

describe('the book of a lane', () => {
  test('of which nothing is lost has all that is open, and no hole', () => {
    forEachLane((truth) => {
      const { sealSeq, nextSeq } = truth
      const book = bookOf(factsOf(truth))
      expect(book).toMatchObject({ sealSeq, nextSeq, open: openOf(truth), unknown: 0, settledAtEnd: 0 })
      expect(book).toMatchObject({ unclaimed: [], settledBefore: [], holes: { claimed: [], pending: [] } })
    })
  })

  test('without its totals is the same by the mark, whatever chunks are lost or have another key', () => {
    forEachLane((truth, random) => {
      const facts = factsOf(truth)
      const left = those(truth, 'claimed', 'pending').filter(() => random.chance(0.7))
      const bad = random.chance(0.5) ? [random.below(truth.nextSeq + 1)] : []
      const book = bookOf({ ...facts, totals: null, chunks: chunksOf(left, bad) })
      expect(book.open).toBe(openOf(truth))
      const { claimed, pending } = book.holes
      expect(lengthOf([...claimed, ...pending])).toBe(openOf(truth) - lengthOf(left))
      const open = openNumbers(book, facts)
      for (const { firstSeq } of left) expect(open).toContain(firstSeq)
    })
  })

  test('without totals and mark gives up no chunk, and has each number in one place', () => {
    forEachLane((truth, random) => {
      const facts = factsOf(truth)
      const left = those(truth, 'claimed', 'pending').filter(() => random.chance(0.7))
      const book = bookOf({ ...facts, totals: null, marked: null, chunks: chunksOf(left) })
      expect(book.settledBefore).toEqual([])
      const open = openNumbers(book, facts)
      for (const { firstSeq } of left) expect(open).toContain(firstSeq)
      expect(book.open).toBe(open.size)
    })
  })

  test('with claims that are lost has their payloads as unclaimed, or as unknown', () => {
    forEachLane((truth, random) => {
      const facts = factsOf(truth)
      const claims = facts.claims.filter(() => random.chance(0.5))
      const left = those(truth, 'claimed', 'pending').filter(() => random.chance(0.7))
      const marked = random.chance(0.5) ? null : facts.marked
      const book = bookOf({ ...facts, claims, marked, chunks: chunksOf(left) })
      const isClaimed = ({ firstSeq }: SeqRange) => claims.some((claim) => claim.firstSeq === firstSeq)
      const orphans = those(truth, 'claimed').filter((range) => !isClaimed(range))
      const found = orphans.filter((range) => left.some(({ firstSeq }) => firstSeq === range.firstSeq))
      expect(lengthOf(book.unclaimed)).toBe(lengthOf(found))
      expect(book).toMatchObject({ open: openOf(truth), unknown: lengthOf(orphans) - lengthOf(found) })
    })
  })

  test('without its totals and with claims that are lost is the same by the mark, where chunks are damaged', () => {
    forEachLane((truth, random) => {
      const facts = factsOf(truth)
      const claims = facts.claims.filter(() => random.chance(0.5))
      const all = those(truth, 'claimed', 'pending')
      const left = all.filter(() => random.chance(0.7))
      const bad = all.filter((chunk) => !left.includes(chunk)).map(({ firstSeq }) => firstSeq)
      const lastFirst = random.chance(0.5) ? facts.claims.at(-1)?.firstSeq : undefined
      const claimsEnd = Math.max(claims.at(-1)?.endSeq ?? 0, lastFirst ?? 0)
      const book = bookOf({ ...facts, claims, claimsEnd, totals: null, chunks: chunksOf(left, bad) })
      const open = openNumbers(book, { ...facts, claims })
      for (const { firstSeq } of left) expect(open).toContain(firstSeq)
      expect(book.open).toBe(open.size + book.unknown - book.settledAtEnd)
      expect(left.every(({ firstSeq, endSeq }) => book.sealSeq <= firstSeq || book.sealSeq >= endSeq)).toBe(
        true,
      )
      expect(book.open).toBe(openOf(truth))
    })
  })

  test('tells chunks that were settled from those of a lost batch, and gives up none where it cannot', () => {
    forEachLane((truth, random) => {
      const facts = factsOf(truth)
      const claims = random.chance(0.5) ? facts.claims : facts.claims.slice(1)
      const back = those(truth, 'settled').filter(() => random.chance(0.5))
      const there = truth.chunks.filter((chunk) => chunk.is !== 'settled' || back.includes(chunk))
      const book = bookOf({ ...facts, claims, marked: null, chunks: chunksOf(there) })
      const isAllThere = claims.length === facts.claims.length
      expect(lengthOf(book.settledBefore)).toBe(isAllThere ? lengthOf(back) : 0)
      const open = openNumbers(book, { ...facts, claims })
      for (const { firstSeq } of those(truth, 'claimed', 'pending')) expect(open).toContain(firstSeq)
    })
  })

  test('counts what is numbered behind the last chunk as lost, without what was settled there', () => {
    forEachLane((truth, random) => {
      const lostNumbers = 1 + random.below(9)
      const settled = random.below(lostNumbers + 1)
      const nextSeq = truth.nextSeq + lostNumbers
      const marked = { nextSeq, open: openOf(truth) + lostNumbers - settled }
      const book = bookOf({ ...factsOf(truth), marked })
      expect(book).toMatchObject({ nextSeq, open: marked.open, settledAtEnd: settled })
      expect(book.holes.pending).toEqual([{ firstSeq: truth.nextSeq, endSeq: nextSeq }])
    })
  })

  test('of a deleted lane has nothing open', () => {
    forEachLane((truth) => {
      const lost = { totals: noTotals, claims: [], claimsEnd: 0, marked: null }
      const book = bookOf({ ...factsOf(truth), ...lost, isDeleted: true })
      expect(book.open).toBe(0)
      expect(lengthOf(book.settledBefore)).toBe(openOf(truth))
    })
  })
})
