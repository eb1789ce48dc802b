// state.ts: the memory of the mapping. Sources that make one payload of many messages, or fewer payloads
// than messages, pass through here; all others never do.
//
//   record -coalesce?-> open record ~closed~> read -thin?-> half -merge?-> open halves ~closed~> payload
//
// Promises
//   Durable   a message that is taken as a part is state in the spool before it is acknowledged. What a step
//             changes (payloads, state that goes and comes) is one Applied, to be written as one: a crash on
//             either side of that write makes the same payloads, once.
//   Twofold   take...() only looks; what it found is done by apply(), which is not called for a copy.
//   Pure      what closes depends on arrivals alone, passed in with messages and ticks; a record that closed
//             has a name made of its content, whichever message or tick closed it.
//   Total     state that cannot be read, or that nobody wants any more, is given to the dead letters whole.
//   Counted   every message ends as a payload, as ignored, as a dead letter, or is open: counters().messages.
//
// When a write fails, what is in memory is ahead of what is kept: restore() with what is kept puts it right,
// and the devices send again what was not acknowledged. Memory that may be lost (thin.ts, motion.ts) is no
// state. Bounds: see coalesce.ts; at most 1,000 records of a source close in one tick, and the next one is
// due at once.
//
// The caller asks nextTickAt() after every step and at least once a second, since the wall clock may be set.
// A release from quarantine or a remap of many messages gets a memory of its own and ends it with
// tick(Infinity), which closes everything: old values must not meet those that arrive now.

import { hash } from 'node:crypto'
import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { Message } from '../../domain/message.ts'
import type { DuplicateRule, MappedPayload } from '../../domain/payload.ts'
import { messageKeyOf, partKeyOf } from '../identity.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { changesOf, isEmpty, newChanges, type StateChanges } from './state-changes.ts'
import { createClosing } from './record-closing.ts'
import type { CoalesceCounters } from './coalesce.ts'
import type { MappedRecord } from './merge.ts'
import type { Value } from './open-record.ts'
import { partOf } from './coalesced-value.ts'
import { digestOfRecord, ownIdentity, payloadOf, sampleOf, type Identity } from './record-payload.ts'
import { mapKept } from './record-remap.ts'
import { createRestoring } from './state-restore.ts'
import {
  createStates,
  ownerOf,
  type DeviceRecord,
  type SourceState,
  type StateSource,
} from './source-state.ts'
import type { Up, MapResult } from '../types.ts'

/** A record of a message, and whose it is. */
export type RawRecord = {
  entry: DeviceEntry
  captures: readonly string[]
  record: unknown
  root: unknown
  up?: Up
}

export type Taken =
  | { kind: 'payloads'; payloads: readonly MappedPayload[] }
  /** It waits in memory once apply() was called. `windowKey` and `duplicateRule` tell when it is a copy. */
  | { kind: 'part'; windowKey: string; duplicateRule: DuplicateRule }
  | { kind: 'ignored'; reason: string }
  | { kind: 'refused'; reason: string; detail: string }

export type MappingState = {
  /** Values of one message of a source that coalesces. */
  takeValues(source: string, message: Message, records: readonly RawRecord[]): Taken
  /** What one message of a source that thins or merges says. */
  takeRecords(source: string, message: Message, halves: readonly DeviceRecord[]): Taken
  /** Does what the last `part` was about; once, and before the next message. */
  apply(): StateChanges
  /** Closes what is over; null where nothing is. */
  tick(nowMs: EpochMs): StateChanges | null
  nextTickAt(): EpochMs | null
  /** Replaces all state by what was kept; entries of others are passed over. */
  restore(entries: Iterable<readonly [key: string, value: Buffer]>): void
  /** All state as it is kept: for a mapping that takes over from this one. */
  entries(): Iterable<[key: string, value: Buffer]>
  /** Maps a record that closed and was kept as a message (record-envelope.ts); null where the message is none. */
  mapKept(message: Message): MapResult | null
  counters(): StateCounters
}

export type StateCounters = {
  /** Messages that are in open records now. */
  messages: number
  /** By source, and by `group NAME`. */
  open: ReadonlyMap<string, CoalesceCounters>
  thin: ReadonlyMap<string, { passed: number; thinned: number; evictions: number }>
  /** Entries of the last restore() that could not be read, and that nobody wanted. */
  damaged: number
  unwanted: number
}

/** Characters of a key of the spool's table. */
const keyLengthMax = 512

type Pending =
  | { kind: 'value'; state: SourceState; owner: string; value: Value }
  | { kind: 'half'; state: SourceState; own: DeviceRecord }

const tooLong: Taken = {
  kind: 'refused',
  reason: 'BAD_DEVICE',
  detail: 'The names of the source and the device, or of its asset, are too long to be a key together.',
}

