// state.ts: the state of the mapping, the entry file of the folder. Sources that make one payload of many
// messages, or fewer payloads than messages, pass through here; all others do not.
//
//   record -coalesce?-> open record -> mapped record -thin?-> -merge?-> open record of the group -> payload
//
//   coalesce.ts     single values become records; the rules by which a record closes
//   merge.ts        mapped records of several sources become one payload, by the same rules
//   open-record.ts  the durable form of an open record
//
// Guarantees
//   Durable     a message that is taken as a part is state in the spool before it is acknowledged. The
//               changes of a step (payloads, state written and deleted) are one StateChanges, to be committed
//               in one write: a crash before or after that write makes the same payloads, once.
//   Two steps   take...() only reads the message; the `apply` of its part performs the change. It is not
//               called for a duplicate.
//   Pure        what closes depends only on arrival times, which messages and ticks pass in. The payloadId of
//               a closed record is made of its content, whichever message or tick closed it.
//   Total       state that cannot be read, or that no source uses any more, becomes a dead letter.
//   Counted     every message ends as a payload, as ignored or as a dead letter, or is open:
//               counters().messages.
//
// After a failed write the memory is ahead of the spool: restore() with the entries of the spool corrects it,
// and the devices send again what was not acknowledged. Memory that may be lost (filters/) is not state.
// Bounds: see coalesce.ts. At most 1,000 records of a source close in one tick; the next tick is then due at
// once.
//
// The caller calls nextTickAt() after every step and at least once a second, since the wall clock may be set.
// A release from quarantine or a remap of many messages uses a state of its own and ends it with
// tick(Infinity), which closes all records: old values must not be combined with those that arrive now.

import { hash } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import type { DuplicateRule, MappedPayload } from '../../domain/payload.ts'
import { thinSampleOf } from '../filters/thin.ts'
import { digestOf, messageKeyOf } from '../identity.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { Moment } from '../read/reading.ts'
import type { SourceRuntime } from '../routing/routing.ts'
import type { RecordContext, Rejection, StateChanges } from '../types.ts'
import { nameOf, payloadOf, type DeviceRecord, type Identity } from '../write.ts'
import type { Value } from './open-record.ts'
import { createRecordClosing, type CollectedReader } from './record-closing.ts'
import { valueIn } from './coalesce.ts'
import { createStates, isKey, ownerOf, type SourceState } from './source-state.ts'
import { changesOf, isEmpty, newChanges } from './record-envelope.ts'
import { restoreStates } from './state-restore.ts'

/** What is taken of a message, and waits. */
export type Pending =
  | { kind: 'value'; state: SourceState; owner: string; value: Value }
  | { kind: 'record'; state: SourceState; record: DeviceRecord }

/** What becomes of one record of a message. */
export type Taken = Pending | { kind: 'payload'; payload: MappedPayload } | Rejection

/** `windowKey` and `duplicateRule` decide whether it is a duplicate. */
type Part = { windowKey: string; duplicateRule: DuplicateRule; apply(): StateChanges }

export type MappingState = ReturnType<typeof createMappingState>

type Named = { digest: string; identity: Identity; dup: boolean }

const tooLong: Rejection = {
  kind: 'refused',
  reason: 'BAD_DEVICE',
  detail: 'The names of the source and the device, or of its asset, are too long together.',
}

const tooLarge: Rejection = {
  kind: 'refused',
  reason: 'TOO_LARGE',
  detail: 'The value is larger than a record may be.',
}

