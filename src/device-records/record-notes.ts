// record-notes.ts: notes what the mapper and the service say about devices. On the hot path: a message of a
// known device changes some numbers of its row and allocates nothing.

import { decodeEntries } from '../receipts/receipt-entries.ts'
import type { Message, Sender, UnnamedMessage } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { DeviceNotes, MapResult, NotedDevice, Coordinates } from '../mapping/types.ts'
import type { EpochMs } from '../std/clock.ts'
import { endHour, notePause, pauseMinMs } from './row-history.ts'
import {
  column,
  hoursColumn,
  keyOf,
  pausesColumn,
  type NamedDevice,
  type RecordTable,
} from './record-table.ts'
import type { RecentKind } from './recent-messages/message-ring.ts'
import type { RecentMessages } from './recent-messages/recent-messages.ts'
import { gapMinMs, gapsKept } from './rhythm.ts'
import type { DeviceRecord, LossKind } from './types.ts'

export type NotedPayload = Pick<MappedPayload, 'device' | 'provider' | 'windowKey' | 'duplicateRule'>

/** What one settle did with the payloads of a batch. */
export type SettledBatch = {
  provider: NamedDevice['provider']
  requestId: string | null
  at: EpochMs
  /** As the sender thread packed them (receipts/receipt-entries.ts). */
  entries: Uint8Array
  settlements: Settlement['payloads']
}

export type RecordNotes = DeviceNotes & {
  /** Right after the message was mapped: what became of each payload of it. */
  payload(payload: NotedPayload, became: 'stored' | 'duplicate'): void
  settled(batch: SettledBatch): void
}

type Deps = {
  table: RecordTable
  recent: Pick<RecentMessages, 'add' | 'drop'>
  /** A message of a client of the broker gave no payload and names no device. */
  unnamed: (sender: Sender, message: UnnamedMessage) => void
  /** Since when messages can come. */
  listeningSince: () => EpochMs
  /** The record is to be written. */
  changed: (record: DeviceRecord) => void
}

const hourMs = 3_600_000
/** Kinds of losses of one device; of more, the one that is longest ago is replaced. */
const lossesMax = 16
const textLengthMax = 200
const blindFades = 0.98

