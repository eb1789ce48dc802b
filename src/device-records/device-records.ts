// device-records.ts: what is known of each device, over restarts and reloads: its messages and their rhythm,
// its last position, what the service answered, and what became nothing and why. Entry file of this folder.
//
// Guarantees
//   A device that sent a message is known by its key, provider and name, until it has sent nothing for
//   `ops.devices.retention`, or until `ops.devices.max` others are known.
//   Nothing depends on the records. They may be lost or damaged, and no message is late.
//
// How they are fed
//   mapper    heard, read, lost      while a message is mapped; the mapping keeps the record with what it
//                                    knows of the device, so there is no look-up
//   intake    payload                whether a payload is new or a duplicate
//   delivery  settled                the entries of a batch, which the sender thread packed for the ledger
//
// How they are kept
//   record-table.ts    in memory: a row of numbers for each device, and a small object
//   recent-messages.ts in memory only: the last messages of each device, in rings (message-ring.ts) of blocks
//                      (message-blocks.ts)
//   record-writer.ts   on the disk: in the database of the ledger, in slices, not synced
//   client-records.ts  the same for what the broker knows of clients; field-records.ts, the mapping of fields
//   hourly-counts.ts   messages of the last 24 hours
//   rhythm.ts          how often a device sends, and whether it is silent
//   repeats.ts         whether its last messages bring nothing new
//
// What can go wrong, and what then happens
//   the process is killed         the changes of the last minute or two are missing
//   the store cannot be used      the records are in memory only; see ledger/records-supervisor.ts
//   too many devices              see record-table.ts; counted

import type { Clock, EpochMs } from '../std/clock.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { Sender, UnnamedMessage } from '../domain/message.ts'
import type { WithheldValue } from '../domain/payload.ts'
import type { RecentMessage } from './message-ring.ts'
import { createRecentMessages } from './recent-messages.ts'
import { createRecordNotes, type RecordNotes } from './record-notes.ts'
import { hourlyCounts } from './hourly-counts.ts'
import { column, createRecordTable, hoursColumn, keyOf } from './record-table.ts'
import { createRecordWriter, type RecordsStore, type WriterOptions } from './record-writer.ts'
import { repeatingOf } from './repeats.ts'
import { gapsKept, isSilent, medianGap, silentAfter } from './rhythm.ts'
import { withheldSum } from './withheld-sum.ts'
import type { DeviceRecord, DeviceRecordView, Loss } from './types.ts'

export type { DeviceRecordView, Loss, Repeating } from './types.ts'
export { createClientRecords, type ClientRecords } from './client-records.ts'
export { createFieldRecords, type FieldRecords } from './field-records.ts'
export type { RecentMessage } from './message-ring.ts'
export type { RecordsStore } from './record-writer.ts'

export type DeviceRecordsOptions = WriterOptions & {
  devicesMax: number
  /** Memory for the last messages of all devices. */
  messagesBytesMax: number
}

export type DeviceRecords = {
  readonly notes: RecordNotes
  start(): void
  /** The devices with this name: one for each provider that it was known for. */
  find(device: string): readonly DeviceRecordView[]
  /** Messages of each of the last 24 hours, the oldest first; null where it has no record. */
  messagesByHour(this: void, device: string): readonly number[] | null
  /** The last messages of the device, the newest first. */
  recent(device: string): { messages: readonly RecentMessage[]; skipped: number }
  /** Whether it has a record. */
  isKnown(device: string): boolean
  /** All, in slices. */
  views(): Iterable<DeviceRecordView>
  /** One value for each record: silent, the loss where its last messages gave no payload, or repeating. */
  standings(): Iterable<Standing>
  /** A message of it that was kept became a payload. */
  mappedLater(this: void, device: string): void
  /** `skewMs`: the median of the mapping in force. */
  noteSkew(device: string, skewMs: number): void
  /** Removes the records of this name; their number. */
  forget(device: string): number
  /** Another mapping comes: what this one has withheld is added. */
  mappingEnds(): void
  counters(): RecordCounters
  stop(deadline: AbortSignal): Promise<void>
}