export function createMappingState(sources: readonly StateSource[]): MappingState {
  const states = createStates(sources)
  const closing = createClosing(states)
  const restoring = createRestoring(states)
  let pending: readonly Pending[] = []
  return {
    takeValues,
    takeRecords: takeHalves,
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
    assert(state, `the source ${source} has a memory`)
    return state
  }

  function takeValues(source: string, message: Message, records: readonly RawRecord[]): Taken {
    const state = stateOf(source)
    const { coalesce } = state.source
    assert(coalesce && state.coalescer, 'values are taken for a source that coalesces')
    const found: Pending[] = []
    let skipped = 'no records'
    for (const { entry, ...read } of records) {
      const value = partOf(coalesce, read, message.arrivedAt)
      if ('kind' in value) {
        if (value.kind === 'refused') return value
        skipped = value.reason
        continue
      }
      const owner = ownerOf(entry.device, entry.provider)
      if (!isKey(state.prefix, owner)) return tooLong
      if (!state.coalescer.fits(value.name, value.text))
        return { kind: 'refused', reason: 'TOO_LARGE', detail: 'The value is larger than a record may be.' }
      found.push({ kind: 'value', state, owner, value })
    }
    return found.length === 0 ? { kind: 'ignored', reason: skipped } : part(found, message)
  }

  function takeHalves(source: string, message: Message, halves: readonly DeviceRecord[]): Taken {
    const state = stateOf(source)
    const payloads: MappedPayload[] = []
    const found: Pending[] = []
    const digests = new Set<string>()
    let skipped = 'no records'
    for (const [index, own] of halves.entries()) {
      const { entry, mapped: half } = own
      let digest = digestOfRecord(entry, half)
      if (digests.has(digest)) digest = digestOfRecord(entry, half, `#${index}`)
      digests.add(digest)
      const identity = identityOf(half, digest, message, index)
      if (state.thin) {
        const resent = identity.duplicateRule === 'always' || message.dup
        if (!state.thin.passes(sampleOf(half, identity, resent))) {
          skipped = 'thinned'
          continue
        }
      }
      if (state.group) {
        if (!isKey(state.group.prefix, ownerOf(state.source.assetOf(entry), entry.provider))) return tooLong
        found.push({ kind: 'half', state, own })
        continue
      }
      const payload = payloadOf(entry, half, digest, identity, state.source.withholdOf(entry))
      if (payload === null) skipped = 'privacy'
      else payloads.push(payload)
    }
    if (found.length > 0) return part(found, message)
    return payloads.length > 0 ? { kind: 'payloads', payloads } : { kind: 'ignored', reason: skipped }
  }

  function part(found: readonly Pending[], message: Message): Taken {
    pending = found
    const timed = found.every((one) =>
      one.kind === 'value' ? !Number.isNaN(one.value.time) : one.own.mapped.time !== null,
    )
    if (!timed) return { kind: 'part', windowKey: messageKeyOf(message), duplicateRule: 'resend' }
    return {
      kind: 'part',
      windowKey: hash('sha256', found.map(readingOf).join(), 'hex').slice(0, 32),
      duplicateRule: 'always',
    }
  }

  function apply(): StateChanges {
    const outcome = newChanges()
    const found = pending
    pending = []
    let counted = false
    for (const one of found) {
      // The message is counted with the first part of it that is no copy.
      const messages: number = counted ? 0 : 1
      const taken: boolean =
        one.kind === 'value'
          ? closing.addValue(one.state, one.owner, { ...one.value, messages }, outcome)
          : closing.addHalf(one.state, one.own, messages, outcome)
      counted ||= taken
    }
    const [first] = found
    if (!counted && first !== undefined)
      outcome.unsent.push({
        kind: 'ignored',
        source: first.state.source.name,
        reason: 'duplicate',
        messages: 1,
      })
    return changesOf(outcome)
  }

  function tick(nowMs: EpochMs): StateChanges | null {
    const outcome = restoring.takeLeftover()
    closing.closeOver(nowMs, outcome)
    return isEmpty(outcome) ? null : changesOf(outcome)
  }

  function nextTickAt(): EpochMs | null {
    if (restoring.hasLeftover) return 0
    let next: EpochMs | null = null
    for (const { holds } of states.holders) {
      const at = holds.nextTickAt()
      if (at !== null && (next === null || at < next)) next = at
    }
    return next
  }

  function* entries(): Generator<[string, Buffer]> {
    for (const { prefix, holds } of states.holders)
      for (const [owner, bytes] of holds.entries()) yield [prefix + owner, bytes]
  }

  function counters(): StateCounters {
    const open = new Map(states.holders.map(({ label, holds }) => [label, holds.counters()]))
    const thin = new Map<string, ReturnType<NonNullable<SourceState['thin']>['counters']>>()
    for (const [name, state] of states.sources) if (state.thin) thin.set(name, state.thin.counters())
    const messages = [...open.values()].reduce((sum, one) => sum + one.messages, 0)
    return { messages, open, thin, ...restoring.counters() }
  }
}

function isKey(prefix: string, owner: string): boolean {
  return prefix.length + owner.length <= keyLengthMax
}

/** As for any payload: by its name, or without a device time by the very message (see identity.ts). */
function identityOf({ time }: MappedRecord, digest: string, message: Message, index: number): Identity {
  if (time !== null) return ownIdentity(digest)
  return { windowKey: partKeyOf(messageKeyOf(message), index), duplicateRule: 'resend' }
}

/** What makes a reading with a time of its own the same reading, whoever delivers it. */
function readingOf(one: Pending): string {
  if (one.kind === 'half')
    return JSON.stringify(['half', one.own.mapped.source, digestOfRecord(one.own.entry, one.own.mapped)])
  const { name, time, text } = one.value
  return JSON.stringify(['value', one.state.source.name, one.owner, name, time, text])
}
