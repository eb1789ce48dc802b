// map-result.ts: makes the results of messages, and of single records of a message, without a payload.
//
// All records of a message that go to one place for one reason are one entry, with the message whole and a
// mark for each of them: 3,000 bad records are not 3,000 copies of the message.

import { hash } from 'node:crypto'
import type { Message, RecordMark } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { messageKeyOf } from '../identity.ts'
import type { KeptResult, MapResult, Place, Rejection } from '../types.ts'
import { findUnread, unreadText } from '../path/unread-keys.ts'

export type KeptRejection = Exclude<Rejection, { kind: 'ignored' }>

export function ignored(source: Pick<SourcePlan, 'name'>, reason: string): MapResult {
  return { kind: 'ignored', source: source.name, reason }
}

/** Its time is not read: a message without one would be refused where the source requires it. */
export function unlisted({ device }: DeviceEntry, { time }: SourcePlan): KeptRejection {
  const detail = `The device ${quote(device, 80)} is not in the device table.`
  return { kind: 'quarantined', reason: 'UNKNOWN_DEVICE', detail, isTimed: time !== null && !time.orArrival }
}

/** The result of a message whose record was rejected. To ignore or quarantine it needs source and device. */
export function rejectedAs(
  rejection: Rejection,
  message: Message,
  source: Pick<SourcePlan, 'name'> | null,
  device: string | null,
  entry: DeviceEntry | null = null,
): MapResult {
  if (rejection.kind === 'ignored' && source !== null) return ignored(source, rejection.reason)
  const windowKey = messageKeyOf(message)
  if (rejection.kind === 'ignored') {
    const { reason: detail } = rejection
    return { kind: 'unmappable', source: null, device, reason: 'NO_SOURCE', detail, windowKey }
  }
  const { kind, reason, detail, isTimed = false } = rejection
  if (kind === 'refused' || source === null || entry === null)
    return { kind: 'unmappable', source: source?.name ?? null, device, reason, detail, windowKey, isTimed }
  const { provider } = entry
  return { kind, source: source.name, provider, device: entry.device, reason, detail, windowKey, isTimed }
}

export function rejected(
  rejection: Rejection,
  message: Message,
  source: SourcePlan | null,
  entry: DeviceEntry | null,
): MapResult {
  return rejectedAs(rejection, message, source, entry?.device ?? null, entry)
}

export function notAnObject({ each }: SourcePlan, value: unknown): string {
  const found = Array.isArray(value) ? 'a list' : value === undefined ? 'nothing' : 'a single value'
  const what = each ? 'What `each` selects' : 'The message'
  return `${what} is ${found}, not an object with fields.`
}

/** The records of a message that are kept, for the reason and in the place of `result`. */
type Group = { result: KeptResult; marks: RecordMark[]; devices: Set<string | null> }

/** The records of one message that are kept. */
export class KeptRecords {
  readonly #groups = new Map<string, Group>()
  readonly #source: SourcePlan
  readonly #message: Message
  readonly #isUnlisted: IsUnlisted
  readonly #length: number | null

  /** `length`: of the list of records; null for a message that is one record. */
  constructor(source: SourcePlan, message: Message, isUnlisted: IsUnlisted, length: number | null) {
    this.#source = source
    this.#message = message
    this.#isUnlisted = isUnlisted
    this.#length = length
  }

  /** A record is kept. `entry`: its device, where it is known. */
  add(mark: RecordMark, rejection: KeptRejection, entry: DeviceEntry | null): void {
    const device = entry?.device ?? null
    const isQuarantined = rejection.kind === 'quarantined' && entry !== null
    const isOfNone = this.#isUnlisted(this.#source.name, device)
    const place = isQuarantined ? entry.provider : String(isOfNone)
    const isCopy = mark.sent !== undefined
    const key = JSON.stringify([rejection.kind, rejection.reason, place, isCopy])
    let group = this.#groups.get(key)
    if (group === undefined) {
      const where = this.#length !== null ? `Record ${mark.index + 1} of the message: ` : ''
      const detail = where + rejection.detail
      const result = rejected({ ...rejection, detail }, this.#message, this.#source, entry) as KeptResult
      if (result.kind === 'unmappable') Object.assign(result, { unlisted: isOfNone }, isCopy && { isCopy })
      group = { result, marks: [], devices: new Set() }
      this.#groups.set(key, group)
    }
    const isBroken = rejection.reason === 'NOT_JSON' && this.#source.each === null
    group.marks.push(isBroken ? { ...mark, hash: unreadAmong(this.#length) } : mark)
    if (rejection.isTimed !== true) group.result.isTimed = false
    group.devices.add(device)
  }

  /** What is kept; `main` is what became of the other records, null where there are none. */
  with(main: MapResult | null): MapResult | null {
    if (this.#groups.size === 0) return main
    const kept = [...this.#groups.values()].map(resultOf)
    const [first, ...others] = kept
    if (main !== null) return { ...main, rest: kept }
    return others.length === 0 ? first! : { ...first!, rest: others }
  }
}

/** Whether dead letters of the device are those of an unlisted one. */
export type IsUnlisted = (source: string | null, device: string | null) => boolean

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

// What a person who reads a dead letter needs beside its reason, where a value was missing:
// the keys of the message that nothing reads, and the model that was looked up.
//
// It is made for refused messages only. Its cost is bounded by `limits`.

const reasons = new Set(['NO_DEVICE', 'NO_TIME', 'HALF_POSITION', 'NOTHING_TO_SEND'])

/** Values of a message that are looked at. A flood of such messages must stay cheap. */
const limits = { visitsMax: 64 }

/** The rejection of the record at hand, with more detail where something was missing. */
export function hintedRejection(
  source: Pick<SourcePlan, 'reads' | 'hasFamilies'>,
  rejection: Rejection,
  place: Place,
  entry: DeviceEntry | null,
): Rejection {
  if (rejection.kind !== 'refused' || !reasons.has(rejection.reason)) return rejection
  const { record: ofRecord, part } = source.reads()
  // A message of a source that collects is refused before its value is.
  const reads = rejection.reason === 'NO_DEVICE' ? (part ?? ofRecord) : ofRecord
  const unread = unreadText(findUnread(reads, place.record, [place], limits))
  const ofModel = source.hasFamilies && rejection.reason === 'NOTHING_TO_SEND' && entry?.family === 0
  const detail = [rejection.detail, unread, ofModel ? modelText(entry) : '']
  return { ...rejection, detail: detail.filter((sentence) => sentence !== '').join(' ') }
}

function modelText({ model }: DeviceEntry): string {
  return model === null
    ? 'The device has no model, and values of the source depend on it.'
    : `The model ${quote(model, 40)} of the device is in no family of the source.`
}
