// lane-book.ts: what a lane holds, by its totals, its claims, its chunks and the high-water mark. Pure. It is
// the one rule of recovery, `spool verify`, salvage and repair.
//
//   settled | claimed | settled | unclaimed | claimed | pending | numbered in writes that are lost
//                                                     ^ sealSeq                                   ^ nextSeq
//
// The numbers of claims, and those from sealSeq on, are open, except in gaps. One that no chunk holds is a
// hole: the payload is lost. Of chunks below sealSeq without a claim, either the record of their batch is
// lost, and they are open, or the record of their deletion is lost, and they were settled before. The totals
// say how many numbers are settled, so they tell which.
//
// Where the totals are lost, the mark says how many payloads are open. What is not found of them was just
// before the first pending chunk. Where fewer are open than follow the claims, the record of a claim is
// lost: what was settled behind it is the first that no chunk holds. Without the mark, the pending payloads
// start at the first chunk behind the claims, and what is before it and unclaimed counts as settled:
// nothing is left that could tell.

export type SeqRange = { firstSeq: number; endSeq: number }

/** Chunks that follow each other; when the first and the last of them were committed. */
export type ChunkRun = SeqRange & { firstAt: number; lastAt: number }

export type LaneTotals = { nextSeq: number; sealSeq: number; settled: number; gapPayloads: number }

export type LaneFacts = {
  chunks: LaneChunks
  /** Null where they are lost; `noTotals` where nothing of the lane was settled yet. */
  totals: LaneTotals | null
  /** Claims that can be read, in order. */
  claims: readonly SeqRange[]
  /** End of the last claim, or the first number of one behind it that cannot be read. */
  claimsEnd: number
  marked: { nextSeq: number; open: number } | null
  /** The mark shows that the lane was deleted: all of it was settled. */
  isDeleted: boolean
}

export type LaneBook = {
  nextSeq: number
  sealSeq: number
  /** Payloads that are not settled, those in holes included. */
  open: number
  /** Payloads in gaps from sealSeq on. They are settled. */
  gapPayloads: number
  /** In chunks below sealSeq, and open. */
  unclaimed: SeqRange[]
  settledBefore: SeqRange[]
  /** Of claims, and then pending ones, each in order. */
  holes: { claimed: SeqRange[]; pending: SeqRange[] }
  /** Open payloads below sealSeq that neither a claim nor a chunk shows. */
  unknown: number
  /** So many numbers at the end of the last pending hole were settled in writes that are lost. */
  settledAtEnd: number
}

export const noTotals: LaneTotals = { nextSeq: 0, sealSeq: 0, settled: 0, gapPayloads: 0 }

/** The chunks of a lane, without their payloads. */
export class LaneChunks {
  readonly runs: ChunkRun[] = []
  /** Numbers that are missing and counted. */
  readonly gaps: SeqRange[] = []
  /** First numbers of chunks with a wrong checksum; a bit of the key can be wrong. */
  readonly bad: number[] = []
  payloads = 0
  endSeq = 0

  /** In the order of their numbers; null for a wrong checksum. Returns whether it overlaps the one before. */
  add(
    firstSeq: number,
    chunk: { kind: 'chunk'; count: number; committedAt: number } | { kind: 'gap'; count: number } | null,
  ): boolean {
    if (chunk === null) {
      this.bad.push(firstSeq)
      return false
    }
    const endSeq = firstSeq + chunk.count
    this.endSeq = Math.max(this.endSeq, endSeq)
    if (chunk.kind === 'gap') {
      this.gaps.push({ firstSeq, endSeq })
      return false
    }
    this.payloads += chunk.count
    const last = this.runs[this.runs.length - 1]
    if (last === undefined || firstSeq > last.endSeq) {
      this.runs.push({ firstSeq, endSeq, firstAt: chunk.committedAt, lastAt: chunk.committedAt })
      return false
    }
    const overlaps = firstSeq < last.endSeq
    last.endSeq = Math.max(last.endSeq, endSeq)
    last.lastAt = chunk.committedAt
    return overlaps
  }
}

export function bookOf(facts: LaneFacts): LaneBook {
  const { chunks, totals, claims, claimsEnd, marked, isDeleted } = facts
  const nextSeq = Math.max(totals?.nextSeq ?? 0, chunks.endSeq, claimsEnd, marked?.nextSeq ?? 0)
  const sealSeq = isDeleted ? nextSeq : sealSeqOf(facts, nextSeq)
  const behind = { firstSeq: sealSeq, endSeq: nextSeq }
  const gapPayloads = lengthOf(within(chunks.gaps, behind))
  const known = knownRanges(chunks)
  const holes = { claimed: without(claims, known), pending: without([behind], known) }
  const loose = without(within(chunks.runs, { firstSeq: 0, endSeq: sealSeq }), claims)
  const owed = isDeleted ? 0 : owedOf(facts, sealSeq)
  // Where both kinds are among them, nothing shows which: none is given up.
  const isSettled = isDeleted || (owed !== null && owed <= 0)
  const unclaimed = isSettled ? [] : loose
  const shown = lengthOf(claims) + lengthOf(unclaimed) + nextSeq - sealSeq - gapPayloads
  const more = (openByMark(marked, nextSeq) ?? shown) - shown
  const unknown = Math.max(0, (owed ?? 0) - lengthOf(unclaimed), more)
  const end = { firstSeq: Math.min(nextSeq, Math.max(sealSeq, chunks.endSeq)), endSeq: nextSeq }
  const tail = hasBad(chunks, end) ? 0 : lengthOf([end])
  const settledAtEnd = Math.min(tail, Math.max(0, -more))
  return {
    nextSeq,
    sealSeq,
    open: shown + unknown - settledAtEnd,
    gapPayloads,
    unclaimed,
    settledBefore: isSettled ? loose : [],
    holes,
    unknown,
    settledAtEnd,
  }
}

