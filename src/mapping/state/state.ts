// state.ts: the state of the mapping, the entry file of the folder. Sources that make one payload of many
// messages, or fewer payloads than messages, pass through here; all others do not.
//
//   record -coalesce?-> open record -> mapped record -thin?-> -merge?-> open record of the group -> payload
//
//   coalesce.ts     single values become records; the rules by which a record closes
//   merge.ts        mapped records of several sources become one payload, by the same rules
//   thin.ts         fewer payloads; motion.ts: motion from the speed, for compile/
//   open-record.ts  the durable form of an open record
//
// Guarantees
//   Durable     a message that is taken as a part is state in the spool before it is acknowledged. The
//               changes of a step (payloads, state written and deleted) are one StateChanges, to be committed
//               in one write: a crash before or after that write makes the same payloads, once.
//   Two steps   take...() only reads the message; apply() performs the change. It is not called for a
//               duplicate.
//   Pure        what closes depends only on arrival times, which messages and ticks pass in. The payloadId of
//               a closed record is made of its content, whichever message or tick closed it.
//   Total       state that cannot be read, or that no source uses any more, becomes a dead letter.
//   Counted     every message ends as a payload, as ignored or as a dead letter, or is open:
//               counters().messages.
//
// After a failed write the memory is ahead of the spool: restore() with the entries of the spool corrects it,
// and the devices send again what was not acknowledged. Memory that may be lost (thin.ts, motion.ts) is not
// state. Bounds: see coalesce.ts. At most 1,000 records of a source close in one tick; the next tick is then
// due at once.
//
// The caller calls nextTickAt() after every step and at least once a second, since the wall clock may be set.
// A release from quarantine or a remap of many messages uses a state of its own and ends it with
// tick(Infinity), which closes all records: old values must not be combined with those that arrive now.

import { hash } from 'node:crypto'
import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import type { DuplicateRule, MappedPayload } from '../../domain/payload.ts'
import { messageKeyOf, partKeyOf } from '../identity.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { changesOf, isEmpty, newChanges, type StateChanges } from './state-changes.ts'
import { createRecordClosing } from './record-closing.ts'
import type { CoalesceCounters } from './coalesce.ts'
import type { MappedRecord } from './merge.ts'
import type { Value } from './open-record.ts'
import { valueIn } from './coalesced-value.ts'
import { digestOfRecord, identityOfDigest, payloadOf, thinSampleOf, type Identity } from './record-payload.ts'
import { mapKept } from './record-remap.ts'
import { createStateRestore } from './state-restore.ts'
import {
  createStates,
  ownerOf,
  type DeviceRecord,
  type SourceState,
  type StateSource,
} from './source-state.ts'
import type { Up, MapResult } from '../types.ts'

/** A record of a message, and its device. */
export type RawRecord = {
  entry: DeviceEntry
  captures: readonly string[]
  record: unknown
  root: unknown
  up?: Up
}

/** `refused`: those of the records that are not taken, by their place in the list. */
export type Taken = { refused: readonly { place: number; reason: string; detail: string }[] } & (
  | { kind: 'payloads'; payloads: readonly MappedPayload[] }
  /** It waits in memory after apply(). `windowKey` and `duplicateRule` decide whether it is a duplicate. */
  | { kind: 'part'; windowKey: string; duplicateRule: DuplicateRule }
  | { kind: 'ignored'; reason: string }
  /** All were refused. */
  | { kind: 'none' }
)

type Refused = Taken['refused'][number]

