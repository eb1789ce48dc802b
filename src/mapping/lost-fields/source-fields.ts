// source-fields.ts: the fields of one source: which its devices have, and which are lost (lost-fields.ts).

import type { State } from '../../domain/condition-state.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { Place, RecordContext } from '../types.ts'
import {
  had,
  missingGaps,
  newDevice,
  noteChange,
  noteHas,
  commonGap,
  storedField,
  WatchedDevices,
  type DeviceFields,
  type FieldState,
  type LostField,
  type StoredField,
  type StoredSource,
  type DeviceBounds,
} from './device-fields.ts'
import type { WatchedFields } from './watched-fields.ts'

export type NotedRecord = Place & Pick<RecordContext, 'present' | 'judged' | 'arrivedAt'>

type WatchedField = FieldState & {
  readonly index: number
  /** Since the options changed: the weight of the records without it, and their devices. */
  weight: number
  lacking: number
  /** When the first of the devices that name it otherwise was noticed, and by which key the last one. */
  renamedAt: EpochMs
  renamedKey: string | null
  /** While it is lost: the devices that had it. */
  of: number
  /** Of devices that have other names than before: the gap that they are taken to have. */
  commonGap: number
}

type Deps = DeviceBounds & { begunAt: EpochMs }

const weightByMapping = 8
/** Of one device, however long it lacks the field. */
const weightMax = 4
/** So many gaps without a field, the record is looked at for another name of it, and again later. */
const renamedGaps = 4
const lookAgainGaps = 32
const devicesRenamed = 5
/** Up to it nearly every record has the field. */
const usualGap = 2
const unreadMax = 64
const unreadEveryMs = 600_000
/** Of so many records at first, and of one every ten minutes then, the unread keys are noted. */
const firstLooks = 64
const givenUpAfterMs = 7 * 86_400_000

export class SourceFields {
  /** Grows with each change that a restart must not lose. */
  changes = 0
  readonly #deps: Deps
  readonly #source: string
  readonly #watched: WatchedFields
  readonly #fields: readonly WatchedField[]
  readonly #devices: WatchedDevices
  /** Keys that nothing read while no field was missing, and when they were noted last. */
  readonly #unread = new Set<string>()
  #unreadAt: EpochMs | null = null
  #looks = 0
  /** Fields that are lost and kept. */
  #lostBits = 0

