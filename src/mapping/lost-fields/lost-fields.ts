// lost-fields.ts: notices that a field which the devices of a source had is in none of their messages any
// more: a path was renamed in the mapping, or a firmware names a key otherwise. The entry file of the folder.
//
// Each device has, for each field, the longest usual number of records from one that has it to the next
// (`gap`). Records without the field beyond that weigh 1 / gap, at most 4 for each device, until any device
// has it again (field-weight.ts). So a field that is in every tenth message is lost after ten times as many.
// It is lost
//
//   after other options     if none had it since, at a weight of 8 (of the only device: 4). Options are those
//                           that decide what the field reads: its paths, `each`, `extract`, ...
//   otherwise               at a weight of 20 and 5 devices, four fifths of those heard within the hour, if a
//                           key is there that nothing reads, that is like the field, and that was not there
//                           before; or if its path finds a value of another kind. A hall without GPS at night
//                           is no alarm, and neither are other keys of parked vehicles
//
// A device that lacked the field for long before does not count. A lost field is found again with the first
// record that has it. After a week it is given up: its devices do without it.
//
// While a field is lost, each record without it is kept, too (read/sent-in-part.ts).
//
// What is known goes on over another mapping, also under another name of the source with the same topics, and
// over restarts (device-records/field-records.ts). Where its devices are called otherwise, what most of them
// had is expected of each. It has no share in any payload.
//
// Bounds: `devicesMax` devices of a source (one that was silent for a day makes room; further ones are
// counted as `beyond`), 31 fields, 64 unread keys.

import type { Emit } from '../../domain/event.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { StoredSource } from './device-fields.ts'
import {
  createSourceFields,
  type NotedRecord,
  type SourceFields,
  type WatchedDevice,
} from './source-fields.ts'
import type { WatchedFields } from './watched-fields.ts'

export type LostFields = {
  /** For the next mapper. It goes on with what is known from its first record on. */
  watch(sources: readonly WatchedSource[]): FieldWatch
  /** For mappers of messages that were kept. */
  readonly view: FieldView
  /** Grows with each change that a restart must not lose. */
  changes(): number
  /** What is known, to go on with after a restart. */
  save(): readonly StoredSource[]
  /** What a process before knew. */
  restore(stored: readonly StoredSource[]): void
  /** Records of devices beyond the bound. */
  beyond(): number
}

export type WatchedSource = { readonly name: string; readonly watched: WatchedFields }

export type FieldView = {
  /** Fields that are lost, and can be sent later by themselves. */
  lostBits(source: string): number
  /** Whether a device had the field since then. */
  hasSince(source: string, field: string, since: EpochMs): boolean
}

export type FieldWatch = FieldView & {
  /** The record at hand was read. */
  note(source: string, entry: WatchedEntry, context: NotedRecord): void
}

/** An entry of a device. `fields` belongs to the watch, so that most records need no look-up. */
export type WatchedEntry = WatchedDevice & { fields: object | null }

/** What the last record of an entry was. */
type LastRecord = {
  readonly own: SourceFields
  present: number
  judged: number
  isUsual: boolean
  /** Records like it, since the last one that was looked at. */
  alike: number
}

/** Of so many records that are alike one is looked at. */
const alikeMax = 15

export function createLostFields({ emit }: { emit: Emit }, { devicesMax = 2048 } = {}): LostFields {
  let sources = new Map<string, SourceFields>()
  let current: FieldWatch | null = null
  /** Until the first record. */
  let known: readonly StoredSource[] = []
  let beyond = 0
  let takeOvers = 0
  const view: FieldView = {
    lostBits: (source) => sources.get(source)?.lostBits() ?? 0,
    hasSince: (source, field, since) => sources.get(source)?.hasSince(field, since) === true,
  }
  return { watch, view, changes, save, restore, beyond: () => beyond }

  function watch(next: readonly WatchedSource[]): FieldWatch {
    const watching: FieldWatch = {
      note(source, entry, record) {
        const last = entry.fields as LastRecord | null
        if (last !== null && current === watching && isAlike(last, record)) return
        if (current !== watching) takeOver(next, watching, record.arrivedAt)
        const own = sources.get(source)
        if (own === undefined) return
        const isUsual = own.note(entry, record)
        const { present, judged } = record
        if (last?.own === own) Object.assign(last, { present, judged, isUsual, alike: 0 })
        else entry.fields = { own, present, judged, isUsual, alike: 0 } satisfies LastRecord
      },
      lostBits: (source) => (current === watching ? view.lostBits(source) : 0),
      hasSince: view.hasSince,
    }
    return watching
  }

  function takeOver(next: readonly WatchedSource[], watching: FieldWatch, begunAt: EpochMs): void {
    const before = current === null ? known : [...sources.values()].map((own) => own.stored(Infinity))
    current = watching
    // The counts of those before go with them.
    takeOvers = changes() + 1
    const options = { begunAt, devicesMax, beyond: () => void (beyond += 1) }
    sources = new Map(
      next.map(({ name, watched }) => [
        name,
        createSourceFields({ emit }, { ...options, source: name, fields: watched }),
      ]),
    )
    restore(before)
    for (const { name: source, fields } of before)
      for (const { name: field, lost } of fields)
        if (lost !== null && sources.get(source)?.isLost(field) !== true)
          emit({ kind: 'field_found', source, field })
  }

  /** Most records are like the one before. While something is missing anywhere, each is looked at. */
  function isAlike(last: LastRecord, { present, judged }: NotedRecord): boolean {
    if (last.present !== present || last.judged !== judged || !last.isUsual) return false
    if (last.own.isSuspect() || last.alike >= alikeMax) return false
    last.alike += 1
    return true
  }

  function changes(): number {
    let sum = takeOvers
    for (const own of sources.values()) sum += own.changes()
    return sum
  }

  function save(): readonly StoredSource[] {
    return [...sources.values()].map((own) => own.stored())
  }

  function restore(stored: readonly StoredSource[]): void {
    if (current === null) known = stored
    const gone = new Set(stored.filter(({ name }) => !sources.has(name)))
    for (const [name, own] of sources) {
      const one =
        stored.find((before) => before.name === name) ?? [...gone].find((before) => own.succeeds(before))
      if (one === undefined) continue
      gone.delete(one)
      own.adopt(one)
    }
  }
}