export type Standing = Pick<DeviceRecordView, 'device' | 'sender' | 'lastSeen'> & {
  isSilent: boolean
  loss: Loss | null
  isRepeating: boolean
}

export type RecordCounters = {
  devices: number
  devicesMax: number
  /** Removed to make room, by age, and those that got no record. */
  evicted: number
  expired: number
  notRecorded: number
  /** Stored records that could not be read. */
  unreadable: number
  /** Whether the stored ones were read, and how many wait to be written. */
  restored: boolean
  waiting: number
  written: number
  /** Devices whose last messages are kept, their memory, and messages without room. */
  rings: number
  ringBytes: number
  notKept: number
}

type Deps = {
  clock: Clock
  store: RecordsStore
  /** Providers of the config. */
  providers: readonly ProviderName[]
  /** Of the mapping in force. */
  withheldOf: (device: string) => readonly WithheldValue[]
  /** As in record-notes.ts; without it nobody hears of such messages. */
  unnamed?: (sender: Sender, message: UnnamedMessage) => void
  knownTime: () => EpochMs | null
  isDiskLow: () => boolean
}

const hourMs = 3_600_000
export function createDeviceRecords(deps: Deps, options: DeviceRecordsOptions): DeviceRecords {
  const { clock, providers } = deps
  const recent = createRecentMessages({ bytesMax: options.messagesBytesMax })
  const table = createRecordTable({ removed }, options)
  const writer = createRecordWriter({ ...deps, table, withheldOf }, options)
  const { unnamed = () => undefined } = deps
  const notes = createRecordNotes({ table, recent, unnamed, changed: writer.changed })
  let listeningSince = clock.now()
  return {
    notes,
    start() {
      listeningSince = clock.now()
      writer.start()
    },
    find,
    messagesByHour,
    recent(device) {
      const records = [...recordsOf(device)]
      const messages = records.flatMap(recent.of).sort((a, b) => b.arrivedAt - a.arrivedAt)
      return { messages, skipped: records.reduce((sum, { ring }) => sum + (ring?.skipped ?? 0), 0) }
    },
    isKnown: (device) => providers.some((provider) => table.find(keyOf({ device, provider })) !== undefined),
    *views() {
      for (const record of table.all()) yield viewOf(record)
    },
    *standings() {
      for (const record of table.all()) yield standingOf(record)
    },
    mappedLater(device) {
      for (const record of recordsOf(device)) {
        table.numbers()[record.base + column.mappedAt] = clock.now()
        writer.changed(record)
      }
    },
    noteSkew(device, skewMs) {
      for (const record of recordsOf(device)) record.skewMs = skewMs
    },
    forget(device) {
      const found = [...recordsOf(device)]
      for (const record of found) table.remove(record)
      return found.length
    },
    mappingEnds() {
      for (const record of table.all()) record.withheld = withheldOf(record)
    },
    counters: () => {
      const { devices, evicted, notRecorded } = table.counters()
      const restored = writer.restored()
      return {
        devices,
        devicesMax: options.devicesMax,
        evicted,
        notRecorded,
        restored,
        ...recent.counters(),
        ...writer.counters(),
      }
    },
    stop: writer.stop,
  }

  function removed(record: DeviceRecord): void {
    recent.drop(record)
    writer.removed(record)
  }

  function* recordsOf(device: string): Generator<DeviceRecord> {
    for (const provider of providers) {
      const record = table.find(keyOf({ device, provider }))
      if (record !== undefined) yield record
    }
  }

  function find(device: string): readonly DeviceRecordView[] {
    return [...recordsOf(device)].map(viewOf)
  }

  function messagesByHour(device: string): readonly number[] | null {
    const numbers = table.numbers()
    const each = [...recordsOf(device)].map(({ base }) => {
      const present = { hourAt: numbers[base + column.hourAt]!, hourCount: numbers[base + column.hourCount]! }
      return hourlyCounts({ numbers, base: base + hoursColumn }, present, clock.now())
    })
    // A device with several providers has a record for each.
    return each.length === 0
      ? null
      : each.reduce((sum, hours) => sum.map((count, hour) => count + (hours[hour] ?? 0)))
  }

  function withheldOf({ device, withheld }: DeviceRecord): readonly WithheldValue[] {
    return withheldSum(withheld, deps.withheldOf(device))
  }

  function standingOf(record: DeviceRecord): Standing {
    const { device, sender, losses, base } = record
    const rhythm = rhythmOf(record)
    const lastSeen = timeOrNull(rhythm.lastAt)
    const lastMappedAt = timeOrNull(table.numbers()[base + column.mappedAt]!)
    const loss = losses.length === 0 ? null : lastLossOf({ losses, lastSeen, lastMappedAt })
    const isRepeating =
      table.numbers()[base + column.repeats]! > 0 &&
      repeatingOf(table.numbers().subarray(base, base + column.gaps), rhythm) !== null
    return { device, sender, lastSeen, isSilent: rhythm.isSilentNow, loss, isRepeating }
  }

  function rhythmOf({ base }: DeviceRecord) {
    const numbers = table.numbers()
    const lastAt = numbers[base + column.lastAt]!
    const sentForMs = lastAt - numbers[base + column.firstAt]!
    const medianGapMs = medianGap(numbers, base + column.gaps, {
      count: numbers[base + column.gapCount]!,
      sentForMs,
    })
    const silentAfterMs = silentAfter(medianGapMs)
    const times = { now: clock.now(), listeningSince, afterMs: silentAfterMs }
    return { lastAt, medianGapMs, silentAfterMs, isSilentNow: lastAt !== 0 && isSilent(lastAt, times) }
  }

  function viewOf(record: DeviceRecord): DeviceRecordView {
    const { device, provider, assetId, sender, accepted, refused, losses, skewMs, base } = record
    const row = table.numbers().subarray(base, base + column.gaps + gapsKept)
    const { lastAt, medianGapMs, silentAfterMs, isSilentNow } = rhythmOf(record)
    return {
      device,
      provider,
      assetId,
      messages: row[column.messages]!,
      firstSeen: timeOrNull(row[column.firstAt]!),
      lastSeen: timeOrNull(lastAt),
      lastMappedAt: timeOrNull(row[column.mappedAt]!),
      messagesPerHour: messagesPerHour(row, clock.now()),
      medianGapMs,
      silentAfterMs,
      silentSince: isSilentNow ? lastAt : null,
      sender,
      position: positionOf(record, row),
      accepted,
      refused,
      duplicates: row[column.duplicates]!,
      repeating: repeatingOf(row, { lastAt, silentAfterMs }),
      losses: losses.map((loss) => ({ ...loss })),
      withheld: withheldOf(record),
      skewMs,
    }
  }
}

