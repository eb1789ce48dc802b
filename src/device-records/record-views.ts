// record-views.ts: a record as it is at the moment of the question: all of it, or only how the device stands.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { WithheldValue } from '../domain/payload.ts'
import { longestPause } from './row-history.ts'
import { column, pausesColumn } from './record-table.ts'
import { repeatingOf } from './repeats.ts'
import { gapsKept, isSilent, medianGap, silentAfter } from './rhythm.ts'
import type { DeviceRecord, DeviceRecordView, Loss, Standing } from './types.ts'

type Deps = {
  clock: Clock
  numbers: () => Float64Array
  listeningSince: () => EpochMs
  withheldOf: (record: DeviceRecord) => readonly WithheldValue[]
}

const hourMs = 3_600_000
/** Less comes from a clock that was set back by seconds. */
const aheadMs = 60_000

export function createRecordViews(deps: Deps) {
  const { clock } = deps
  return { viewOf, standingOf }

  function standingOf(record: DeviceRecord): Standing {
    const { device, provider, assetId, sender, from, source, isListed, mutedUntil, base } = record
    const rhythm = rhythmOf(record)
    const numbers = deps.numbers()
    const firstSeen = timeOrNull(numbers[base + column.firstAt]!)
    const lastSeen = timeOrNull(rhythm.lastAt)
    const lastMappedAt = timeOrNull(numbers[base + column.mappedAt]!)
    const isRepeating =
      deps.numbers()[base + column.repeats]! > 0 &&
      repeatingOf(deps.numbers().subarray(base, base + column.gaps), rhythm) !== null
    return {
      device,
      provider,
      assetId,
      sender,
      from,
      source,
      isListed,
      mutedUntil,
      firstSeen,
      lastSeen,
      lastMappedAt,
      medianGapMs: rhythm.medianGapMs,
      isSilent: rhythm.isSilentNow,
      longestPauseMs: longestPause({ numbers, base: base + pausesColumn }, clock.now()),
      loss: lastLossOf(record),
      isRepeating,
      accepted: record.accepted,
      refused: record.refused,
      skewMs: record.skewMs,
      positionArrivedAt: timeOrNull(numbers[base + column.positionArrivedAt]!),
      blindMs: numbers[base + column.blindAt]! - numbers[base + column.blindFrom]!,
      blindUsualMs: numbers[base + column.blindUsual]!,
    }
  }

  function rhythmOf({ base }: DeviceRecord) {
    // First, since a step of the clock that it notices moves the numbers.
    const now = clock.now()
    const numbers = deps.numbers()
    const notedAt = numbers[base + column.lastAt]!
    const sentForMs = notedAt - numbers[base + column.firstAt]!
    const listeningSince = deps.listeningSince()
    // Noted by a clock that was ahead: when it came is lost.
    const lastAt = notedAt - now > aheadMs ? listeningSince : notedAt
    const medianGapMs = medianGap(numbers, base + column.gaps, {
      count: numbers[base + column.gapCount]!,
      sentForMs,
    })
    const silentAfterMs = silentAfter(medianGapMs)
    const times = { now, listeningSince, afterMs: silentAfterMs }
    return { lastAt, medianGapMs, silentAfterMs, isSilentNow: lastAt !== 0 && isSilent(lastAt, times) }
  }

  function viewOf(record: DeviceRecord): DeviceRecordView {
    const row = deps.numbers().subarray(record.base, record.base + column.gaps + gapsKept)
    const { lastAt, silentAfterMs, isSilentNow } = rhythmOf(record)
    return {
      ...standingOf(record),
      messages: row[column.messages]!,
      messagesPerHour: messagesPerHour(row, clock.now()),
      silentAfterMs,
      silentSince: isSilentNow ? lastAt : null,
      position: positionOf(record, row),
      duplicates: row[column.duplicates]!,
      repeating: repeatingOf(row, { lastAt, silentAfterMs }),
      losses: record.losses.map((loss) => ({ ...loss })),
      withheld: deps.withheldOf(record),
    }
  }
}

/** A copy: it goes on to count. */
function lastLossOf({ losses, became }: DeviceRecord): Loss | null {
  const last = became === 'lost' ? losses.at(-1) : undefined
  return last === undefined ? null : { ...last }
}

/**
 * Of the last 60 minutes: the present hour, and the share of the hour before that belongs to them. All, where
 * the first one came within them.
 */
function messagesPerHour(row: Float64Array, now: EpochMs): number {
  const agoMs = now - row[column.hourAt]!
  const count = row[column.hourCount]!
  if (agoMs < 0 || agoMs >= 2 * hourMs) return 0
  if (agoMs >= hourMs) return Math.round(count * (2 - agoMs / hourMs))
  const share = now - row[column.firstAt]! < hourMs ? 1 : 1 - agoMs / hourMs
  return Math.round(row[column.hourBefore]! * share + count)
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

/** Adds what two mappings have withheld of one device. */
export function withheldSum(
  before: readonly WithheldValue[],
  since: readonly WithheldValue[],
): readonly WithheldValue[] {
  if (before.length === 0) return since
  const sum = since.map((value) => ({ ...value }))
  for (const value of before) {
    const known = sum.find(
      ({ source, field, reason, isSent }) =>
        source === value.source &&
        field === value.field &&
        reason === value.reason &&
        isSent === value.isSent,
    )
    if (known === undefined) sum.push(value)
    else known.count += value.count
  }
  return sum
}
