// custody-units.ts: which messages have left the gateway for good. Owner of the order of their
// acknowledgements.
//
// A unit is what the commits of a tick made durable: for each partition the last position. It goes through
// the places where a part of it may be, in the order in which payloads and messages move between them:
//
//   records -> deferred -> quarantine -> clock -> lanes -> retries (step 0, 1, ...) -> dead letters -> done
//
// At each place it notes the numbers that are in use at that moment, and waits until everything below them is
// gone. So a message that moves on meanwhile is found at a later place, and nothing is kept for each message.
// Where the spool has moved something back meanwhile (a message that is kept again, a dead letter that is
// requeued), the unit goes through all places once more.
// It waits for more than its own messages; that costs time and is never wrong: a duplicate, too, waits for
// the copy that came before it. Units are acknowledged from the first on.
//
// Bound: a unit has at least one message of a window that is bounded.

import { assert } from '../../std/assert.ts'
import type { BatchId, LaneId } from '../../domain/ids.ts'
import type { ShelfKind } from '../../domain/kept-store.ts'
import type { LaneView, ShelfView } from '../../spool/spool.ts'
import type { CommittedPart } from '../message-sources/message-sources.ts'

/** The spool at one moment. */
export type Places = {
  nowMs: number
  lanes: readonly LaneView[]
  shelves: readonly ShelfView[]
  records: RecordTimes
  nextDeadLetter: number
  /** Dead letters below this number are copied to the engine. */
  copiedTo: number
  /** A batch that is held here and copied there: nothing waits for it. */
  isCopied: (batchId: BatchId) => boolean
  /** Grows when something goes back to an earlier place. */
  movedBack: number
  /** Writes that were asked for up to this ticket are durable (write-barrier.ts). */
  barrier: { next: number; done: number }
}

export type RecordTimes = {
  /** Messages in open records now. */
  openParts: number
  /** Time in which records that were due could close. */
  closingMs: number
  /** How much of it a message waits in open records at most. */
  closingMsMax: number
}

export type Place = 'records' | 'barrier' | ShelfKind | 'lanes' | 'retries' | 'dead_letters' | 'done'

const order: readonly Place[] = [
  'records',
  'barrier',
  'deferred',
  'quarantine',
  'clock',
  'lanes',
  'retries',
  'dead_letters',
  'done',
]

export type Unit = {
  readonly parts: readonly CommittedPart[]
  readonly messages: number
  readonly closedAtMs: number
  /** No record of the dedup window before this one has a key of it. */
  readonly keysFrom: number
  place: Place
  /** `movedBack` when it left the records. */
  movedBack: number
  /** The retry step that it is at. */
  step: number
  /** Numbers to be reached, by lane or shelf; null until it arrives at the place. */
  marks: Map<LaneId | string, number> | null
}

export function newUnit(
  parts: readonly CommittedPart[],
  { closedAtMs, messages, keysFrom }: Pick<Unit, 'closedAtMs' | 'messages' | 'keysFrom'>,
): Unit {
  return { parts, messages, closedAtMs, keysFrom, place: 'records', movedBack: 0, step: 0, marks: null }
}

/** Moves a unit on as far as it can go. */
export function advance(unit: Unit, places: Places): void {
  while (unit.place !== 'done') {
    unit.marks ??= marksAt(unit, places)
    if (blocker(unit, places) !== null) return
    unit.marks = null
    if (unit.place === 'dead_letters' && unit.movedBack !== places.movedBack) unit.place = 'records'
    if (unit.place === 'records') Object.assign(unit, { movedBack: places.movedBack, step: 0 })
    if (unit.place === 'retries' && hasLaterStep(unit, places)) unit.step += 1
    else unit.place = order[order.indexOf(unit.place) + 1] ?? 'done'
  }
}

function marksAt({ place, step }: Unit, places: Places): NonNullable<Unit['marks']> {
  const marks: NonNullable<Unit['marks']> = new Map()
  const { records } = places
  switch (place) {
    case 'records':
      if (records.openParts > 0) marks.set('records', records.closingMs + records.closingMsMax)
      break
    case 'barrier':
      marks.set('barrier', places.barrier.next)
      break
    case 'deferred':
    case 'quarantine':
    case 'clock':
      for (const { shelf, nextSeq } of shelvesOf(places, place)) marks.set(shelf, nextSeq)
      break
    case 'lanes':
      for (const { id, role, appended } of places.lanes) if (role.kind !== 'retry') marks.set(id, appended)
      break
    case 'retries':
      for (const { id, role, appended } of places.lanes)
        if (role.kind === 'retry' && role.step === step) marks.set(id, appended)
      break
    case 'dead_letters':
      marks.set('dead_letters', places.nextDeadLetter)
      break
    case 'done':
    default:
      assert(false, 'a unit that is done has no marks')
  }
  return marks
}

function shelvesOf({ shelves }: Places, kind: ShelfKind): readonly ShelfView[] {
  return shelves.filter(({ shelf }) => shelf.startsWith(`${kind}:`))
}

function hasLaterStep({ step }: Unit, { lanes }: Places): boolean {
  return lanes.some(({ role }) => role.kind === 'retry' && role.step > step)
}

/** What the unit waits for at its place: a lane, a shelf, or the place itself; null for nothing. */
export function blocker({ place, marks }: Unit, places: Places): LaneView | ShelfView | Place | null {
  if (marks === null) return place
  const mark = (key: LaneId | string) => marks.get(key) ?? 0
  switch (place) {
    case 'records':
      // What is open now may have been opened later, so the longest window is waited for.
      return places.records.openParts > 0 && places.records.closingMs < mark('records') ? place : null
    case 'barrier':
      return places.barrier.done < mark('barrier') ? place : null
    case 'deferred':
    case 'quarantine':
    case 'clock':
      return shelvesOf(places, place).find((one) => shelfLow(one) < mark(one.shelf)) ?? null
    case 'lanes':
    case 'retries':
      return places.lanes.find((lane) => isBelow(lane, mark(lane.id), places)) ?? null
    case 'dead_letters':
      return places.copiedTo < mark('dead_letters') ? place : null
    case 'done':
    default:
      return null
  }
}

/** A lane that is not to be waited for has the mark 0. */
function isBelow(lane: LaneView, mark: number, { isCopied }: Places): boolean {
  return lane.lowSeq < mark && lane.lowSeqBeside(isCopied) < mark
}

/** No message of the shelf is below it. */
function shelfLow({ messages, headSeq, nextSeq }: ShelfView): number {
  return messages === 0 ? nextSeq : headSeq
}
