// lost-fields.ts: notices that a field which the devices of a source had is in none of their messages any
// more: a path was renamed in the mapping, or a firmware names a key otherwise. The entry file of the folder.
//
// Each device has, for each field, the usual number of records from one that has it to the next (`gap`). A
// record without the field weighs 1 / gap, at most 4 for each device, until any device has it again. It is
// lost
//
//   after another mapping   if none had it since, at a weight of 8 (of the only device: 4)
//   otherwise               at a weight of 20 and 5 devices, if a key is there that nothing reads and that
//                           was not there before: a hall without GPS at night is no alarm
//
// A device that lacked the field for long before does not count. A lost field is found again with the first
// record that has it. After a week it is given up: its devices do without it.
//
// While a field is lost, each record without it is kept, too (mapper/sent-in-part.ts), with the names of the
// fields that it was sent with. Mapped again, it gives the others.
//
// What is known goes on over another mapping, and over restarts (device-records/field-records.ts). It has no
// share in any payload.
//
// Bounds: `devicesMax` devices of a source (further ones are counted as `beyond`), 31 fields, 64 unread keys.

import type { Emit } from '../../domain/event.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { RecordContext } from '../types.ts'
import {
  column,
  columns,
  deviceRow,
  storedOf,
  takeNumbers,
  type LostField,
  type StoredField,
  type StoredSource,
} from './device-fields.ts'
import { beginEpoch, hadBy, noteHas, noteLacks, weightOfOneMax, type FieldWeight } from './field-weight.ts'
import { nearestKey, type WatchedFields } from './watched-fields.ts'

export type LostFields = {
  /** For the next mapper. It goes on with what is known from its first record on. */
  watch(sources: readonly WatchedSource[]): FieldWatch
  /** What is known, to go on with after a restart. */
  save(): readonly StoredSource[]
  /** What a process before knew. */
  restore(stored: readonly StoredSource[]): void
  /** Records of devices beyond the bound. */
  beyond(): number
}

export type WatchedSource = { readonly name: string; readonly watched: WatchedFields }

export type FieldWatch = {
  /** The record at hand was read. */
  note(source: string, device: string, context: NotedRecord): void
  /** Fields that are lost, and can be sent later by themselves. */
  lostBits(source: string): number
}

type NotedRecord = Pick<RecordContext, 'present' | 'judged' | 'arrivedAt' | 'record' | 'root' | 'up'>

type FieldState = FieldWeight & StoredField & { readonly at: number }

type SourceState = {
  readonly fields: WatchedFields
  readonly states: readonly FieldState[]
  readonly devices: Map<string, Float64Array>
  readonly begunAt: EpochMs
  /** Keys that nothing read while no field was missing. */
  readonly unread: Set<string>
  /** When they were noted last; null before. */
  unreadAt: EpochMs | null
  lookedAt: EpochMs
  lostBits: number
}

const weightByMapping = 8
const weightOtherwise = 20
const devicesOtherwise = 5
/** Up to it nearly every record has the field. */
const usualGap = 2
/** A device that was not heard for so long makes room for another one. */
const silentMs = 3_600_000
const unreadMax = 64
const unreadEveryMs = 600_000
const lookEveryMs = 10_000
const givenUpAfterMs = 7 * 86_400_000