export type MappingState = {
  /** The values of one message of a source that coalesces. */
  takeValues(source: string, message: Message, records: readonly RawRecord[]): Taken
  /** The records of one message of a source that thins or merges. */
  takeRecords(source: string, message: Message, records: readonly DeviceRecord[]): Taken
  /** Adds the last `part` to its open records; once, and before the next message. */
  apply(): StateChanges
  /** Closes the records whose window is over; null where there is nothing to change. */
  tick(nowMs: EpochMs): StateChanges | null
  nextTickAt(): EpochMs | null
  /** Replaces all state by these entries of the spool; ignores entries of other owners. */
  restore(entries: Iterable<readonly [key: string, value: Buffer]>): void
  /** All state in its stored form, for the mapping that replaces this one. */
  entries(): Iterable<[key: string, value: Buffer]>
  /** Maps a closed record that was kept as a message (record-envelope.ts); null for any other message. */
  mapKept(message: Message): MapResult | null
  counters(): StateCounters
}

export type StateCounters = {
  /** Messages that are in open records now. */
  messages: number
  /** By source, and by `group NAME`. */
  open: ReadonlyMap<string, CoalesceCounters>
  thin: ReadonlyMap<string, { passed: number; thinned: number; evictions: number }>
  /** Entries of the last restore() that could not be read, and that no source uses. */
  damaged: number
  unused: number
}

/** Characters of a key in the spool's table. */
const keyLengthMax = 512

type Pending =
  | { kind: 'value'; state: SourceState; owner: string; value: Value }
  | { kind: 'record'; state: SourceState; record: DeviceRecord }

const tooLong: Omit<Refused, 'place'> = {
  reason: 'BAD_DEVICE',
  detail: 'The names of the source and the device, or of its asset, are too long together.',
}

const tooLarge: Omit<Refused, 'place'> = {
  reason: 'TOO_LARGE',
  detail: 'The value is larger than a record may be.',
}

