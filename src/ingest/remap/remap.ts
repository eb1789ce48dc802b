// remap-slice.ts: maps a run of kept messages once more, as if they had come one after the other: for the release
// from quarantine and for the remap of dead letters. Pure: it reads and writes nothing.
//
// The mapper has a memory of its own and everything in it is closed at the end, since values of last week must not
// meet those that arrive now, and what is taken must be payloads in the very write that takes it. So a run must not
// end in the middle of what belongs together: where a record is open at the end and more messages follow, the run
// is cut before the first message of that record.
//
//   m m m m m m | m m          of the values behind the bar the record is not whole yet: they go with the next run
//
// The same where more of the record may come from outside: its window, counted from when it arrived, is not over.

import { assertNever } from '../../std/assert.ts'
import { envelopeOf, type Envelope, type KeptMessage } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { StateChanges, MapResult, Mapper } from '../../mapping/mapping.ts'
import { deviceBefore } from './release-order.ts'
import { mapKept, type Evaluated } from '../expressions/expressions.ts'
import type { ReleaseOrder } from '../types.ts'
import { keptBehind, keptMessageFor, messageFrom, quarantineFor } from './kept-message.ts'

export type RemapEntry = { id: string; envelope: Envelope }

/** What cannot be mapped. `id` is null for a record that was made of several messages. */
export type RefusedMessage = {
  id: string | null
  source: string | null
  device: string | null
  reason: string
  detail: string
  envelope: Envelope
}

export type Remapped = {
  /** Entries that this is about, from the first on. */
  entries: number
  /** Those that became something: payloads, a part of a payload, nothing on purpose, or kept elsewhere. */
  taken: string[]
  payloads: MappedPayload[]
  keep: KeptMessage[]
  /** Messages by the reason why they became nothing on purpose, keyed as `source|reason`. */
  ignored: Map<string, number>
  refused: RefusedMessage[]
}

export type RemapOptions = {
  /** Messages follow: the run may be cut. */
  more: boolean
  /** Where all of it belongs to one record that is not whole yet, more of them can be had. */
  mayGrow: boolean
  /** What arrived until then can be read; a record that may get more of what came later is left for then. */
  arrivedUntil?: EpochMs
  /** What the expressions gave for entries that need one, by id. */
  evaluated?: ReadonlyMap<string, Evaluated>
  /** Devices whose earlier messages must go first. */
  releaseOrder?: ReleaseOrder
}

/** Payloads of one run, in characters; then it ends where nothing is open. */
const payloadLengthMax = 1024 * 1024
const setBackMs = 60_000
/** Never reached by what is closed in one run. */
const closingsMax = 10_000

/**
 * Null where more messages are needed, of those that follow or of those that may still arrive. `open` gives a mapper
 * that remembers nothing.
 */
export function remapSlice(
  open: () => Mapper,
  entries: readonly RemapEntry[],
  options: RemapOptions,
): Remapped | null {
  const { more, mayGrow } = options
  const all = run(open(), entries, options)
  if (all.openParts === 0) return all.again
  const follows = more || all.again.entries < entries.length
  if (!follows && !all.young) return all.again
  if (all.cleanCut > 0) return run(open(), entries.slice(0, all.cleanCut), options).again
  return follows && !mayGrow ? all.again : null
}

type Run = {
  again: Remapped
  /** Messages that were open before everything was closed. */
  openParts: number
  /** Some of them may get more of what arrives. */
  young: boolean
  /** Before this entry nothing was open that a later one belongs to; 0 where there is no such place. */
  cleanCut: number
}

function run(mapper: Mapper, entries: readonly RemapEntry[], options: RemapOptions): Run {
  const { arrivedUntil = Number.POSITIVE_INFINITY, evaluated, releaseOrder } = options
  const again: Remapped = { entries: 0, taken: [], payloads: [], keep: [], ignored: new Map(), refused: [] }
  let cleanCut = 0
  let length = 0
  for (const { id, envelope } of entries) {
    const message = messageFrom(envelope)
    const over = mapper.tick(message.arrivedAt)
    if (over !== null) close(over)
    const isPart = place(mapKept(mapper, message, evaluated?.get(id)), id, envelope)
    if (mapper.openParts() <= (isPart ? 1 : 0)) cleanCut = again.entries
    again.entries += 1
    if (length > payloadLengthMax && mapper.openParts() === 0) break
  }
  const openParts = mapper.openParts()
  closeOver(ripeAt())
  const young = mapper.openParts() > 0
  closeOver(Number.POSITIVE_INFINITY)
  return { again, openParts, young, cleanCut }

  /** What was read in between is known as well. Arrivals far from now are those of a clock that was set back. */
  function ripeAt(): EpochMs {
    const last = entries.at(-1)?.envelope.arrivedAt ?? arrivedUntil
    return last - arrivedUntil > setBackMs ? Number.POSITIVE_INFINITY : Math.max(last, arrivedUntil)
  }

  function closeOver(nowMs: EpochMs): void {
    for (let count = 0; count < closingsMax; count += 1) {
      const over = mapper.tick(nowMs)
      if (over === null) return
      close(over)
    }
  }

  function place(result: MapResult, id: string, envelope: Envelope): boolean {
    if (result.kind === 'unmappable') {
      const { source, device, reason, detail } = result
      again.refused.push({ id, source, device, reason, detail, envelope })
      return false
    }
    again.taken.push(id)
    const before = releaseOrder === undefined ? null : deviceBefore(result, releaseOrder)
    if (before !== null && releaseOrder !== undefined) {
      releaseOrder.addBehind(before.device)
      again.keep.push(keptBehind(before, envelope))
      return false
    }
    switch (result.kind) {
      case 'payloads':
        add(result.payloads)
        return false
      case 'ignored':
        ignore(result.source, result.reason, 1)
        return false
      case 'part':
        close(mapper.apply())
        return true
      case 'quarantined':
      case 'deferred':
        again.keep.push(keptMessageFor(result, envelope))
        return false
      default:
        return assertNever(result)
    }
  }

  /** Its writes are of a memory that ends with this run. */
  function close({ payloads, unsent }: StateChanges): void {
    add(payloads)
    for (const one of unsent) {
      if (one.kind === 'ignored') {
        ignore(one.source, one.reason, one.messages)
        continue
      }
      const { kind, source, provider, device, reason, detail } = one
      const envelope = envelopeOf(one.message, source)
      if (kind === 'quarantined' && provider !== null)
        again.keep.push(quarantineFor({ ...one, provider }, envelope))
      else again.refused.push({ id: null, source, device, reason, detail, envelope })
    }
  }

  function add(payloads: readonly MappedPayload[]): void {
    for (const payload of payloads) {
      again.payloads.push(payload)
      length += payload.json.length
    }
  }

  function ignore(source: string, reason: string, messages: number): void {
    const key = `${source}|${reason}`
    again.ignored.set(key, (again.ignored.get(key) ?? 0) + messages)
  }
}
