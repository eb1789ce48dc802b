// filters.ts: what judges a record while it is read, the entry file of the folder. A filter sets bits of the
// reading or replaces a value; only that of the time changes the name of its payload. In this order:
//
//   times       record-time.ts      the time of the device, and (../devices/) whether it can be right
//   memory      remembered-values.ts: what the device said before
//   fix         fix.ts              whether the position is valid, and of which time
//   bounds      ../plausibility/    while a value is read: those that no vehicle has
//   fleet       swapped-positions.ts: whether latitude and longitude are swapped
//   counters    counters.ts         jumps and falls of odometer and engine hours
//   nothing     a record of which nothing is sent is ignored, or refused
//   motion      motion.ts           by the speed
//   thin        thin.ts, merge (../state/merge.ts), privacy (../privacy/): once it is a mapped record

import type { SourcePlan } from '../compile/source-plan.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { position } from '../lost-fields/watched-fields.ts'
import type { Memory } from '../memory/memory.ts'
import { setPrevious } from '../path/path.ts'
import type { SuspectDevices } from '../plausibility/suspect-devices.ts'
import type { Reading } from '../read/reading.ts'
import type { ReadCounters } from '../types.ts'
import { judgedSignals, type CounterDeps } from './counters.ts'
import {
  notePrevious,
  placeholdersIn,
  previousBy,
  motionByMemory,
  noteRemembered,
  withRemembered,
} from './remembered-values.ts'
import { placeIn } from './swapped-positions.ts'

export type FilterDeps = CounterDeps & {
  memory: Pick<Memory, 'changed' | 'of' | 'known'>
  watched: Pick<SuspectDevices, 'isSwapped'>
}

/** Every so many positions of a device, one is compared with the fleet, so that it costs nothing. */
const comparedEvery = 16

const noValue = () => Number.NaN
const nothing: ReadCounters['reads'][number] = []
const noReads = () => nothing

/** What is remembered of the device: the values that it did not repeat, and those of the record before. */
export function recall(
  reading: Reading,
  { name, remember, counters, previous }: SourcePlan,
  entry: DeviceEntry,
  memory: FilterDeps['memory'],
): void {
  if (remember === null && counters === null && previous === null) return
  const { live, record, moment } = reading
  reading.memory = live ? memory.of(name, entry) : memory.known(name, entry)
  // A list that grows would have room for seventeen.
  if (counters !== null) reading.counters = { values: counters.map(noValue), reads: counters.map(noReads) }
  if (previous !== null) {
    // None for a record that does not arrive now: later ones contain its difference.
    const isSeen = live && reading.memory !== null && reading.memory.asset === entry.assetId
    const without = placeholdersIn(reading, name, previous)
    setPrevious(
      record,
      isSeen ? previousBy(previous, reading.memory!, reading, entry.withhold, without) : null,
    )
  }
  if (remember !== null) reading.full = withRemembered(remember, reading.memory, reading, moment)
}

/** The record was read, but for its extra fields. Whether anything of it is sent. */
export function hasSentValues(
  reading: Reading,
  source: SourcePlan,
  entry: DeviceEntry,
  deps: FilterDeps,
): boolean {
  compareWithFleet(reading, source, entry, deps.watched)
  reading.sentSignals = judgedSignals(reading, source, deps)
  reading.moving = motionByMemory(reading, source)
  noteRemembered(reading, source, reading.moment, deps.memory)
  return hasValues(reading, source, deps)
}

function compareWithFleet(
  reading: Reading,
  { name }: SourcePlan,
  entry: DeviceEntry,
  watched: FilterDeps['watched'],
): void {
  const { gps, arrivedAt } = reading
  if (gps === null || gps === '' || reading.isGpsWithheld) return
  entry.positions += 1
  if (entry.positions % comparedEvery !== 1 || !reading.live) return
  const place = placeIn(gps)
  if (!watched.isSwapped(name, entry, place, arrivedAt)) return
  const key = `${name}|position|latitude and longitude may be swapped`
  reading.implausible({ key, isSent: true, rule: 'the positions of the other devices' }, place.latitude)
}

/** Whether anything of the record is sent. */
function hasValues(reading: Reading, source: SourcePlan, { memory }: FilterDeps): boolean {
  const { signals, sentSignals, laterSignals } = reading
  const isPositionSent = (reading.gps ?? '') !== '' && !reading.isGpsWithheld
  if (isPositionSent || laterSignals.length > 0 || sentSignals.some((signal) => signal !== '')) return true
  const isWithheld = reading.isGpsWithheld || sentSignals !== signals
  if (isWithheld) reading.ignore(signals.length === 0 ? 'no fix' : 'not plausible')
  else if (source.previous?.hasSignals === true && notePrevious(reading, source.previous, memory))
    reading.ignore('no previous value')
  else if (reading.leftOut) reading.ignore(notPlausible(reading, source))
  else if (!reading.isCurrentFix || reading.zeroPosition) reading.ignore('no fix')
  else if (source.emptyIsNormal) reading.ignore('nothing to send')
  else reading.refuse('NOTHING_TO_SEND', 'Neither a position nor a signal was found in the message.')
  return false
}

/** Where a path finds nothing, values that are not plausible are not all that is wrong. */
function notPlausible({ isCurrentFix, zeroPosition }: Reading, { watched }: SourcePlan): string {
  const lacksPosition = watched.names[0] === position && isCurrentFix && !zeroPosition
  return lacksPosition ? 'not plausible, and no position where the mapping reads it' : 'not plausible'
}