export function createMappingState(sources: readonly StateSource[]): MappingState {
  const states = createStates(sources)
  const closing = createRecordClosing(states)
  const restoring = createStateRestore(states)
  let pending: readonly Pending[] = []
  return {
    takeValues,
    takeRecords,
    apply,
    tick,
    nextTickAt,
    restore: restoring.restore,
    entries,
    mapKept: (message) => mapKept(states, message),
    counters,
  }

  function stateOf(source: string): SourceState {
    const state = states.sources.get(source)
    assert(state, `the source ${source} has state`)
    return state
  }

  function takeValues(source: string, message: Message, records: readonly RawRecord[]): Taken {
    const state = stateOf(source)
    const { coalesce } = state.source
    assert(coalesce && state.coalescer, 'values are taken for a source that coalesces')
    const found: Pending[] = []
    const refused: Refused[] = []
    let skipped: string | null = null
    for (const [place, record] of records.entries()) {
      const { entry } = record
      const value = valueIn(coalesce, record, message.arrivedAt)
      if ('kind' in value) {
        if (value.kind === 'ignored') skipped = value.reason
        else refused.push({ place, reason: value.reason, detail: value.detail })
        continue
      }
      const owner = ownerOf(entry.device, entry.provider)
      if (!isKey(state.prefix, owner)) refused.push({ place, ...tooLong })
      else if (!state.coalescer.fits(value.name, value.text)) refused.push({ place, ...tooLarge })
      else found.push({ kind: 'value', state, owner, value })
    }
    return found.length > 0 ? { refused, ...part(found, message) } : { refused, ...notTaken(skipped) }
  }

  function takeRecords(source: string, message: Message, records: readonly DeviceRecord[]): Taken {
    const state = stateOf(source)
    const payloads: MappedPayload[] = []
    const found: Pending[] = []
    const digests = new Set<string>()
    const refused: Refused[] = []
    let skipped: string | null = null
    for (const [index, record] of records.entries()) {
      const { entry, mapped } = record
      let digest = digestOfRecord(entry, mapped)
      if (digests.has(digest)) digest = digestOfRecord(entry, mapped, `#${index}`)
      digests.add(digest)
      const identity = identityOf(mapped, digest, message, index)
      if (state.thin) {
        const resent = identity.duplicateRule === 'always' || message.dup
        if (!state.thin.passes(thinSampleOf(mapped, identity, resent))) {
          skipped = 'thinned'
          continue
        }
      }
      if (state.group) {
        if (isKey(state.group.prefix, ownerOf(state.source.assetOf(entry), entry.provider)))
          found.push({ kind: 'record', state, record })
        else refused.push({ place: index, ...tooLong })
        continue
      }
      const payload = payloadOf(record, digest, identity, state.source.withholdOf(entry))
      if (payload === null) skipped = 'privacy'
      else payloads.push(payload)
    }
    if (found.length > 0) return { refused, ...part(found, message) }
    if (payloads.length > 0) return { refused, kind: 'payloads', payloads }
    return { refused, ...notTaken(skipped) }
  }

  function part(
    found: readonly Pending[],
    message: Message,
  ): Omit<Extract<Taken, { kind: 'part' }>, 'refused'> {
    pending = found
    const timed = found.every((one) =>
      one.kind === 'value' ? !Number.isNaN(one.value.time) : one.record.mapped.time !== null,
    )
    if (!timed) return { kind: 'part', windowKey: messageKeyOf(message), duplicateRule: 'resend' }
    return {
      kind: 'part',
      windowKey: hash('sha256', found.map(readingOf).join(), 'hex').slice(0, 32),
      duplicateRule: 'always',
    }
  }

  function apply(): StateChanges {
    const changes = newChanges()
    const found = pending
    pending = []
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
    if (!counted && first !== undefined)
      changes.unsent.push({
        kind: 'ignored',
        source: first.state.source.name,
        reason: 'duplicate',
        messages: 1,
      })
    return changesOf(changes)
  }

  function tick(nowMs: EpochMs): StateChanges | null {
    const changes = restoring.takeChanges()
    closing.closeDue(nowMs, changes)
    return isEmpty(changes) ? null : changesOf(changes)
  }

  function nextTickAt(): EpochMs | null {
    if (restoring.hasChanges()) return 0
    let next: EpochMs | null = null
    for (const { records } of states.stores) {
      const at = records.nextTickAt()
      if (at !== null && (next === null || at < next)) next = at
    }
    return next
  }

  function* entries(): Generator<[string, Buffer]> {
    for (const { prefix, records } of states.stores)
      for (const [owner, bytes] of records.entries()) yield [prefix + owner, bytes]
  }

  function counters(): StateCounters {
    const open = new Map(states.stores.map(({ label, records }) => [label, records.counters()]))
    const thin = new Map<string, ReturnType<NonNullable<SourceState['thin']>['counters']>>()
    for (const [name, state] of states.sources) if (state.thin) thin.set(name, state.thin.counters())
    const messages = [...open.values()].reduce((sum, one) => sum + one.messages, 0)
    return { messages, open, thin, ...restoring.counters() }
  }
}

/** `skipped`: why the last record that was ignored was; null where there was none. */
function notTaken(skipped: string | null): { kind: 'ignored'; reason: string } | { kind: 'none' } {
  return skipped === null ? { kind: 'none' } : { kind: 'ignored', reason: skipped }
}

function isKey(prefix: string, owner: string): boolean {
  return prefix.length + owner.length <= keyLengthMax
}

/** As for any payload: by its digest, or without a device time by the message itself (see identity.ts). */
function identityOf({ time }: MappedRecord, digest: string, message: Message, index: number): Identity {
  if (time !== null) return identityOfDigest(digest)
  return { windowKey: partKeyOf(messageKeyOf(message), index), duplicateRule: 'resend' }
}

/** Identifies a reading with a time of its own, whichever message delivers it. */
function readingOf(one: Pending): string {
  if (one.kind === 'record') {
    const { entry, mapped } = one.record
    return JSON.stringify(['record', mapped.source, digestOfRecord(entry, mapped)])
  }
  const { name, time, text } = one.value
  return JSON.stringify(['value', one.state.source.name, one.owner, name, time, text])
}