  constructor(deps: Deps, source: string, watched: WatchedFields) {
    this.#deps = deps
    this.#source = source
    this.#watched = watched
    this.#devices = new WatchedDevices(deps, () => this.#newDevice())
    const states = { changedAt: null, lastPresentAt: 0, lost: null }
    const counts = { weight: 0, lacking: 0, renamedAt: 0, renamedKey: null, of: 0, commonGap: 0 }
    this.#fields = watched.names.map((name, index) => {
      return { name, index, fingerprint: watched.fingerprints[index]!, ...states, ...counts }
    })
  }

  note(name: string, family: number, record: NotedRecord): void {
    const { present, judged, arrivedAt } = record
    const device = this.#devices.of(name, arrivedAt)
    if (device === null) return
    device.heardAt = arrivedAt
    if (device.family !== family) this.#changeFamily(device, family)
    else if (isAlike(device, present, judged)) return
    let isTypical = true
    let isWhole = true
    for (const field of this.#fields) {
      const bit = 1 << field.index
      if ((judged & bit) === 0) continue
      if ((present & bit) !== 0) this.#has(field, device, arrivedAt)
      else {
        const gap = device.gaps[field.index]!
        isTypical &&= gap === 0 || gap > usualGap
        isWhole &&= gap === 0
        this.#lacks(field, device, record)
      }
    }
    Object.assign(device, { present, judged, isWhole, alike: 0 })
    const isDue = this.#looks < firstLooks || Math.abs(arrivedAt - (this.#unreadAt ?? 0)) >= unreadEveryMs
    if (isTypical && isDue) this.#noteUnread(record)
  }

  /** The fields that are lost and kept of the records of a device; of others the same as of all. */
  lostBits(name: string | undefined): number {
    const device = name === undefined || this.#lostBits === 0 ? undefined : this.#devices.get(name)
    if (device === undefined) return this.#lostBits
    let bits = this.#lostBits
    for (const { index, lost } of this.#fields)
      if (lost?.isPartial === true && (device.renamed & (1 << index)) === 0) bits &= ~(1 << index)
    return bits
  }

  *states(): Generator<State> {
    for (const { name: field, index, lost, of } of this.#fields) {
      if (lost === null) continue
      const { isKeyRead = false, isPartial: _isPartial, ...found } = lost
      const isKept = (this.#watched.keptBits & (1 << index)) !== 0
      yield { code: 'FIELD_LOST', source: this.#source, field, ...found, isKeyRead, of, isKept }
    }
  }

  /** Whether a field that is not lost was sent since then. */
  hasSince(field: string, since: EpochMs): boolean {
    return this.#fields.some(
      ({ name, lost, lastPresentAt }) => name === field && lost === null && lastPresentAt > since,
    )
  }

  /** Whether this is the source under another name. */
  succeeds({ topics }: StoredSource): boolean {
    return topics === this.#watched.topics
  }

  stored(devicesMax?: number): StoredSource {
    return {
      name: this.#source,
      topics: this.#watched.topics,
      device: this.#watched.device,
      unread: [...this.#unread],
      fields: this.#fields.map(({ name, fingerprint, changedAt, lastPresentAt, lost }) => {
        return { name, fingerprint, changedAt, lastPresentAt, lost }
      }),
      devices: this.#devices.stored(devicesMax),
    }
  }

  /** Goes on with what was known before. */
  adopt(stored: StoredSource): void {
    for (const key of stored.unread)
      if (this.#unread.size < unreadMax && !this.#isOfChanged(stored, key)) this.#unread.add(key)
    const hasOtherNames = stored.device !== undefined && stored.device !== this.#watched.device
    for (const field of this.#fields) {
      const from = stored.fields.findIndex(({ name }) => name === field.name)
      const before = stored.fields[from]
      if (before === undefined) continue
      const isChanged = before.fingerprint !== field.fingerprint
      field.changedAt ??= isChanged ? this.#deps.begunAt : before.changedAt
      const all = stored.devices.map(
        ([name, numbers]) => [name, storedField(numbers, from, stored.fields.length)] as const,
      )
      if (hasOtherNames) field.commonGap = commonGap(all.map(([, one]) => one))
      else for (const [name, one] of all) this.#adoptDevice(field.index, name, one, isChanged)
      // Devices may have been heard before this was read from the disk.
      const isOver = field.lastPresentAt > 0
      field.lastPresentAt = Math.max(field.lastPresentAt, before.lastPresentAt)
      const { lost } = before
      if (lost === null) continue
      const isRenamed = ({ renamed }: DeviceFields) => (renamed & (1 << field.index)) !== 0
      if (lost.isPartial === true ? [...this.#devices.all()].some(isRenamed) : !isOver)
        this.#lose(field, lost)
    }
  }

  /** The mapping before may have read it: it is the name of a field whose options were changed. */
  #isOfChanged({ fields }: StoredSource, key: string): boolean {
    return this.#fields.some(
      ({ name, fingerprint, index }) =>
        fields.some((before) => before.name === name && before.fingerprint !== fingerprint) &&
        this.#watched.keyNear(index, [key]) !== null,
    )
  }

  #adoptDevice(index: number, name: string, stored: StoredField, isChanged: boolean): void {
    const device = this.#devices.of(name, this.#deps.begunAt)
    if (device === null) return
    device.family = stored.family
    // When it was heard is not known; it keeps its place as if it had been heard now.
    device.heardAt ||= this.#deps.begunAt
    if (device.gaps[index]! > 0) return
    device.gaps[index] = stored.gap
    device.runs[index]! += stored.run
    if (stored.isRenamed) device.renamed |= 1 << index
    if (isChanged || stored.isChanged) noteChange(device, index)
  }

  #newDevice(): DeviceFields {
    this.changes += 1
    const device = newDevice(this.#fields.length)
    for (const field of this.#fields) {
      if (field.commonGap === 0 || field.lastPresentAt >= this.#deps.begunAt) continue
      device.gaps[field.index] = field.commonGap
      noteChange(device, field.index)
    }
    return device
  }

  /** Other fields of the mapping are those of the device now. */
  #changeFamily(device: DeviceFields, family: number): void {
    const isKnown = device.family !== -1
    device.family = family
    for (const field of this.#fields) {
      if (!isKnown || (this.#watched.familyBits & (1 << field.index)) === 0) continue
      field.changedAt = this.#deps.begunAt
      noteChange(device, field.index)
    }
  }

  #has(field: WatchedField, device: DeviceFields, arrivedAt: EpochMs): void {
    const { index, lost, renamedKey } = field
    const bit = 1 << index
    const wasRenamed = (device.renamed & bit) !== 0
    if (device.gaps[index] === 0 || field.lastPresentAt < (field.changedAt ?? 0)) this.changes += 1
    noteHas(device, index)
    field.lastPresentAt = arrivedAt
    // Once may be an update that was taken back. A device that has both in turn does so again.
    const isInTurn = wasRenamed && (device.returned & bit) !== 0
    if (wasRenamed) device.returned |= bit
    if (isInTurn && renamedKey !== null && this.#unread.size < unreadMax) this.#unread.add(renamedKey)
    if (lost !== null && (lost.isPartial !== true || wasRenamed)) this.#setLost(field, null)
  }

  #lacks(field: WatchedField, device: DeviceFields, record: NotedRecord): void {
    const { index, changedAt, lost } = field
    const weightBefore = this.#weightOf(field, device)
    device.runs[index]! += 1
    if (device.gaps[index] === 0) return
    if (lost !== null && Math.abs(record.arrivedAt - lost.since) > givenUpAfterMs) return this.#giveUp(field)
    if (changedAt !== null && field.lastPresentAt < changedAt) {
      const weight = this.#weightOf(field, device)
      if (weightBefore === 0 && weight > 0) field.lacking += 1
      field.weight += weight - weightBefore
      const isAlone = () => field.lacking === 1 && this.#devices.countHad(index, 2, changedAt) < 2
      if (field.weight >= weightByMapping || (field.weight >= weightMax && isAlone()))
        this.#loseByMapping(field, changedAt, record)
    } else this.#findOtherName(field, device, record)
  }

  /** Of the records without it since its options changed. */
  #weightOf({ index }: WatchedField, device: DeviceFields): number {
    if (!had(device, index)) return 0
    return Math.min(missingGaps(device, index, this.#watched.gapsMin[index]!), weightMax)
  }

  #loseByMapping(field: WatchedField, since: EpochMs, record: NotedRecord): void {
    if (field.lost !== null && field.lost.isPartial !== true) {
      field.lost.devices = Math.max(field.lost.devices, field.lacking)
      field.of = Math.max(field.of, field.lost.devices)
      return
    }
    const key = this.#watched.keyNear(field.index, this.#watched.unread(record))
    this.#lose(field, { since, devices: field.lacking, key, isByMapping: true })
  }

  /** Marks a device that lacks the field and has a key that is like it, and that was not there before. */
  #findOtherName(field: WatchedField, device: DeviceFields, record: NotedRecord): void {
    const { index, lost } = field
    const bit = 1 << index
    const gaps = missingGaps(device, index, this.#watched.gapsMin[index]!)
    const isDue = gaps === renamedGaps || gaps % lookAgainGaps === 0 || (lost !== null && gaps < renamedGaps)
    if (gaps === 0 || !isDue || (device.renamed & bit) !== 0) return
    if (this.#unreadAt === null || this.#unread.size >= unreadMax) return
    const isNew = (key: string) => !this.#unread.has(key)
    const renamed = this.#watched.keyNear(index, this.#watched.unread(record).filter(isNew))
    const key = renamed ?? this.#watched.changedPath(index, record)
    if (key === null || !isNew(key)) return
    device.renamed |= bit
    this.changes += 1
    const devices = [...this.#devices.all()].filter((one) => (one.renamed & bit) !== 0).length
    if (devices === 1) field.renamedAt = record.arrivedAt
    field.renamedKey = key
    const isByMapping = field.changedAt !== null && (device.changed & bit) !== 0
    const isEnough = lost !== null || devices >= devicesRenamed || isByMapping
    if (!isEnough || (lost !== null && lost.isPartial !== true)) return
    const since = lost?.since ?? (isByMapping ? field.changedAt! : field.renamedAt)
    const found = { since, devices, key, isByMapping: lost?.isByMapping ?? isByMapping }
    this.#lose(field, { ...found, isKeyRead: renamed === null, isPartial: true })
  }

  /** What the record lacks, it may name otherwise: others do not have that name besides. */
  #noteUnread(record: NotedRecord): void {
    this.#unreadAt = record.arrivedAt
    this.#looks += 1
    const without = this.#fields.filter(({ index }) => (record.present & (1 << index)) === 0)
    for (const key of this.#watched.unread(record)) {
      const isOther = without.some(({ index }) => this.#watched.keyNear(index, [key]) !== null)
      if (!isOther && this.#unread.size < unreadMax) this.#unread.add(key)
    }
  }

  #lose(field: WatchedField, lost: LostField): void {
    this.#setLost(field, lost)
    field.of = Math.max(lost.devices, this.#devices.countHad(field.index))
  }

  /** The devices that lack it do without it. */
  #giveUp(field: WatchedField): void {
    const bit = 1 << field.index
    for (const device of this.#devices.all()) {
      if (field.lost?.isPartial === true && (device.renamed & bit) === 0) continue
      device.gaps[field.index] = 0
      device.renamed &= ~bit
    }
    field.weight = 0
    field.lacking = 0
    this.#setLost(field, null)
  }

  #setLost(field: WatchedField, lost: LostField | null): void {
    field.lost = lost
    this.changes += 1
    const bits = this.#fields.reduce((sum, one) => (one.lost === null ? sum : sum | (1 << one.index)), 0)
    this.#lostBits = bits & this.#watched.keptBits
  }
}

/** Most records lack nothing and are like the one before: of so many one is looked at. */
const alikeMax = 15

function isAlike(device: DeviceFields, present: number, judged: number): boolean {
  if (!device.isWhole || device.present !== present || device.judged !== judged) return false
  if (device.alike >= alikeMax) return false
  device.alike += 1
  return true
}