/** Payloads below sealSeq that are neither settled nor claimed; null where the totals are lost. */
function owedOf({ totals, claims }: LaneFacts, sealSeq: number): number | null {
  return totals === null ? null : sealSeq - (totals.settled - totals.gapPayloads) - lengthOf(claims)
}

/** At most: what was settled behind the mark is not known. */
function openByMark(marked: LaneFacts['marked'], nextSeq: number): number | null {
  return marked === null ? null : marked.open + Math.max(0, nextSeq - marked.nextSeq)
}

function sealSeqOf(facts: LaneFacts, nextSeq: number): number {
  const { chunks, totals, claims, claimsEnd, marked } = facts
  const { runs, gaps, bad } = chunks
  const firstFrom = (seq: number) =>
    Math.min(
      ...[runs, gaps].map(
        (ranges) => within(ranges, { firstSeq: seq, endSeq: nextSeq })[0]?.firstSeq ?? nextSeq,
      ),
    )
  if (totals !== null) {
    const sealed = Math.max(totals.sealSeq, claimsEnd)
    const owed = owedOf(facts, sealed) ?? 0
    // More is settled than was sealed: so many numbers behind it were settled without a batch.
    return owed >= 0 ? sealed : Math.min(firstFrom(sealed), sealed - owed)
  }
  const first = firstFrom(claimsEnd)
  const open = openByMark(marked, nextSeq)
  if (open === null) return Math.min(first, bad.find((seq) => seq >= claimsEnd) ?? first)
  const loose = without(within(runs, { firstSeq: 0, endSeq: claimsEnd }), claims)
  const pending = nextSeq - first - lengthOf(within(gaps, { firstSeq: first, endSeq: nextSeq }))
  const missing = open - lengthOf(claims) - lengthOf(loose) - pending
  if (missing >= 0) return Math.max(claimsEnd, first - missing)
  let settled = -missing
  let sealed = first
  for (const hole of without([{ firstSeq: first, endSeq: nextSeq }], knownRanges(chunks))) {
    const { firstSeq, endSeq } = hole
    if (settled <= 0 || (endSeq === nextSeq && !hasBad(chunks, hole))) break
    // A damaged chunk does not show which of these numbers it held.
    sealed = hasBad(chunks, hole) ? endSeq : Math.min(endSeq, firstSeq + settled)
    settled -= endSeq - firstSeq
  }
  return sealed
}

function knownRanges({ runs, gaps }: LaneChunks): SeqRange[] {
  return [...runs, ...gaps].sort((one, other) => one.firstSeq - other.firstSeq)
}

function hasBad({ bad }: LaneChunks, { firstSeq, endSeq }: SeqRange): boolean {
  return bad.some((seq) => firstSeq <= seq && seq < endSeq)
}

export function lengthOf(ranges: readonly SeqRange[]): number {
  return ranges.reduce((sum, { firstSeq, endSeq }) => sum + endSeq - firstSeq, 0)
}

/** The parts of ranges in another one. */
export function within(ranges: readonly SeqRange[], { firstSeq, endSeq }: SeqRange): SeqRange[] {
  return ranges
    .map((range) => ({
      firstSeq: Math.max(range.firstSeq, firstSeq),
      endSeq: Math.min(range.endSeq, endSeq),
    }))
    .filter((range) => range.firstSeq < range.endSeq)
}

/** The parts of ranges that none of `covers` covers. Both are in order. */
function without(ranges: readonly SeqRange[], covers: readonly SeqRange[]): SeqRange[] {
  const parts: SeqRange[] = []
  const merged = joined(covers)
  let at = 0
  for (const { firstSeq, endSeq } of ranges) {
    let from = firstSeq
    while (at < merged.length && merged[at]!.endSeq <= firstSeq) at += 1
    for (let next = at; next < merged.length && merged[next]!.firstSeq < endSeq; next += 1) {
      const cover = merged[next]!
      if (cover.firstSeq > from) parts.push({ firstSeq: from, endSeq: cover.firstSeq })
      from = Math.max(from, cover.endSeq)
    }
    if (from < endSeq) parts.push({ firstSeq: from, endSeq })
  }
  return parts
}

/** Ranges that touch or overlap as one. */
function joined(ranges: readonly SeqRange[]): SeqRange[] {
  const merged: SeqRange[] = []
  for (const { firstSeq, endSeq } of ranges) {
    const last = merged[merged.length - 1]
    if (last === undefined || firstSeq > last.endSeq) merged.push({ firstSeq, endSeq })
    else last.endSeq = Math.max(last.endSeq, endSeq)
  }
  return merged
}