export function createMappingState(runtimes: readonly SourceRuntime[], reader: CollectedReader) {
  const states = createStates(runtimes)
  const closing = createRecordClosing(states, reader)
  let restored = restoreStates(states, [])
  return {
    /** Null for a source whose records wait for nothing. */
    of: (source: string): SourceState | null => states.sources.get(source) ?? null,
    takeValue,
    takeRecord,
    partOf,
    tick,
    nextTickAt,
    /** Replaces all state by these entries of the spool; ignores entries of other owners. */
    restore(stored: Iterable<readonly [key: string, value: Buffer]>): void {
      restored = restoreStates(states, stored)
    },
    entries,
    /** Maps a closed record that was kept as a message (record-envelope.ts); null for any other message. */
    mapKept: closing.mapKept,
    counters,
  }

  /** A record of a source that coalesces, as a value. */
  function takeValue(state: SourceState, record: RecordContext, entry: DeviceEntry): Taken {
    const value = valueIn(state.runtime.source.coalesce!, record, entry.zone)
    if ('kind' in value) return value
    const owner = ownerOf(entry.device, entry.provider)
    if (!isKey(state.prefix, owner)) return tooLong
    if (!state.coalescer!.fits(value.name, value.text)) return tooLarge
    return { kind: 'value', state, owner, value }
  }

  /** A record of a source that thins or merges. `digest`: of its name. */
  function takeRecord(state: SourceState, record: DeviceRecord, { digest, identity, dup }: Named): Taken {
    const { entry, mapped } = record
    const resent = identity.duplicateRule === 'always' || dup
    if (state.thin?.passes(thinSampleOf(mapped, identity, resent)) === false)
      return { kind: 'ignored', reason: 'thinned' }
    if (state.group) {
      const owner = ownerOf(entry.assetId, entry.provider)
      return isKey(state.group.prefix, owner) ? { kind: 'record', state, record } : tooLong
    }
    const payload = payloadOf(record, digest, identity)
    return payload === null ? { kind: 'ignored', reason: 'privacy' } : { kind: 'payload', payload }
  }

  /** What waits of a message. `apply`: once, where it is no duplicate, and before the next message. */
  function partOf(found: readonly Pending[], message: Message, now: Moment): Part {
    const isTimed = found.every((one) =>
      one.kind === 'value' ? !Number.isNaN(one.value.time) : one.record.mapped.time !== null,
    )
    const apply = () => applied(found, now)
    if (!isTimed) return { windowKey: messageKeyOf(message), duplicateRule: 'resend', apply }
    const windowKey = hash('sha256', found.map(readingOf).join(), 'hex').slice(0, 32)
    return { windowKey, duplicateRule: 'always', apply }
  }

  function applied(found: readonly Pending[], now: Moment): StateChanges {
    const changes = newChanges(now)
    let counted = false
    for (const one of found) {
      // The message is counted with its first part that is not a duplicate.
      const messages: number = counted ? 0 : 1
      const taken: boolean =
        one.kind === 'value'
          ? closing.addValue(one.state, one.owner, { ...one.value, messages }, changes)
          : closing.addRecord(one.state, one.record, messages, changes)
      counted ||= taken
    }
    const [first] = found
    if (!counted && first !== undefined) {
      const { name: source } = first.state.runtime.source
      changes.unsent.push({ kind: 'ignored', source, reason: 'duplicate', messages: 1 })
    }
    return changesOf(changes)
  }

  /** Closes the records whose window is over; null where there is nothing to change. */
  function tick(nowMs: EpochMs, now: Moment): StateChanges | null {
    const changes = { ...newChanges(now), ...restored.changes }
    restored.changes = { writes: new Map(), unsent: [] }
    closing.closeDue(nowMs, changes)
    return isEmpty(changes) ? null : changesOf(changes)
  }

  function nextTickAt(): EpochMs | null {
    if (restored.changes.writes.size > 0) return 0
    const due = states.stores.map(({ records }) => records.nextTickAt()).filter((at) => at !== null)
    return due.length === 0 ? null : Math.min(...due)
  }

  /** All state in its stored form, for the mapping that replaces this one. */
  function* entries(): Generator<[string, Buffer]> {
    for (const { prefix, records } of states.stores)
      for (const [owner, bytes] of records.entries()) yield [prefix + owner, bytes]
  }

  function counters() {
    const open = new Map(states.stores.map(({ label, records }) => [label, records.counters()]))
    const thin = new Map<string, ReturnType<NonNullable<SourceState['thin']>['counters']>>()
    for (const [name, state] of states.sources) if (state.thin) thin.set(name, state.thin.counters())
    const messages = [...open.values()].reduce((sum, one) => sum + one.messages, 0)
    const { damaged, unused } = restored
    // `messages`: in open records now; `open`: by source, and by `group NAME`; `damaged`, `unused`: entries
    // of the last restore() that could not be read, and that no source uses.
    return { messages, open, thin, damaged, unused }
  }
}

/** Identifies a reading with a time of its own, whichever message delivers it. */
function readingOf(one: Pending): string {
  const { name: source } = one.state.runtime.source
  if (one.kind === 'record') return JSON.stringify(['record', source, digestOf(nameOf(one.record))])
  const { name, time, text } = one.value
  return JSON.stringify(['value', source, one.owner, name, time, text])
}
