// slice-result.ts: collects the results of a slice of kept messages, message by message, and makes the
// exchange that replaces the slice by them.

import { assertNever } from '../../std/assert.ts'
import type { DeadLetterStore } from '../../domain/dead-letter.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import { envelopeOf, type Envelope, type KeptMessage, type RecordMark } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { KeptResult, MapResult, StateChanges } from '../../mapping/mapping.ts'
import type { Spool } from '../../spool/spool.ts'
import type { KeptSpool, ReleaseOrder } from '../types.ts'
import { deadLetterFor, keptBehind, keptOf, unmappedStoreOf, quarantineFor } from './kept-message.ts'
import { deviceBefore } from './release-order.ts'

/** A kept message; `id` is that of its entry in the spool. */
export type RemapEntry = { id: string; envelope: Envelope }

/**
 * A message, or records of it, that cannot be mapped. `id` is null for a record that was made of several
 * messages, and for records of an entry of which others continue.
 */
export type RefusedMessage = {
  id: string | null
  source: string | null
  device: string | null
  devices?: readonly string[]
  reason: string
  detail: string
  store: DeadLetterStore
  envelope: Envelope
  records?: readonly RecordMark[]
}

export type SliceResult = {
  /** Number of entries that it covers, from the first on. */
  entries: number
  /**
   * Ids of the entries that became payloads, a part of a payload, nothing on purpose, or are kept elsewhere.
   */
  taken: string[]
  payloads: MappedPayload[]
  /** Length of the payloads' JSON, in characters. */
  payloadLength: number
  keptMessages: KeptMessage[]
  /** Messages that the config ignores, keyed `source|reason`. */
  ignored: Map<string, number>
  refused: RefusedMessage[]
}

export function newSliceResult(): SliceResult {
  return {
    entries: 0,
    taken: [],
    payloads: [],
    payloadLength: 0,
    keptMessages: [],
    ignored: new Map(),
    refused: [],
  }
}

/** Adds what became of one entry; true where it is a part that the caller must apply. */
export function addResult(
  slice: SliceResult,
  result: MapResult,
  { id, envelope }: RemapEntry,
  releaseOrder?: ReleaseOrder,
): boolean {
  slice.entries += 1
  const { rest = [] } = result
  if (result.kind === 'unmappable' && rest.every(({ kind }) => kind === 'unmappable')) {
    for (const one of keptOf(result)) addKept(slice, one, { id, envelope })
    return false
  }
  slice.taken.push(id)
  const before = releaseOrder === undefined ? null : deviceBefore(result, releaseOrder)
  if (before !== null) {
    releaseOrder?.addBehind(before.device)
    slice.keptMessages.push(keptBehind(before, envelope))
    return false
  }
  for (const one of rest) addKept(slice, one, { id: null, envelope })
  switch (result.kind) {
    case 'payloads':
      addPayloads(slice, result.payloads)
      return false
    case 'ignored':
      ignore(slice, result.source, result.reason, 1)
      return false
    case 'part':
      return true
    case 'quarantined':
    case 'unmappable':
      addKept(slice, result, { id: null, envelope })
      return false
    default:
      return assertNever(result)
  }
}

function addKept(
  slice: SliceResult,
  result: KeptResult,
  { id, envelope }: { id: string | null; envelope: Envelope },
): void {
  if (result.kind === 'quarantined') {
    slice.keptMessages.push(quarantineFor(result, envelope))
    return
  }
  const { source, device, devices, reason, detail, records } = result
  const refused = { id, source, device, reason, detail, store: unmappedStoreOf(result), envelope }
  slice.refused.push({ ...refused, ...(records && { records }), ...(devices && { devices }) })
}

/** Adds what closed. Its state is not stored: it ends with the slice. */
export function addClosed(slice: SliceResult, { payloads, unsent }: StateChanges): void {
  addPayloads(slice, payloads)
  for (const part of unsent) {
    if (part.kind === 'ignored') {
      ignore(slice, part.source, part.reason, part.messages)
      continue
    }
    const { kind, source, provider, device, reason, detail } = part
    const envelope = envelopeOf(part.message, source)
    if (kind === 'quarantined' && provider !== null)
      slice.keptMessages.push(quarantineFor({ ...part, provider }, envelope))
    else
      slice.refused.push({ id: null, source, device, reason, detail, store: 'part_dead_letters', envelope })
  }
}

function addPayloads(slice: SliceResult, payloads: readonly MappedPayload[]): void {
  for (const payload of payloads) {
    slice.payloads.push(payload)
    slice.payloadLength += payload.json.length
  }
}

function ignore({ ignored }: SliceResult, source: string, reason: string, messages: number): void {
  const key = `${source}|${reason}`
  ignored.set(key, (ignored.get(key) ?? 0) + messages)
}

export type SliceTarget = { spool: Pick<Spool, 'exchange'>; mapped?: ((device: string) => void) | undefined }

/** What all work on kept messages needs. `mapped`: a kept message of this device became payloads. */
export type KeptWorkDeps = Pick<SliceTarget, 'mapped'> & {
  spool: KeptSpool
  clock: Clock
  ourTime: OurTime
  emit: Emit
}

/** Messages that left their shelves, payloads of them that were stored, and those that were stored before. */
export type Settled = { taken: number; payloads: number; duplicates: number }

/**
 * Takes the messages off their shelves in the write that adds what they became; what cannot be mapped becomes
 * a dead letter. Resolves when the write is durable.
 */
export async function exchangeSlice(
  { spool, mapped }: SliceTarget,
  { taken, payloads, keptMessages, refused }: SliceResult,
  at: EpochMs,
): Promise<Settled> {
  const dead = refused.flatMap(({ id }) => id ?? [])
  const take = [...new Set([...taken, ...dead])]
  const deadLetters = refused.map((one) => deadLetterFor(one, one.envelope, at))
  const { duplicates } = await spool.exchange({
    take,
    payloads,
    areMapped: true,
    deadLetters,
    keptMessages,
    stateChanges: [],
  })
  if (mapped !== undefined) for (const device of new Set(payloads.map((one) => one.device))) mapped(device)
  return { taken: take.length, payloads: payloads.length - duplicates, duplicates }
}