export function createLostFields({ emit }: { emit: Emit }, { devicesMax = 2048 } = {}): LostFields {
  let sources = new Map<string, SourceState>()
  let current: FieldWatch | null = null
  /** Until the first record. */
  let known: readonly StoredSource[] = []
  let beyond = 0
  return { watch, save, restore, beyond: () => beyond }

  function watch(next: readonly WatchedSource[]): FieldWatch {
    const own: FieldWatch = {
      note(source, device, record) {
        if (current !== own) takeOver(next, own, record.arrivedAt)
        const state = sources.get(source)
        if (state !== undefined) note(source, state, device, record)
      },
      lostBits: (source) => (current === own ? (sources.get(source)?.lostBits ?? 0) : 0),
    }
    return own
  }

  function takeOver(next: readonly WatchedSource[], own: FieldWatch, at: EpochMs): void {
    const before =
      current === null ? known : [...sources].map(([name, state]) => storedOf(name, state, Infinity))
    current = own
    sources = new Map(next.map(({ name, watched }) => [name, newState(watched, at)]))
    restore(before)
    for (const { name: source, fields } of before)
      for (const { name, lost } of fields)
        if (lost !== null && !isLostIn(sources.get(source), name)) reportFound(source, name)
  }

  // ------------------------------------------------------------------ records

  function note(source: string, state: SourceState, device: string, record: NotedRecord): void {
    const { present, judged, arrivedAt } = record
    const row = rowOf(state, device, arrivedAt)
    if (row === null) return
    row[row.length - 1] = arrivedAt
    let isTypical = true
    for (let index = 0; index < state.states.length; index += 1) {
      const field = state.states[index]!
      const bit = 1 << index
      if ((judged & bit) === 0) continue
      if ((present & bit) !== 0) has(source, state, field, { row, arrivedAt })
      else if (noteLacks(field, row, field.at)) {
        isTypical &&= row[field.at + column.gap]! > usualGap
        judge(source, state, field, record)
      }
    }
    if (isTypical && Math.abs(arrivedAt - (state.unreadAt ?? 0)) >= unreadEveryMs) noteUnread(state, record)
  }

  function rowOf({ devices, states }: SourceState, device: string, arrivedAt: EpochMs): Float64Array | null {
    const known = devices.get(device)
    if (known !== undefined) return known
    if (devices.size >= devicesMax && !makesRoom(devices, arrivedAt)) {
      beyond += 1
      return null
    }
    const row = deviceRow(states.length)
    devices.set(device, row)
    return row
  }

  function has(
    source: string,
    state: SourceState,
    field: FieldState,
    { row, arrivedAt }: { row: Float64Array; arrivedAt: EpochMs },
  ): void {
    noteHas(field, row, field.at)
    field.lastPresentAt = arrivedAt
    if (field.lost === null) return
    setLost(state, field, null)
    reportFound(source, field.name)
  }

  function judge(source: string, state: SourceState, field: FieldState, record: NotedRecord): void {
    const { arrivedAt } = record
    if (field.lost !== null) {
      if (Math.abs(arrivedAt - field.lost.since) > givenUpAfterMs) giveUp(source, state, field)
      return
    }
    if (field.weight < weightOfOneMax) return
    const { changedAt } = field
    const isByMapping = changedAt !== null && field.lastPresentAt < changedAt
    if (isByMapping && (field.weight >= weightByMapping || hadBy(state.devices.values(), field, 2) === 1)) {
      const key = nearestKey(field.name, unreadOf(state, record))
      lose(source, state, field, { since: changedAt, devices: field.lacking, key, isByMapping })
      return
    }
    if (field.weight < weightOtherwise || field.lacking < devicesOtherwise) return
    if (state.unreadAt === null || Math.abs(arrivedAt - state.lookedAt) < lookEveryMs) return
    state.lookedAt = arrivedAt
    const appeared = unreadOf(state, record).filter((key) => !state.unread.has(key))
    const key = nearestKey(field.name, appeared)
    if (key === null || state.unread.size >= unreadMax) return
    const { lastPresentAt: since, lacking: devices } = field
    lose(source, state, field, { since, devices, key, isByMapping })
  }

  function lose(source: string, state: SourceState, field: FieldState, lost: LostField): void {
    setLost(state, field, lost)
    report(source, state, field, lost)
  }

  function giveUp(source: string, state: SourceState, field: FieldState): void {
    for (const row of state.devices.values()) row[field.at + column.gap] = 0
    beginEpoch(field)
    setLost(state, field, null)
    reportFound(source, field.name)
  }

  function setLost(state: SourceState, field: FieldState, lost: LostField | null): void {
    field.lost = lost
    const names = state.states.filter((one) => one.lost !== null).map(({ name }) => name)
    state.lostBits = state.fields.bitsOf(names) & state.fields.keptBits
  }

  // ------------------------------------------------------------------ unread keys

  function unreadOf({ fields }: SourceState, record: NotedRecord): readonly string[] {
    return fields.unread(record)?.keys ?? []
  }

  function noteUnread(state: SourceState, record: NotedRecord): void {
    state.unreadAt = record.arrivedAt
    for (const key of unreadOf(state, record)) if (state.unread.size < unreadMax) state.unread.add(key)
  }

  // ------------------------------------------------------------------ events

  function report(source: string, state: SourceState, field: FieldState, lost: LostField): void {
    const of = Math.max(lost.devices, hadBy(state.devices.values(), field, Infinity))
    const isKept = (state.fields.bitsOf([field.name]) & state.fields.keptBits) !== 0
    const { since, devices, key, isByMapping } = lost
    emit({ kind: 'field_lost', source, field: field.name, since, devices, of, key, isByMapping, isKept })
  }

  function reportFound(source: string, field: string): void {
    emit({ kind: 'field_found', source, field })
  }

  // ------------------------------------------------------------------ from before

  function save(): readonly StoredSource[] {
    return [...sources].map(([name, state]) => storedOf(name, state))
  }

  function restore(stored: readonly StoredSource[]): void {
    if (current === null) known = stored
    for (const one of stored) {
      const state = sources.get(one.name)
      if (state !== undefined) adopt(one.name, state, one)
    }
  }

  function adopt(source: string, state: SourceState, stored: StoredSource): void {
    for (const key of stored.unread) if (state.unread.size < unreadMax) state.unread.add(key)
    for (const [index, field] of state.states.entries()) {
      const from = stored.fields.findIndex(({ name }) => name === field.name)
      const before = stored.fields[from]
      if (before === undefined) continue
      field.changedAt ??= before.fingerprint === field.fingerprint ? before.changedAt : state.begunAt
      for (const [device, numbers] of stored.devices) {
        const row = rowOf(state, device, state.begunAt)
        if (row !== null) takeNumbers(row, index, numbers, from)
      }
      if (field.lastPresentAt > 0) continue
      field.lastPresentAt = before.lastPresentAt
      if (before.lost !== null) lose(source, state, field, before.lost)
    }
  }
}

function newState(fields: WatchedFields, begunAt: EpochMs): SourceState {
  const states = fields.names.map((name, index): FieldState => ({
    name,
    at: index * columns,
    fingerprint: fields.fingerprints[index]!,
    changedAt: null,
    epoch: 0,
    weight: 0,
    lacking: 0,
    lastPresentAt: 0,
    lost: null,
  }))
  return {
    fields,
    states,
    devices: new Map(),
    begunAt,
    unread: new Set(),
    unreadAt: null,
    lookedAt: 0,
    lostBits: 0,
  }
}

/**
 * The first device of the map goes where it was not heard for an hour. Else it goes to the end, and nobody
 * makes room: names that are invented do not replace devices that send.
 */
function makesRoom(devices: Map<string, Float64Array>, now: EpochMs): boolean {
  const [first] = devices
  if (first === undefined) return false
  const [device, row] = first
  devices.delete(device)
  const isSilent = Math.abs(now - row.at(-1)!) > silentMs
  if (!isSilent) devices.set(device, row)
  return isSilent
}

function isLostIn(state: SourceState | undefined, name: string): boolean {
  return state?.states.some((field) => field.name === name && field.lost !== null) === true
}
