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
//   row-history.ts     messages of the last 24 hours, and the longest pause of each of 15 days
//   record-views.ts    a record, and how its device stands, at the moment of the question
//   rhythm.ts          how often a device sends, and whether it is silent
//   repeats.ts         whether its last messages bring nothing new
//
// What can go wrong, and what then happens
//   the process is killed         what was noted of known devices in the last minute or two is missing
//   the store cannot be used      the records are in memory only; see ledger/records-supervisor.ts
//   too many devices              see record-table.ts; counted

import type { Clock, EpochMs } from '../std/clock.ts'
import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import type { Sender, UnnamedMessage } from '../domain/message.ts'
import type { WithheldValue } from '../domain/payload.ts'
import type { RecentMessage } from './recent-messages/message-ring.ts'
import { createRecentMessages } from './recent-messages/recent-messages.ts'
import { createRecordNotes, type RecordNotes } from './record-notes.ts'
import { hourlyCounts } from './row-history.ts'
import { column, createRecordTable, hoursColumn, keyOf } from './record-table.ts'
import { shiftTimes } from './record-times.ts'
import { createRecordWriter, type RecordsStore, type WriterOptions } from './record-writer.ts'
import { createRecordViews, withheldSum } from './record-views.ts'
import type { DeviceRecord, DeviceRecordView, Standing } from './types.ts'

export type { DeviceRecordView, Loss, Repeating, Standing } from './types.ts'
export { createClientRecords, type ClientRecords } from './client-records.ts'
export { createFieldRecords, type FieldRecords } from './field-records.ts'
export { silentAfter } from './rhythm.ts'
export type { RecentMessage } from './recent-messages/message-ring.ts'
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
  /** The same without what only a person asks for. */
  standings(): Iterable<Standing>
  /**
   * A device is one truck: where the mapping gives it the provider `named` now, or the config does not have
   * that of its record, the record goes on under the provider that the device has. True where it moved.
   */
  moved(this: void, standing: Standing, named: ProviderName | null): boolean
  /** A message of it that was kept became a payload. */
  mappedLater(this: void, device: string): void
  /** `clock` was set, or is corrected: the times of this process go with it. */
  clockStepped(this: void, byMs: number): void
  /** Nothing could come until now: silence counts from now on. */
  notListening(): void
  /**
   * Null: its silence counts again. `isLength`: the end moves with a step of `clock`. Resolves with the
   * number of records of this name, when they are on the disk or the store cannot be used. Never rejects.
   */
  mute(device: string, end: { at: EpochMs; isLength: boolean } | null): Promise<number>
  /** `skewMs`: the median of the mapping in force. */
  noteSkew(device: string, skewMs: number): void
  /**
   * Removes the records of this name, from the disk too; resolves with their number. Null where the store
   * cannot be used: then nothing is removed. Never rejects.
   */
  forget(device: string): Promise<number | null>
  /** Another mapping comes: what this one has withheld is added. */
  mappingEnds(): void
  counters(): RecordCounters
  stop(deadline: AbortSignal): Promise<void>
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
  /** Whether `clock` is known to be right. */
  isTimeKnown: () => boolean
  bootId: string
  isDiskLow: () => boolean
}

export function createDeviceRecords(deps: Deps, options: DeviceRecordsOptions): DeviceRecords {
  const { clock } = deps
  // Messages of a device that no provider is known for are kept under the default one.
  const providers = [...new Set([...deps.providers, defaultProvider])]
  const recent = createRecentMessages({ bytesMax: options.messagesBytesMax })
  const table = createRecordTable({ removed }, options)
  const writer = createRecordWriter({ ...deps, table, withheldOf }, options)
  const { unnamed = () => undefined } = deps
  let startedAt = clock.now()
  let listeningSince = startedAt
  /** By this process. */
  const mutedForLength = new WeakSet<DeviceRecord>()
  const notes = createRecordNotes({
    table,
    recent,
    unnamed,
    listeningSince: () => listeningSince,
    changed: writer.changed,
  })
  const { viewOf, standingOf } = createRecordViews({
    clock,
    numbers: table.numbers,
    listeningSince: () => listeningSince,
    withheldOf,
  })
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
    moved,
    mappedLater(device) {
      for (const record of recordsOf(device)) {
        const numbers = table.numbers()
        numbers[record.base + column.mappedAt] = numbers[record.base + column.lastAt]!
        record.became = 'mapped'
        writer.changed(record)
      }
    },
    clockStepped(byMs) {
      const processAt = startedAt
      startedAt += byMs
      listeningSince += byMs
      const bootAt = clock.now() - clock.monotonic() - byMs
      for (const record of table.all()) {
        if (record.mutedUntil !== null && mutedForLength.has(record)) {
          record.mutedUntil += byMs
          writer.changed(record)
        }
        const isOfProcess = table.numbers()[record.base + column.number] !== 0
        if (!isOfProcess && !record.isUndated) continue
        shiftTimes(table.numbers(), record, { byMs, fromAt: record.isUndated ? bootAt : processAt })
        writer.changed(record)
      }
    },
    notListening() {
      listeningSince = clock.now()
    },
    async mute(device, end) {
      await writer.whenRestored()
      const found = [...recordsOf(device)]
      for (const record of found) {
        record.mutedUntil = end?.at ?? null
        if (end?.isLength === true) mutedForLength.add(record)
        else mutedForLength.delete(record)
      }
      await writer.writeNow(found)
      return found.length
    },
    noteSkew(device, skewMs) {
      for (const record of recordsOf(device)) record.skewMs = skewMs
    },
    async forget(device) {
      const keys = providers.map((provider) => keyOf({ device, provider }))
      if (!(await writer.whenRestored()) || !(await writer.deleteStored(keys))) return null
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

  function moved(of: Standing, named: ProviderName | null): boolean {
    const provider = named ?? providerInConfig(of)
    const record = table.find(keyOf(of))
    if (record === undefined || provider === record.provider) return false
    const other = table.find(keyOf({ ...of, provider }))
    const isLater = other !== undefined && lastAtOf(other) >= lastAtOf(record)
    if (isLater) {
      writer.absorb(other, record)
      return true
    }
    if (other !== undefined) writer.absorb(record, other)
    // From the disk, under its former key.
    writer.removed(record)
    table.setProvider(record, provider)
    writer.changed(record)
    return true
  }

  /** A device that only a provider out of the config had is that of the other one, where there is one. */
  function providerInConfig({ device, provider }: Standing): ProviderName {
    const [only, ...others] = deps.providers
    if (deps.providers.includes(provider)) return provider
    const found = deps.providers.find((one) => table.find(keyOf({ device, provider: one })) !== undefined)
    return found ?? (others.length === 0 ? only : undefined) ?? provider
  }

  function lastAtOf({ base }: DeviceRecord): EpochMs {
    return table.numbers()[base + column.lastAt]!
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
}
