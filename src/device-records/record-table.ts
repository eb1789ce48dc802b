// record-table.ts: the records in memory. The numbers that each message changes are in one flat array with a
// row for each device, so that a message allocates nothing and costs no look-up: the mapping keeps the record
// with what it knows of the device.
//
//   row   | messages | firstAt | lastAt | ... | the last gaps | hours |       column names below
//
// At `devicesMax` a new device gets the row of one that sent nothing during a whole turn of the clock hand
// (second chance). A device that sent one message only goes first, so a flood of invented names removes
// itself. A device that is not listed never takes the row of a listed one: it gets no record then. Both are
// counted.

import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import { hoursKept, pausesLength } from './row-history.ts'
import { gapsKept } from './rhythm.ts'
import type { DeviceRecord } from './types.ts'

export const column = {
  messages: 0,
  firstAt: 1,
  lastAt: 2,
  mappedAt: 3,
  positionAt: 4,
  positionArrivedAt: 5,
  latitude: 6,
  longitude: 7,
  /** The present hour, its messages, and those of the hour before. */
  hourAt: 8,
  hourCount: 9,
  hourBefore: 10,
  duplicates: 11,
  /** Between positions, the longest usual time of records without one, of sources that map a position. */
  blindUsual: 12,
  /** Number of the last message, so that a list of records counts once. */
  number: 13,
  /** It sent since the hand passed. */
  used: 14,
  gapCount: 15,
  /**
   * Messages in a row that brought nothing new, those with the window key of the one before, and the times
   * of the first and the last one.
   */
  repeats: 16,
  repeatsAlike: 17,
  repeatsFrom: 18,
  repeatedAt: 19,
  /** Number of the last message with a payload. */
  payloadNumber: 20,
  newAt: 21,
  /** The first and the last record without a position since the last one, of such sources; 0 for none. */
  blindFrom: 22,
  blindAt: 23,
  gaps: 24,
} as const

/** Behind the gaps: row-history.ts. */
export const hoursColumn = column.gaps + gapsKept
/** Behind the hours: the pauses. */
export const pausesColumn = hoursColumn + hoursKept
const rowLength = pausesColumn + pausesLength
/** Numbers that are kept over a restart: the first ones. */
export const storedNumbers = column.blindUsual + 1
/** After a turn without a free row, the next one waits for so many attempts. */
const attemptsBetweenTurns = 1000

export type NamedDevice = { readonly device: string; readonly provider: ProviderName }

export type RecordTable = {
  /** Another array after each `add`. */
  numbers(): Float64Array
  size(): number
  find(key: string): DeviceRecord | undefined
  /** Null where there is no row for it. */
  add(named: NamedDevice, isListed: boolean): DeviceRecord | null
  remove(record: DeviceRecord): void
  /** Not where this provider has a record of the device. */
  setProvider(record: DeviceRecord, provider: ProviderName): void
  /** A payload names the asset where `identify` of its source says so. */
  ofAsset(asset: NamedDevice): DeviceRecord | undefined
  /** From now on it is the device of this asset, whichever was before. */
  setAsset(record: DeviceRecord, assetId: string): void
  /** In the order in which they were added. */
  all(): IterableIterator<DeviceRecord>
  counters(): { devices: number; evicted: number; notRecorded: number }
}

/** Usually there is one provider, and the device alone is the key. No name contains a null character. */
export function keyOf({ device, provider }: NamedDevice): string {
  return provider === defaultProvider ? device : `${device}\0${provider}`
}

/** `removed` is called for each record that leaves the table. */
export function createRecordTable(
  { removed = () => undefined }: { removed?: (record: DeviceRecord) => void },
  { devicesMax }: { devicesMax: number },
): RecordTable {
  const byKey = new Map<string, DeviceRecord>()
  /** Where the asset has another name than its device. */
  const byAsset = new Map<string, DeviceRecord>()
  const bySlot: (DeviceRecord | undefined)[] = []
  const freeSlots: number[] = []
  let numbers = new Float64Array(0)
  let hand = 0
  let evicted = 0
  let notRecorded = 0
  let attemptsLeft = 0
  return {
    numbers() {
      return numbers
    },
    size() {
      return byKey.size
    },
    find: (key) => byKey.get(key),
    add,
    remove,
    setProvider,
    ofAsset: (asset) => byAsset.get(keyOf(asset)),
    setAsset,
    all: () => byKey.values(),
    counters: () => ({ devices: byKey.size, evicted, notRecorded }),
  }

  function add({ device, provider }: NamedDevice, isListed: boolean): DeviceRecord | null {
    const slot = slotFor(isListed)
    if (slot === null) {
      notRecorded += 1
      return null
    }
    const base = slot * rowLength
    if (base + rowLength > numbers.length) grow()
    numbers.fill(0, base, base + rowLength)
    const record: DeviceRecord = {
      key: keyOf({ device, provider }),
      device,
      provider,
      base,
      assetId: device,
      isListed,
      isPrivate: false,
      sender: null,
      from: null,
      source: null,
      mutedUntil: null,
      isFixed: false,
      losses: [],
      became: null,
      accepted: null,
      refused: null,
      withheld: [],
      skewMs: null,
      isUndated: false,
      windowKey: '',
      ring: null,
      isDirty: false,
      isStored: false,
      isGone: false,
    }
    byKey.set(record.key, record)
    bySlot[slot] = record
    return record
  }

  function slotFor(isListed: boolean): number | null {
    const free = freeSlots.pop()
    if (free !== undefined) return free
    if (bySlot.length < devicesMax) return bySlot.length
    if (!isListed && attemptsLeft > 0) {
      attemptsLeft -= 1
      return null
    }
    const slot = unusedSlot(isListed)
    if (slot === null) attemptsLeft = attemptsBetweenTurns
    return slot
  }

  /** Two turns find a row that may be taken, or there is none. */
  function unusedSlot(isListed: boolean): number | null {
    for (let step = 0; step < 2 * devicesMax; step += 1) {
      const slot = hand
      const record = bySlot[slot]
      hand = (hand + 1) % devicesMax
      if (record === undefined || (record.isListed && !isListed)) continue
      const used = record.base + column.used
      if (numbers[used] === 0) {
        remove(record)
        evicted += 1
        return freeSlots.pop() ?? null
      }
      numbers[used] = 0
    }
    return null
  }

  function setAsset(record: DeviceRecord, assetId: string): void {
    leaveAsset(record)
    record.assetId = assetId
    if (assetId !== record.device) byAsset.set(assetKey(record), record)
  }

  /** Another device may have its asset by now. */
  function leaveAsset(record: DeviceRecord): void {
    if (byAsset.get(assetKey(record)) === record) byAsset.delete(assetKey(record))
  }

  function setProvider(record: DeviceRecord, provider: ProviderName): void {
    leaveAsset(record)
    byKey.delete(record.key)
    record.provider = provider
    record.key = keyOf(record)
    byKey.set(record.key, record)
    setAsset(record, record.assetId)
  }

  function assetKey({ assetId, provider }: DeviceRecord): string {
    return keyOf({ device: assetId, provider })
  }

  function remove(record: DeviceRecord): void {
    record.isGone = true
    leaveAsset(record)
    removed(record)
    byKey.delete(record.key)
    const slot = record.base / rowLength
    bySlot[slot] = undefined
    freeSlots.push(slot)
  }

  function grow(): void {
    const rows = Math.min(devicesMax, Math.max(64, (numbers.length / rowLength) * 2))
    const larger = new Float64Array(rows * rowLength)
    larger.set(numbers)
    numbers = larger
  }
}
