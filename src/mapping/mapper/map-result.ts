// map-result.ts: makes the results of messages, and of single records of a message, without a payload.
//
// All records of a message that go to one place for one reason are one entry, with the message whole and a
// mark for each of them: 3,000 bad records are not 3,000 copies of the message.

import { hash } from 'node:crypto'
import type { Message, RecordMark } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { messageKeyOf } from '../identity.ts'
import type { QuarantineReason } from '../reasons.ts'
import type { Taken } from '../state/state.ts'
import type { KeptResult, MapResult, Rejection } from '../types.ts'
import type { CompiledSource } from './compiled-source.ts'

export function ignored(source: CompiledSource, reason: string): MapResult {
  return { kind: 'ignored', source: source.name, reason }
}

/** Its time is not read: a message without one would be refused where the source requires it. */
export function unlisted(
  { device }: DeviceEntry,
  { time }: CompiledSource,
): KeptBecause & { reason: QuarantineReason } {
  const detail = `The device ${quote(device, 80)} is not in the device table.`
  return { reason: 'UNKNOWN_DEVICE', detail, isTimed: time !== null && !time.orArrival }
}

type KeptBecause = { detail: string; isTimed?: boolean }

export function quarantined(
  message: Message,
  source: CompiledSource,
  { device, provider }: DeviceEntry,
  { reason, detail, isTimed = false }: KeptBecause & { reason: QuarantineReason },
): MapResult {
  const windowKey = messageKeyOf(message)
  return { kind: 'quarantined', source: source.name, provider, device, reason, detail, windowKey, isTimed }
}

export function unmappable(
  message: Message,
  source: CompiledSource | null,
  entry: DeviceEntry | null,
  reason: string,
  { detail, isTimed = false }: KeptBecause,
): MapResult {
  return {
    kind: 'unmappable',
    source: source?.name ?? null,
    device: entry?.device ?? null,
    reason,
    detail,
    windowKey: messageKeyOf(message),
    isTimed,
  }
}

/** The result of a message whose record was rejected. To ignore or quarantine it needs source and device. */
export function rejected(
  rejection: Rejection,
  message: Message,
  source: CompiledSource | null,
  entry: DeviceEntry | null,
): MapResult {
  switch (rejection.kind) {
    case 'ignored':
      return source === null
        ? unmappable(message, source, entry, 'NO_SOURCE', { detail: rejection.reason })
        : ignored(source, rejection.reason)
    case 'quarantined':
      return source === null || entry === null
        ? unmappable(message, source, entry, rejection.reason, rejection)
        : quarantined(message, source, entry, rejection)
    case 'refused':
    default:
      return unmappable(message, source, entry, rejection.reason, rejection)
  }
}

export function notAnObject({ each }: CompiledSource, value: unknown): string {
  const found = Array.isArray(value) ? 'a list' : value === undefined ? 'nothing' : 'a single value'
  return each
    ? `What \`each\` selects is ${found}, not an object with fields.`
    : `The message is ${found}, not an object with fields.`
}

export type KeptRecords = {
  /** A record is kept. `entry`: its device, where it is known. */
  add(mark: RecordMark, rejection: KeptRejection, entry: DeviceEntry | null): void
  /** What is kept; `main` is what became of the other records, null where there are none. */
  with(main: MapResult | null): MapResult | null
}

export type KeptRejection = Exclude<Rejection, { kind: 'ignored' }>

type Group = { result: KeptResult; marks: RecordMark[]; devices: Set<string | null> }

/** `length`: of the list of records; null for a message that is one record. */
export function createKeptRecords(
  source: CompiledSource,
  message: Message,
  isUnlisted: (source: string | null, device: string | null) => boolean,
  length: number | null,
): KeptRecords {
  const groups = new Map<string, Group>()
  return { add, with: withMain }

  function add(mark: RecordMark, rejection: KeptRejection, entry: DeviceEntry | null): void {
    const device = entry?.device ?? null
    const isQuarantined = rejection.kind === 'quarantined' && entry !== null
    const unlisted = isUnlisted(source.name, device)
    const place = isQuarantined ? entry.provider : String(unlisted)
    const isCopy = mark.sent !== undefined
    const key = JSON.stringify([rejection.kind, rejection.reason, place, isCopy])
    let group = groups.get(key)
    if (group === undefined) {
      const where = length !== null ? `Record ${mark.index + 1} of the message: ` : ''
      const detail = where + rejection.detail
      const result = rejected({ ...rejection, detail }, message, source, entry) as KeptResult
      if (result.kind === 'unmappable') Object.assign(result, { unlisted }, isCopy && { isCopy })
      group = { result, marks: [], devices: new Set() }
      groups.set(key, group)
    }
    const isBroken = rejection.reason === 'NOT_JSON' && source.each === null
    group.marks.push(isBroken ? { ...mark, hash: unreadAmong(length) } : mark)
    if (rejection.isTimed !== true) group.result.isTimed = false
    group.devices.add(device)
  }

  function withMain(main: MapResult | null): MapResult | null {
    if (groups.size === 0) return main
    const kept = [...groups.values()].map(resultOf)
    const [first, ...others] = kept
    if (main !== null) return { ...main, rest: kept }
    return others.length === 0 ? first! : { ...first!, rest: others }
  }
}

function resultOf({ result, marks, devices }: Group): KeptResult {
  const more = marks.length - 1
  const others = more === 1 ? '1 more record' : `${more} more records`
  const detail = more === 0 ? result.detail : `${result.detail} The same applies to ${others}.`
  const names = [...devices].filter((device) => device !== null)
  if (result.kind === 'quarantined')
    return { ...result, detail, records: marks, ...(names.length > 1 && { devices: names }) }
  if (devices.size === 1) return { ...result, detail, records: marks }
  return { ...result, detail, records: marks, device: null, ...(names.length > 0 && { devices: names }) }
}

export function markOf(
  index: number,
  record: unknown,
  { sent, lost }: Pick<RecordMark, 'sent' | 'lost'> = {},
): RecordMark {
  return { index, hash: recordHash(record), ...(sent && { sent }), ...(lost && { lost }) }
}

/** Whether this is the record that was marked. */
export const isMarked = ({ hash: marked }: RecordMark, record: unknown) => recordHash(record) === marked

/** Of a record that could not be read, and may be cured since: it stands at its place of as many. */
export const isUnread = ({ hash: marked }: RecordMark, length: number) => marked === unreadAmong(length)

const unreadAmong = (length: number | null) => `unread of ${length}`

/** 16 hexadecimal digits, of the content of a record as the decoder gave it. */
function recordHash(record: unknown): string {
  return hash('sha256', JSON.stringify(record) ?? '', 'hex').slice(0, 16)
}

export const changedRecord: KeptRejection = {
  kind: 'refused',
  reason: 'RECORD_CHANGED',
  detail:
    'It is not the one that was kept: `each` or `extract` of the source finds another one at its place.',
}

/** What the state made of the one record of a message. */
export function takenOne(
  source: CompiledSource,
  result: Taken,
  message: Message,
  record: { entry: DeviceEntry },
): MapResult {
  const [refused] = result.refused
  if (refused !== undefined) return unmappable(message, source, record.entry, refused.reason, refused)
  return takenResult(source, result, [record]) ?? ignored(source, 'no records')
}

export function takenResult(
  { name: source }: CompiledSource,
  { refused: _refused, ...result }: Taken,
  records: readonly { entry: DeviceEntry }[],
): MapResult | null {
  if (result.kind === 'none') return null
  return result.kind === 'part' ? { ...result, source, records } : { ...result, source }
}
