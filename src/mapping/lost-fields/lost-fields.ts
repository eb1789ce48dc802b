// lost-fields.ts: notices that a field which the devices of a source had is in their messages no more: a path
// was renamed in the mapping, or a firmware names a key otherwise. The entry file of the folder.
//
// Each device has, for each field, the longest usual number of records from one that has it to the next: its
// gap (device-fields.ts). So a field that is in every tenth message is missed after ten times as many. A
// field of a source is lost (source-fields.ts)
//
//   after other options   if none had it since, and the records beyond the usual gaps are 8 (of the only
//                         device that was heard since: 4), at most 4 of each device. Options are those that
//                         decide what the field reads: its paths, `each`, `extract`, ...
//   otherwise             if five devices lack it for four gaps, and each has a key that nothing reads, that
//                         is like the field, and that was not there before; or the path finds a value of
//                         another kind. One device is enough where it had the field until other options.
//                         So a roll-out over days is noticed, too. A hall without GPS at night is no alarm,
//                         and neither are other keys of parked vehicles: a key that a device has in turn with
//                         the field, twice, is usual from then on
//
// A device that lacked the field for long before a change does not count. A lost field is found again with
// the first record that has it, of one of the devices that lack it. After a week it is given up: they do
// without it.
//
// While a field is lost, each record without it is kept, too (read/message-records.ts); in a roll-out those
// of the devices that have the other key.
//
// What is known goes on over another mapping, also under another name of the source with the same topics, and
// over restarts (device-records/field-records.ts). Where its devices are called otherwise, what most of them
// had is expected of each. It has no share in any payload.
//
// Bounds: `devicesMax` devices of a source (one that was silent for a day makes room; further ones are
// counted as `beyond`), 31 fields, 64 unread keys.

import type { State } from '../../domain/condition-state.ts'
import type { EpochMs } from '../../std/clock.ts'
import { SourceFields, type NotedRecord } from './source-fields.ts'
import type { StoredSource } from './device-fields.ts'
import type { WatchedFields } from './watched-fields.ts'

export type LostFields = ReturnType<typeof createLostFields>

export type WatchedSource = { readonly name: string; readonly watched: WatchedFields }

export type FieldView = {
  /** Fields of the device that are lost, and can be sent later by themselves. */
  lostBits(source: string, device: string | undefined): number
  /** Whether a field that is not lost was sent since then. */
  hasSince(source: string, field: string, since: EpochMs): boolean
}

export type FieldWatch = FieldView & {
  /** The record at hand was read. */
  note(
    source: string,
    device: { readonly device: string; readonly family: number },
    record: NotedRecord,
  ): void
}

export function createLostFields({ devicesMax = 2048 } = {}) {
  let sources = new Map<string, SourceFields>()
  let current: FieldWatch | null = null
  /** Until the first record. */
  let known: readonly StoredSource[] = []
  /** Records of devices beyond the bound. */
  let beyond = 0
  let takeOvers = 0
  /** For mappers of messages that were kept. */
  const view: FieldView = {
    lostBits: (source, device) => sources.get(source)?.lostBits(device) ?? 0,
    hasSince: (source, field, since) => sources.get(source)?.hasSince(field, since) === true,
  }
  /** What is known, to go on with after a restart. */
  const save = () => [...sources.values()].map((own) => own.stored())
  return { watch, view, changes, save, restore, beyond: () => beyond, states }

  /** For the next mapper. It goes on with what is known from its first record on. */
  function watch(next: readonly WatchedSource[]): FieldWatch {
    const watching: FieldWatch = {
      note(source, { device, family }, record) {
        if (current !== watching) takeOver(next, watching, record.arrivedAt)
        sources.get(source)?.note(device, family, record)
      },
      lostBits: (source, device) => (current === watching ? view.lostBits(source, device) : 0),
      hasSince: view.hasSince,
    }
    return watching
  }

  function takeOver(next: readonly WatchedSource[], watching: FieldWatch, begunAt: EpochMs): void {
    const before = current === null ? known : [...sources.values()].map((own) => own.stored(Infinity))
    current = watching
    // The counts of those before go with them.
    takeOvers = changes() + 1
    const deps = { begunAt, devicesMax, beyond: () => void (beyond += 1) }
    sources = new Map(next.map(({ name, watched }) => [name, new SourceFields(deps, name, watched)]))
    restore(before)
  }

  function* states(): Generator<State> {
    for (const own of sources.values()) yield* own.states()
  }

  /** Grows with each change that a restart must not lose. */
  function changes(): number {
    return [...sources.values()].reduce((sum, own) => sum + own.changes, takeOvers)
  }

  /** What a process before knew. */
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
