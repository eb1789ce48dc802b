// source-fields.ts: the fields of one source: which its devices have, and which are lost (lost-fields.ts).

import type { Emit } from '../../domain/event.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { RecordContext } from '../types.ts'
import {
  column,
  columns,
  commonGap,
  deviceRow,
  devicesShare,
  familyAt,
  storedOf,
  takeNumbers,
  type LostField,
  type StoredField,
  type StoredSource,
} from './device-fields.ts'
import { beginEpoch, hadBy, noteHas, noteLacks, weightOfOneMax, type FieldWeight } from './field-weight.ts'
import type { WatchedFields } from './watched-fields.ts'

export type NotedRecord = Pick<
  RecordContext,
  'present' | 'judged' | 'arrivedAt' | 'record' | 'root' | 'up' | 'captures'
>

export type WatchedDevice = { readonly device: string; readonly family: number }

export type SourceFields = {
  /** Whether the record lacks nothing that the device had. */
  note(device: WatchedDevice, record: NotedRecord): boolean
  /** A field is lost, or missing in records of devices that had it. */
  isSuspect(): boolean
  /** Fields that are lost and kept. */
  lostBits(): number
  isLost(field: string): boolean
  /** Grows with each change that a restart must not lose. */
  changes(): number
  hasSince(field: string, since: EpochMs): boolean
  /** Whether this is the source under another name. */
  succeeds(stored: StoredSource): boolean
  /** Goes on with what was known before. */
  adopt(stored: StoredSource): void
  stored(devicesMax?: number): StoredSource
}

export type SourceOptions = {
  source: string
  fields: WatchedFields
  begunAt: EpochMs
  devicesMax: number
  /** A record of a device beyond those. */
  beyond: () => void
}

type FieldState = FieldWeight & StoredField & { readonly index: number; readonly at: number }

const weightByMapping = 8
const weightOtherwise = 20
const devicesOtherwise = 5
/** Up to it nearly every record has the field. */
const usualGap = 2
/** Where all places are taken, a new device gets that of one that was silent for so long. */
const silentMs = 86_400_000
const unreadMax = 64
const unreadEveryMs = 600_000
/** Of so many records at first, and of one every ten minutes then, the unread keys are noted. */
const firstLooks = 64
const activeMs = 3_600_000
const lookEveryMs = 10_000
const givenUpAfterMs = 7 * 86_400_000