/** What the last message became, where it gave no payload. */
export function lastLossOf({
  losses,
  lastSeen,
  lastMappedAt,
}: Pick<DeviceRecordView, 'losses' | 'lastSeen' | 'lastMappedAt'>): Loss | null {
  const last = losses.findLast(({ lastAt }) => lastSeen !== null && lastAt >= lastSeen)
  if (last === undefined) return null
  // Of a list some records may give payloads.
  return last.lastAt > (lastMappedAt ?? 0) ? last : null
}

/** Of the last 60 minutes: the present hour, and the share of the hour before that belongs to them. */
function messagesPerHour(row: Float64Array, now: EpochMs): number {
  const agoMs = now - row[column.hourAt]!
  const count = row[column.hourCount]!
  if (agoMs < 0 || agoMs >= 2 * hourMs) return 0
  if (agoMs >= hourMs) return Math.round(count * (2 - agoMs / hourMs))
  return Math.round(row[column.hourBefore]! * (1 - agoMs / hourMs) + count)
}

function positionOf({ isFixed }: DeviceRecord, row: Float64Array): DeviceRecordView['position'] {
  const arrivedAt = row[column.positionArrivedAt]!
  if (arrivedAt === 0) return null
  const place = { latitude: row[column.latitude]!, longitude: row[column.longitude]! }
  return { ...place, at: row[column.positionAt]!, arrivedAt, isFixed }
}

function timeOrNull(at: EpochMs): EpochMs | null {
  return at === 0 ? null : at
}