export function createRecordNotes({
  table,
  recent,
  unnamed: noteUnnamed,
  listeningSince,
  changed,
}: Deps): RecordNotes {
  let message: Message | null = null
  /** Of the message; never 0, which is that of a new row. */
  let number = 0
  /** Of the last payload. */
  let last: DeviceRecord | null = null
  return { begin, heard, read, readPosition, ended, lost, unnamed, payload, settled }

  function begin(next: Message): void {
    message = next
    number += 1
  }

  function recordOf(entry: NotedDevice): DeviceRecord | null {
    const { note } = entry
    return note !== null && !(note as DeviceRecord).isGone ? (note as DeviceRecord) : bind(entry)
  }

  /** The mapping sees the device for the first time since it is in force, or the record was removed. */
  function bind(entry: NotedDevice): DeviceRecord | null {
    const record = table.find(keyOf(entry)) ?? table.add(entry, entry.listed)
    if (record === null) return null
    table.setAsset(record, entry.assetId)
    record.isListed = entry.listed
    record.isPrivate = entry.withhold !== null
    if (record.isPrivate) {
      table.numbers()[record.base + column.positionArrivedAt] = 0
      recent.drop(record)
    }
    entry.note = record
    return record
  }

  function heard(entry: NotedDevice): void {
    const record = recordOf(entry)
    if (record === null || message === null) return
    const numbers = table.numbers()
    const { base } = record
    const before = numbers[base + column.number]
    if (before === number) return
    numbers[base + column.number] = number
    record.became = null
    const { arrivedAt } = message
    const count = numbers[base + column.messages]!
    const lastAt = numbers[base + column.lastAt]!
    numbers[base + column.messages] = count + 1
    if (count === 0) numbers[base + column.firstAt] = arrivedAt
    else numbers[base + column.used] = 1
    numbers[base + column.lastAt] = arrivedAt
    const gapMs = arrivedAt - lastAt
    // The first message since the start of the gateway has 0 there: the time before is no gap of the device.
    if (gapMs >= gapMinMs && before !== 0) noteGap(base, gapMs)
    if (gapMs >= pauseMinMs && lastAt !== 0) notePauseOf(base, lastAt, arrivedAt)
    countInHour(base, arrivedAt)
    record.sender = message.sender
    record.from = message.from ?? null
    record.source = entry.source
    if (!record.isDirty) changed(record)
  }

  function noteGap(base: number, gapMs: number): void {
    const numbers = table.numbers()
    const count = numbers[base + column.gapCount]!
    // As an integer: a remainder of floating-point numbers is slow.
    numbers[base + column.gaps + ((count | 0) % gapsKept)] = gapMs
    numbers[base + column.gapCount] = count + 1
  }

  /** Time in which nothing could come is no pause of the device. */
  function notePauseOf(base: number, lastAt: EpochMs, arrivedAt: EpochMs): void {
    const pauseMs = arrivedAt - Math.max(lastAt, listeningSince())
    const pauses = { numbers: table.numbers(), base: base + pausesColumn }
    if (pauseMs >= pauseMinMs) notePause(pauses, arrivedAt, pauseMs)
  }

  function countInHour(base: number, now: EpochMs): void {
    const numbers = table.numbers()
    const aheadMs = now - numbers[base + column.hourAt]!
    if (aheadMs >= hourMs || aheadMs < 0) {
      const present = { hourAt: numbers[base + column.hourAt]!, hourCount: numbers[base + column.hourCount]! }
      endHour({ numbers, base: base + hoursColumn }, present, now)
      numbers[base + column.hourBefore] =
        aheadMs < 2 * hourMs && aheadMs > 0 ? numbers[base + column.hourCount]! : 0
      numbers[base + column.hourAt] = now - (now % hourMs)
      numbers[base + column.hourCount] = 0
    }
    numbers[base + column.hourCount]! += 1
  }

  function read(entry: NotedDevice, hasPositions: boolean): void {
    const record = recordOf(entry)
    if (record === null || message === null) return
    record.became = 'mapped'
    const numbers = table.numbers()
    const { base } = record
    numbers[base + column.mappedAt] = message.arrivedAt
    if (!hasPositions || record.isPrivate) return
    if (numbers[base + column.blindFrom] === 0) numbers[base + column.blindFrom] = message.arrivedAt
    numbers[base + column.blindAt] = message.arrivedAt
  }

  function readPosition(entry: NotedDevice, at: EpochMs, isFixed: boolean, place: Coordinates): void {
    const record = recordOf(entry)
    if (record === null || message === null) return
    const numbers = table.numbers()
    const { base } = record
    const { arrivedAt } = message
    record.became = 'mapped'
    numbers[base + column.mappedAt] = arrivedAt
    if (record.isPrivate) return
    record.isFixed = isFixed
    numbers[base + column.latitude] = place.latitude
    numbers[base + column.longitude] = place.longitude
    numbers[base + column.positionAt] = at
    numbers[base + column.positionArrivedAt] = arrivedAt
    const blindMs = numbers[base + column.blindAt]! - numbers[base + column.blindFrom]!
    // It fades with each position: one night in a hall is no usual time.
    const usualMs = Math.floor(numbers[base + column.blindUsual]! * blindFades)
    numbers[base + column.blindUsual] = Math.max(blindMs, usualMs)
    numbers[base + column.blindFrom] = 0
    numbers[base + column.blindAt] = 0
  }

  function ended(entry: NotedDevice, became: RecentKind): void {
    const record = recordOf(entry)
    if (record !== null && message !== null && !record.isPrivate) recent.add(record, message, became)
  }

  function lost(entry: NotedDevice, kind: LossKind, source: string | null, reason: string): void {
    const record = recordOf(entry)
    if (record === null || message === null) return
    const { arrivedAt } = message
    const { losses } = record
    // Of a list some records may give payloads.
    record.became ??= 'lost'
    const at = losses.findLastIndex(
      (loss) => loss.reason === reason && loss.kind === kind && loss.source === source,
    )
    const loss = losses[at] ?? { kind, source, reason, count: 0, firstAt: arrivedAt, lastAt: arrivedAt }
    loss.count += 1
    loss.lastAt = arrivedAt
    if (at >= 0 && at === losses.length - 1) return
    if (at >= 0) losses.splice(at, 1)
    else if (losses.length >= lossesMax) losses.shift()
    losses.push(loss)
  }

  /** A will is no message of the device, and only the broker knows who sent a message. */
  function unnamed(result: Extract<MapResult, { reason: string }>): void {
    if (message === null || message.from || message.will === true) return
    const { kind, source, reason } = result
    const became = kind === 'unmappable' ? 'dead' : kind
    const detail = 'detail' in result ? result.detail : ''
    noteUnnamed(message.sender, { topic: message.topic, source, became, reason, detail })
  }

  /**
   * A stored payload with the window key of the message before repeats it, too: the dedup window forgets a
   * key after a while.
   */
  function payload(
    { device, provider, windowKey, duplicateRule }: NotedPayload,
    became: 'stored' | 'duplicate',
  ): void {
    if (last === null || last.isGone || last.device !== device || last.provider !== provider)
      last = table.find(keyOf({ device, provider })) ?? null
    if (last === null || message === null) return
    const numbers = table.numbers()
    const { base } = last
    const isFirst = numbers[base + column.payloadNumber] !== number
    const isTimed = duplicateRule === 'always'
    const isAlike = isFirst && isTimed && windowKey === last.windowKey
    if (isFirst) {
      numbers[base + column.payloadNumber] = number
      last.windowKey = isTimed ? windowKey : ''
    }
    if (became === 'duplicate') numbers[base + column.duplicates]! += 1
    else if (!isAlike) {
      numbers[base + column.repeats] = 0
      numbers[base + column.newAt] = message.arrivedAt
      return
    }
    if (isFirst) noteRepeat(base, message.arrivedAt, isAlike)
  }

  function noteRepeat(base: number, at: EpochMs, isAlike: boolean): void {
    const numbers = table.numbers()
    if (numbers[base + column.repeats] === 0) {
      numbers[base + column.repeatsAlike] = 0
      numbers[base + column.repeatsFrom] = at
    }
    numbers[base + column.repeats]! += 1
    if (isAlike) numbers[base + column.repeatsAlike]! += 1
    numbers[base + column.repeatedAt] = at
  }

  function settled({ provider, requestId, at, entries: packed, settlements }: SettledBatch): void {
    const entries = decodeEntries(packed)
    if (entries === null) return
    const accepted = { at, requestId }
    if (settlements === 'all delivered') {
      for (const device of entries.devices) {
        const record = named(device, provider)
        if (record === null) continue
        record.accepted = accepted
        if (!record.isDirty) changed(record)
      }
      return
    }
    for (const [index, settlement] of settlements.entries()) {
      const { device } = entries.at(index)
      const record = device === null ? null : named(device, provider)
      if (record === null) continue
      if (settlement.kind === 'delivered') record.accepted = accepted
      else if (settlement.kind === 'retry')
        record.refused = {
          ...accepted,
          outcome: 'retried',
          times: timesRefused(record) + 1,
          reason: short(settlement.failure.errorType),
          detail: short(settlement.failure.errorMessage),
        }
      else if (settlement.kind === 'dead')
        record.refused = {
          ...accepted,
          outcome: 'dead',
          times: timesRefused(record) + 1,
          reason: short(settlement.reason),
          detail: short(settlement.detail),
        }
      if (!record.isDirty) changed(record)
    }
  }

  /** A payload names its device, or the asset where `identify` of the source says so. */
  function named(name: string, provider: NamedDevice['provider']): DeviceRecord | null {
    const key = { device: name, provider }
    return table.find(keyOf(key)) ?? table.ofAsset(key) ?? null
  }
}

function timesRefused({ accepted, refused }: DeviceRecord): number {
  return refused === null || (accepted !== null && accepted.at >= refused.at) ? 0 : refused.times
}

function short(text: string | undefined): string | null {
  return text === undefined ? null : text.slice(0, textLengthMax).toWellFormed()
}