export function createSourceFields({ emit }: { emit: Emit }, options: SourceOptions): SourceFields {
  const { source, fields, begunAt, devicesMax, beyond } = options
  const states = statesOf(fields)
  const devices = new Map<string, Float64Array>()
  /** By field, where devices have other names than before. */
  const commonGaps: number[] = []
  /** Keys that nothing read while no field was missing, and when they were noted last. */
  const unread = new Set<string>()
  let unreadAt: EpochMs | null = null
  let looks = 0
  let lookedAt: EpochMs = 0
  let lostBits = 0
  let isSuspect = false
  let changes = 0
  return {
    note,
    isSuspect: () => isSuspect,
    lostBits: () => lostBits,
    isLost: (field) => states.some(({ name, lost }) => name === field && lost !== null),
    changes: () => changes,
    hasSince: (field, since) =>
      states.some(({ name, lastPresentAt }) => name === field && lastPresentAt > since),
    succeeds: ({ topics }) => topics === fields.topics,
    adopt,
    stored: (most) => storedOf(source, { fields, unread, states, devices }, most),
  }

  function note({ device, family }: WatchedDevice, record: NotedRecord): boolean {
    const { present, judged, arrivedAt } = record
    const row = rowOf(device, arrivedAt)
    if (row === null) return true
    row[row.length - 1] = arrivedAt
    if (row[familyAt(row)] !== family) changeFamily(row, family)
    let isUsual = true
    let isTypical = true
    isSuspect = false
    for (let index = 0; index < states.length; index += 1) {
      const field = states[index]!
      const bit = 1 << index
      if ((present & judged & bit) !== 0) has(field, row, arrivedAt)
      else if ((judged & bit) !== 0 && noteLacks(field, row, field.at)) {
        isUsual = false
        isTypical &&= row[field.at + column.gap]! > usualGap
        judge(field, record)
      }
      isSuspect ||= field.weight >= 1 || field.lost !== null
    }
    const isDue = looks < firstLooks || Math.abs(arrivedAt - (unreadAt ?? 0)) >= unreadEveryMs
    if (isTypical && isDue) noteUnread(record)
    return isUsual
  }

  function rowOf(device: string, arrivedAt: EpochMs): Float64Array | null {
    const known = devices.get(device)
    if (known !== undefined) return known
    if (devices.size >= devicesMax && !makesRoom(devices, arrivedAt)) {
      beyond()
      return null
    }
    const row = deviceRow(states.length)
    for (const { at, index, lastPresentAt } of states)
      if (lastPresentAt < begunAt) row[at + column.gap] = commonGaps[index] ?? 0
    devices.set(device, row)
    changes += 1
    return row
  }

  /** Other fields of the mapping are those of the device now. */
  function changeFamily(row: Float64Array, family: number): void {
    const isKnown = row[familyAt(row)] !== -1
    row[familyAt(row)] = family
    for (const field of states)
      if (isKnown && (fields.familyBits & (1 << field.index)) !== 0) field.changedAt = begunAt
  }

  function has(field: FieldState, row: Float64Array, arrivedAt: EpochMs): void {
    if (row[field.at + column.gap] === 0 || field.lastPresentAt < (field.changedAt ?? 0)) changes += 1
    noteHas(field, row, field.at)
    field.lastPresentAt = arrivedAt
    if (field.lost !== null) end(field)
  }

  function judge(field: FieldState, record: NotedRecord): void {
    const { arrivedAt } = record
    if (field.lost !== null) {
      if (Math.abs(arrivedAt - field.lost.since) > givenUpAfterMs) giveUp(field)
      return
    }
    if (field.weight < weightOfOneMax) return
    const { changedAt, lastPresentAt, lacking } = field
    const isByMapping = changedAt !== null && lastPresentAt < changedAt
    if (isByMapping && (field.weight >= weightByMapping || hadBy(devices.values(), field, 2) === 1)) {
      const key = fields.keyNear(field.index, fields.unread(record))
      lose(field, { since: changedAt, devices: lacking, key, isByMapping })
      return
    }
    if (field.weight < weightOtherwise || lacking < devicesOtherwise) return
    if (unreadAt === null || unread.size >= unreadMax || Math.abs(arrivedAt - lookedAt) < lookEveryMs) return
    lookedAt = arrivedAt
    if (lacking < devicesShare * hadBy(devices.values(), field, Infinity, arrivedAt - activeMs)) return
    const appeared = fields.unread(record).filter((key) => !unread.has(key))
    const renamed = fields.keyNear(field.index, appeared)
    const key = renamed ?? fields.changedPath(field.index, record)
    const isKeyRead = renamed === null
    if (key !== null) lose(field, { since: lastPresentAt, devices: lacking, key, isByMapping, isKeyRead })
  }

  function noteUnread(record: NotedRecord): void {
    unreadAt = record.arrivedAt
    looks += 1
    for (const key of fields.unread(record)) if (unread.size < unreadMax) unread.add(key)
  }

  function lose(field: FieldState, lost: LostField): void {
    setLost(field, lost)
    const { name } = field
    const of = Math.max(lost.devices, hadBy(devices.values(), field, Infinity))
    const isKept = (fields.bitsOf([name]) & fields.keptBits) !== 0
    const { isKeyRead = false } = lost
    emit({ kind: 'field_lost', source, field: name, ...lost, isKeyRead, of, isKept })
  }

  function end(field: FieldState): void {
    setLost(field, null)
    emit({ kind: 'field_found', source, field: field.name })
  }

  function giveUp(field: FieldState): void {
    for (const row of devices.values()) row[field.at + column.gap] = 0
    beginEpoch(field)
    end(field)
  }

  function setLost(field: FieldState, lost: LostField | null): void {
    field.lost = lost
    changes += 1
    const names = states.filter((one) => one.lost !== null).map(({ name }) => name)
    lostBits = fields.bitsOf(names) & fields.keptBits
  }

  function adopt(stored: StoredSource): void {
    for (const key of stored.unread) if (unread.size < unreadMax) unread.add(key)
    for (const [index, field] of states.entries()) {
      const from = stored.fields.findIndex(({ name }) => name === field.name)
      const before = stored.fields[from]
      if (before === undefined) continue
      field.changedAt ??= before.fingerprint === field.fingerprint ? before.changedAt : begunAt
      const isRenamed = stored.device !== undefined && stored.device !== fields.device
      if (isRenamed) commonGaps[index] = commonGap(stored, from)
      for (const [device, numbers] of isRenamed ? [] : stored.devices) {
        const row = rowOf(device, begunAt)
        if (row === null) continue
        takeNumbers(row, index, numbers, from)
        row[familyAt(row)] = numbers[2 * stored.fields.length] ?? -1
        // When it was heard is not known; it keeps its place as if it had been heard now.
        row[row.length - 1] ||= begunAt
      }
      if (field.lastPresentAt > 0) continue
      field.lastPresentAt = before.lastPresentAt
      if (before.lost !== null) lose(field, before.lost)
    }
  }
}

function statesOf({ names, fingerprints, gapsMin }: WatchedFields): readonly FieldState[] {
  return names.map((name, index) => ({
    name,
    index,
    at: index * columns,
    fingerprint: fingerprints[index]!,
    gapMin: gapsMin[index]!,
    changedAt: null,
    epoch: 0,
    weight: 0,
    lacking: 0,
    lastPresentAt: 0,
    lost: null,
  }))
}

/**
 * Removes the first device of the map if it was silent for a day. Otherwise it moves to the end of the map
 * and stays, so that invented names cannot replace devices that send.
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
