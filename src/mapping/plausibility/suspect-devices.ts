// suspect-devices.ts: which devices a person must look at: most of their readings of a field are withheld, or
// their positions look swapped. Asked at intervals, for the conditions; nothing here changes a payload.
//
//   withheld   of the records of at least 15 minutes, and of at least 10 records (or of a day and 3 records),
//              at least half had no plausible value of a field. Placeholders for "no value" do not count.
//   swapped    the last comparison with the fleet says so (memory/swapped-positions.ts), within the last day
//
// A device is watched from its first such value on, until a time without one. In memory only; the mapper
// after a reload goes on with it, for the sources that did not change.
//
// Bound: `devicesMax` devices of each kind are watched. Values of further ones count as `beyond`; they
// count at the device and in the metrics of the fields, too.

import type { EpochMs } from '../../std/clock.ts'
import { createSwappedPositions, type Place } from '../filters/swapped-positions.ts'

/** An entry of a device in one source. */
export type Watched = { readonly device: string; readonly records: number }

/** The device with the largest share, and how many devices there are like it. */
export type MostlyWithheld = {
  device: string
  field: string
  reason: string
  withheld: number
  records: number
  devices: number
}

export type Suspects = {
  /** By source. */
  withheld: ReadonlyMap<string, MostlyWithheld>
  swapped: ReadonlyMap<string, { device: string; devices: number }>
}

export type SuspectDevices = ReturnType<typeof createSuspectDevices>

/** What a mapper knows of them. */
export type SuspectMemory = {
  windows: Map<Watched, Window>
  swappedIn: Map<Watched, { source: string; at: EpochMs }>
  fleet: ReturnType<typeof createSwappedPositions>
}

/** The same for the mapper that comes next: `next` gives its entry of a device, or none. */
export function nextMemory(
  { windows, swappedIn, fleet }: SuspectMemory,
  next: ReadonlyMap<Watched, Watched>,
): SuspectMemory {
  const memory: SuspectMemory = { windows: new Map(), swappedIn: new Map(), fleet }
  for (const [before, entry] of next) {
    const window = windows.get(before)
    const swapped = swappedIn.get(before)
    if (window !== undefined) {
      const recordsBefore = window.recordsBefore - before.records + entry.records
      memory.windows.set(entry, { ...window, recordsBefore, counts: new Map(window.counts) })
    }
    if (swapped !== undefined) memory.swappedIn.set(entry, swapped)
  }
  return memory
}

type Window = {
  since: EpochMs
  /** Of the entry, before the first value. */
  recordsBefore: number
  counts: Map<string, number>
  /** Of the last time that was judged; null where it was well. */
  found: Omit<MostlyWithheld, 'devices'> | null
}

const windowMs = 900_000
const recordsMin = 10
const longestMs = 86_400_000
const fewRecordsMin = 3
const shareMin = 0.5

/** Values of a working device are left out for other reasons: placeholders, a fix that is repeated. */
const faults = new Set(['not a number', 'not exact', 'negative', 'out of range'])

export function createSuspectDevices(
  devicesMax = 2048,
  memory: SuspectMemory = { windows: new Map(), swappedIn: new Map(), fleet: createSwappedPositions() },
) {
  const { windows, swappedIn, fleet } = memory
  let beyond = 0
  return {
    implausible,
    /** Counts a value that was left out. */
    omitted(entry: Watched, key: string, at: EpochMs) {
      if (faults.has(key.slice(key.lastIndexOf('|') + 1))) implausible(entry, key, at)
    },
    isSwapped,
    suspects,
    memory,
    counters,
  }

  /** Counts a value that was not plausible; `key` is `source|field|why`. */
  function implausible(entry: Watched, key: string, at: EpochMs): void {
    let window = windows.get(entry)
    if (window === undefined) {
      if (windows.size >= devicesMax) {
        beyond += 1
        return
      }
      window = { since: at, recordsBefore: entry.records - 1, counts: new Map(), found: null }
      windows.set(entry, window)
    }
    window.counts.set(key, (window.counts.get(key) ?? 0) + 1)
  }

  /** Compares a position with those of the fleet. */
  function isSwapped(source: string, entry: Watched, place: Place, at: EpochMs): boolean {
    const looksSwapped = fleet.isSwapped(entry.device, place.latitude, place.longitude)
    if (!looksSwapped) swappedIn.delete(entry)
    else if (swappedIn.size < devicesMax || swappedIn.has(entry)) swappedIn.set(entry, { source, at })
    else beyond += 1
    return looksSwapped
  }

  /**
   * Devices with such values, and those that look swapped; devices that make up the fleet; values and
   * comparisons of devices beyond these bounds.
   */
  function counters() {
    const { devices, beyond: notInFleet } = fleet.counters()
    return {
      devices: windows.size,
      swapped: swappedIn.size,
      fleet: devices,
      beyond: beyond + notInFleet,
    }
  }

  function suspects(now: EpochMs): Suspects {
    const withheld = new Map<string, MostlyWithheld>()
    for (const [entry, window] of windows) {
      const isKept = judge(entry, window, now)
      if (!isKept) windows.delete(entry)
      else if (window.found !== null) addWorst(withheld, window.found)
    }
    const swapped = new Map<string, { device: string; devices: number }>()
    for (const [entry, { source, at }] of swappedIn) {
      // It is silent: nobody knows what it would send.
      if (now - at > longestMs) swappedIn.delete(entry)
      else {
        const known = swapped.get(source)
        swapped.set(source, { device: known?.device ?? entry.device, devices: (known?.devices ?? 0) + 1 })
      }
    }
    return { withheld, swapped }
  }

  /** Begins a new window where one is over. False where the last one had no such value. */
  function judge(entry: Watched, window: Window, now: EpochMs): boolean {
    const records = entry.records - window.recordsBefore
    const tookMs = now - window.since
    // Our clock was set back.
    if (tookMs < 0) window.since = now
    if (tookMs < windowMs || (records < recordsMin && tookMs < longestMs)) return true
    if (window.counts.size === 0) return false
    window.found = records < fewRecordsMin ? null : worstOf(entry.device, window.counts, records)
    window.since = now
    window.recordsBefore = entry.records
    window.counts = new Map()
    return true
  }
}

/** By source and field, whatever was wrong with the values. Null where most of them were well. */
function worstOf(device: string, counts: Window['counts'], records: number): Window['found'] {
  const fields = Map.groupBy(counts, ([key]) => key.slice(0, key.lastIndexOf('|')))
  let worst: Window['found'] = null
  for (const [field, reasons] of fields) {
    const withheld = reasons.reduce((sum, [, count]) => sum + count, 0)
    if (withheld < records * shareMin || withheld <= (worst?.withheld ?? 0)) continue
    const [reason = ''] = reasons.toSorted(([, a], [, b]) => b - a)[0] ?? []
    worst = { device, field, reason: reason.slice(field.length + 1), withheld, records }
  }
  return worst
}

/** `field` is `source|field` in it. */
function addWorst(found: Map<string, MostlyWithheld>, one: NonNullable<Window['found']>): void {
  const bar = one.field.lastIndexOf('|')
  const field = one.field.slice(bar + 1)
  const source = one.field.slice(0, bar)
  const known = found.get(source)
  const devices = (known?.devices ?? 0) + 1
  const isWorse = known === undefined || one.withheld / one.records > known.withheld / known.records
  found.set(source, isWorse ? { ...one, field, devices } : { ...known, devices })
}
