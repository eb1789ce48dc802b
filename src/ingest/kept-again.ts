// kept-again.ts: maps a run of kept messages once more, as if they had come one after the other: for the release
// from quarantine and for the remap of dead letters. Pure: it reads and writes nothing.
//
// The mapper has a memory of its own and everything in it is closed at the end, since values of last week must not
// meet those that arrive now, and what is taken must be payloads in the very write that takes it. So a run must not
// end in the middle of what belongs together: where a record is open at the end and more messages follow, the run
// is cut before the first message of that record.
//
//   m m m m m m | m m          of the values behind the bar the record is not whole yet: they go with the next run

import { assertNever } from '../std/assert.ts'
import { envelopeOf, type Envelope, type KeptMessage, type Message } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Applied, MapResult, Mapper } from '../mapping/mapping.ts'
import { keptFor, messageOf } from './kept-message.ts'
import { mapperFailed } from './mapper-failed.ts'

export type Entry = { id: string; envelope: Envelope }

/** What cannot be mapped. `id` is null for a record that was made of several messages. */
export type Refused = {
  id: string | null
  source: string | null
  device: string | null
  reason: string
  detail: string
  envelope: Envelope
}

export type Again = {
  /** Entries that this is about, from the first on. */
  entries: number
  /** Those that became something: payloads, a part of a payload, nothing on purpose, or kept elsewhere. */
  gone: string[]
  payloads: MappedPayload[]
  keep: KeptMessage[]
  /** Messages by the reason why they became nothing on purpose, keyed as `source|reason`. */
  ignored: Map<string, number>
  refused: Refused[]
}

export type AgainOptions = {
  /** Messages follow: the run may be cut. */
  more: boolean
  /** Where all of it belongs to one record that is not whole yet, more of them can be had. */
  mayGrow: boolean
}

/** Payloads of one run, in characters; then it ends where nothing is open. */
const payloadLengthMax = 1024 * 1024
/** Never reached by what is closed in one run. */
const closingsMax = 10_000

/** Null where more of the messages that follow are needed. `open` gives a mapper that remembers nothing. */
export function mapAgain(
  open: () => Mapper,
  entries: readonly Entry[],
  { more, mayGrow }: AgainOptions,
): Again | null {
  const all = run(open(), entries)
  const follows = more || all.again.entries < entries.length
  if (!follows || all.openParts === 0) return all.again
  if (all.cleanCut > 0) return run(open(), entries.slice(0, all.cleanCut)).again
  return mayGrow ? null : all.again
}

type Run = {
  again: Again
  /** Messages that were open before everything was closed. */
  openParts: number
  /** Before this entry nothing was open that a later one belongs to; 0 where there is no such place. */
  cleanCut: number
}

function run(mapper: Mapper, entries: readonly Entry[]): Run {
  const again: Again = { entries: 0, gone: [], payloads: [], keep: [], ignored: new Map(), refused: [] }
  let cleanCut = 0
  let length = 0
  for (const { id, envelope } of entries) {
    const message = messageOf(envelope)
    const over = mapper.tick(message.arrivedAt)
    if (over !== null) close(over)
    const isPart = place(mapOnce(mapper, message), id, envelope)
    if (mapper.openParts() <= (isPart ? 1 : 0)) cleanCut = again.entries
    again.entries += 1
    if (length > payloadLengthMax && mapper.openParts() === 0) break
  }
  const openParts = mapper.openParts()
  for (let count = 0; count < closingsMax; count += 1) {
    const over = mapper.tick(Number.POSITIVE_INFINITY)
    if (over === null) break
    close(over)
  }
  return { again, openParts, cleanCut }

  function place(result: MapResult, id: string, envelope: Envelope): boolean {
    if (result.kind === 'unmappable') {
      const { source, device, reason, detail } = result
      again.refused.push({ id, source, device, reason, detail, envelope })
      return false
    }
    again.gone.push(id)
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
        again.keep.push(keptFor(result, envelope))
        return false
      default:
        return assertNever(result)
    }
  }

  /** Its writes are of a memory that ends with this run. */
  function close({ payloads, dropped }: Applied): void {
    add(payloads)
    for (const one of dropped) {
      if (one.kind === 'ignored') {
        ignore(one.source, one.reason, one.messages)
        continue
      }
      const { kind, source, provider, device, reason, detail, message } = one
      const envelope = envelopeOf(message, source)
      if (kind === 'quarantined' && provider !== null)
        again.keep.push({ shelf: `quarantine:${provider}`, provider, device, reason, detail, envelope })
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

function mapOnce(mapper: Mapper, message: Message): MapResult {
  try {
    return mapper.map(message, false)
  } catch (error) {
    return mapperFailed(message, error)
  }
}
