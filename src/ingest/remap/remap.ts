// remap.ts: maps kept messages once more: those that leave the quarantine, those that an earlier version
// deferred, and dead letters.
//
//   read from the spool -> slices (kept-slices.ts) -> map here -> one exchange a slice (slice-result.ts)
//
// A slice is mapped as if its messages had arrived one after the other. Pure: this file reads and writes
// nothing. Its mapper starts without state, and whatever is open at the end is closed: values of last week
// must not be combined with those that arrive now, and what is taken must be payloads in the write that takes
// it. So a slice must not end within a record that coalesces several messages: where a record is open at the
// end and more messages follow, the slice is cut before the first message of that record.
//
//   m m m m m m | m m          the record behind the bar is incomplete: its messages go with the next slice
//
// The same holds where more of the record may still arrive: its window, counted from its arrival, is not
// over.
//
//   kept-message.ts       from messages to kept messages and dead letters, and back
//   release-order.ts      whether a message must wait for earlier ones of its device
//   release-throttle.ts   when this work may continue; it yields to messages that arrive
//   dead-letter-remap.ts  maps dead letters on request

import type { EpochMs } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import type { Mapper, MapResult } from '../../mapping/mapping.ts'
import type { ReleaseOrder } from '../types.ts'
import { messageFrom } from './kept-message.ts'
import { mapperFailed } from './mapper-failure.ts'
import { addClosed, addResult, newSliceResult, type RemapEntry, type SliceResult } from './slice-result.ts'

export type RemapOptions = {
  /** Messages follow: the slice may be cut. */
  more: boolean
  /** The slice can be made longer where all of it belongs to one incomplete record. */
  mayGrow: boolean
  /** What arrived until then can be read; a record that may get parts of a later arrival is left. */
  arrivedUntil?: EpochMs
  /** Devices whose earlier messages must go first. */
  releaseOrder?: ReleaseOrder
}

/** A slice with more payloads than this, in characters, ends at the next place where nothing is open. */
const payloadLengthMax = 1024 * 1024
const setBackMs = 60_000
/** Never reached by what one slice closes. */
const closingsMax = 10_000

/**
 * Null where more messages are needed: some that follow, or some that may still arrive. `open` returns a
 * mapper without state.
 */
export function remapSlice(
  open: () => Mapper,
  entries: readonly RemapEntry[],
  options: RemapOptions,
): SliceResult | null {
  const { more, mayGrow } = options
  const all = mapAll(open(), entries, options)
  if (all.openParts === 0) return all.slice
  const follows = more || all.slice.entries < entries.length
  if (!follows && !all.mayGetMore) return all.slice
  if (all.cleanCut > 0) return mapAll(open(), entries.slice(0, all.cleanCut), options).slice
  return follows && !mayGrow ? all.slice : null
}

type MappedSlice = {
  slice: SliceResult
  /** Messages in open records, before everything was closed. */
  openParts: number
  /** Some of those records may get more of what arrives. */
  mayGetMore: boolean
  /** Before this entry no record was open that a later entry belongs to; 0 where there is no such place. */
  cleanCut: number
}

function mapAll(mapper: Mapper, entries: readonly RemapEntry[], options: RemapOptions): MappedSlice {
  const { arrivedUntil = Number.POSITIVE_INFINITY, releaseOrder } = options
  const slice = newSliceResult()
  let cleanCut = 0
  for (const entry of entries) {
    const message = messageFrom(entry.envelope)
    const closed = mapper.tick(message.arrivedAt)
    if (closed !== null) addClosed(slice, closed)
    const covered = slice.entries
    const result = mapKept(mapper, message)
    const isPart = addResult(slice, result, entry, releaseOrder)
    if (isPart && result.kind === 'part') addClosed(slice, result.apply())
    if (mapper.openParts() <= (isPart ? 1 : 0)) cleanCut = covered
    if (slice.payloadLength > payloadLengthMax && mapper.openParts() === 0) break
  }
  const openParts = mapper.openParts()
  closeUntil(knownUntil())
  const mayGetMore = mapper.openParts() > 0
  closeUntil(Number.POSITIVE_INFINITY)
  return { slice, openParts, mayGetMore, cleanCut }

  /** Messages read in between are known too. An arrival far ahead is of a clock that was set back since. */
  function knownUntil(): EpochMs {
    const last = entries.at(-1)?.envelope.arrivedAt ?? arrivedUntil
    return last - arrivedUntil > setBackMs ? Number.POSITIVE_INFINITY : Math.max(last, arrivedUntil)
  }

  function closeUntil(nowMs: EpochMs): void {
    for (let count = 0; count < closingsMax; count += 1) {
      const closed = mapper.tick(nowMs)
      if (closed === null) return
      addClosed(slice, closed)
    }
  }
}

/** Never throws. */
function mapKept(mapper: Mapper, message: Message): MapResult {
  try {
    return mapper.map(message, false)
  } catch (error) {
    return mapperFailed(message, error)
  }
}
