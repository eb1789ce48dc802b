// fast-path.ts: maps usual messages in one pass over their bytes. The entry file of the folder.
//
//   bytes -> message-scan -> values -> name -> hash -> JSON text        nothing is parsed, no object is made
//
// Guarantees
//   Same      its result is that of the other path (mapper/message-records.ts) to the last byte, with equal
//             counters, notes and memory. test/mapping/fast-path compares both with hostile messages.
//   First     whether a message is usual is decided before anything is counted or remembered: null means that
//             no result depends on this look, and the message is parsed. A device may have an entry by then.
//
// Usual is a JSON object of at most 2 KB without escape sequences and without a wanted key twice, of a source
// whose paths are plain keys (compile-plan.ts), where everything wanted is a number, true or false, an ASCII
// text or absent, nothing is out of bounds, the clock of the device is right, and its
// counters grow as they can. It is no second mapping language: the plan is made of the config by the
// functions that compile the source, and uses their conversions, scales, times and bounds.
//
//   compile-plan.ts, wanted-keys.ts      the plan of a source (fast-plan.ts); usual-options.ts says which
//                                        options it knows
//   message-scan.ts                      where the values are: walks the message
//   message-layout.ts                    the same without a walk, where a message before had its layout
//   found-values.ts, message-values.ts   the values that were found, and numbers of them
//   usual-conditions.ts                  `when` and `fix.valid`, which must hold. `when` alone also says
//                                        whether a message is of the source (routing/source-choice.ts)
//   record-bytes.ts, written-bytes.ts    the parts of the name of the payload
//   device-bytes.ts                      what the device adds to both
//   payload-bytes.ts                     the payload

import type { Message } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { ClockCheck } from '../devices/clock-check.ts'
import { deviceLengthMax } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { compileTime, zoneFor, type ReadTime } from '../times/times.ts'
import type { Zone } from '../times/zones.ts'
import type { MessageRecords } from '../mapper/message-records.ts'
import { comparedEvery, type RecordMemory } from '../mapper/record-memory.ts'
import type { MapFast, Route, SourceRuntime, WhenFast } from '../routing/routing.ts'
import type { MapResult, RecordContext } from '../types.ts'
import { deviceBytesOf } from './device-bytes.ts'
import type { FastPlan } from './fast-plan.ts'
import { text } from './found-values.ts'
import { createMessageValues, type MessageValues } from './message-values.ts'
import { createPayloadBytes } from './payload-bytes.ts'
import { createRecordBytes } from './record-bytes.ts'
import { holdsFor } from './usual-conditions.ts'

/** After so many messages in a row that are not usual, one of `triedEvery` is looked at. */
const missesMax = 64
const triedEvery = 16

type Deps = {
  context: RecordContext
  clocks: Pick<ClockCheck, 'checkTime' | 'isPlausible'>
  memory: Pick<RecordMemory, 'advance' | 'compareWithFleet'>
  begin: MessageRecords['begin']
}

/** Adds the fast path to the sources that can have one. */
export function addFastPaths(deps: Deps, { runtimes }: { runtimes: readonly SourceRuntime[] }): void {
  for (const runtime of runtimes) {
    const { fastPlan } = runtime.source
    if (fastPlan !== null) Object.assign(runtime, createFastPath(deps, runtime, fastPlan))
  }
}

function createFastPath(
  deps: Deps,
  runtime: SourceRuntime,
  plan: FastPlan,
): { mapFast: MapFast; whenFast: WhenFast } {
  const { context, clocks, memory, begin } = deps
  const { source, devices, isMovingAt } = runtime
  const { conditions } = plan
  const values = createMessageValues(plan.root, plan)
  const record = createRecordBytes(plan, values, context)
  const { payload } = createPayloadBytes(record)
  const timeOf = compileTimeOf(plan, values)
  /** Messages that were not usual, since the last one that was. */
  let misses = 0
  return {
    mapFast(route, message) {
      if (isPassedOver()) return null
      const result = map(route, message)
      misses = result === null ? misses + 1 : 0
      return result
    },
    whenFast(route, message) {
      if (isPassedOver()) return null
      const holds = judge(route, message)
      misses = holds === null ? misses + 1 : 0
      return holds
    },
  }

  function isPassedOver(): boolean {
    if (misses < missesMax || misses % triedEvery === 0) return false
    misses += 1
    return true
  }

  function judge({ captures }: Route, message: Message): boolean | null {
    const { when } = plan
    if (when === null || !isReadable(message) || !values.begin(message.bytes)) return null
    return holdsFor(when, values, message.bytes, captures)
  }

  /** A message whose properties are read is parsed, and so is one that is mapped again. */
  function isReadable(message: Message): boolean {
    return context.live && !(source.readsProperties && hasProperties(message))
  }

  function map(route: Route, message: Message): MapResult | null {
    const { bytes, arrivedAt, serial = 0 } = message
    if (!isReadable(message) || !values.begin(bytes)) return null
    for (let index = 0; index < conditions.length; index += 1)
      if (holdsFor(conditions[index]!, values, bytes, route.captures) !== true) return null
    begin(route, undefined, message)
    const entry = route.entry ?? entryNamed(route, bytes)
    if (entry === null || !isUsualDevice(entry)) return null
    const ownTime = timeOf(bytes, entry.zone)
    if (!isUsualTime(ownTime)) return null
    const hasOwnTime = !Number.isNaN(ownTime)
    const time = hasOwnTime ? ownTime : arrivedAt
    if (!deviceBytesOf(entry).isUsual) return null
    if (!record.write(bytes, entry, time, hasOwnTime ? null : serial)) return null
    if (!memory.advance(source, entry, time)) return null
    note(entry, ownTime)
    if (route.entry === null) {
      context.owner = entry
      context.notes?.heard(entry)
    }
    const moving = movingOf(entry, time)
    noteRead(entry, time)
    return { kind: 'payloads', source: source.name, payloads: [payload(message, entry, ownTime, moving)] }
  }

  /** What a server stored without a time of its own has that of the server. */
  function isUsualTime(time: EpochMs): boolean {
    if (Number.isNaN(time)) return context.stored === null && (plan.time?.orArrival ?? true)
    return time < Number.POSITIVE_INFINITY && clocks.isPlausible(time, context)
  }

  /** Null where the name is not usual. */
  function entryNamed({ provider }: Route, bytes: Buffer): DeviceEntry | null {
    const slot = plan.device === null ? -1 : values.find(plan.device)
    if (slot < 0) return null
    const { kinds, starts, ends, numberIn } = values
    const isText = kinds[slot] === text
    const number = isText ? 0 : numberIn(slot)
    if (!Number.isSafeInteger(number)) return null
    const name = isText ? bytes.toString('latin1', starts[slot], ends[slot]) : String(number)
    return name.length <= deviceLengthMax ? devices.entryOf(name, provider) : null
  }

  function note(entry: DeviceEntry, ownTime: EpochMs): void {
    context.device = entry.device
    context.entry = entry
    entry.records += 1
    context.leftOut = false
    context.zeroPosition = false
    if (!Number.isNaN(ownTime)) clocks.checkTime(entry.device, ownTime, context)
    if (record.gpsStart === record.gpsEnd) return
    // Read by the comparison of one in sixteen positions only.
    const isCompared = entry.positions % comparedEvery === 0
    memory.compareWithFleet(source.name, entry, isCompared ? record.gpsText() : '')
  }

  function movingOf(entry: DeviceEntry, time: EpochMs): boolean | null {
    const speed = record.motionSpeed
    return isMovingAt === null || Number.isNaN(speed) ? null : (isMovingAt(entry.device, speed, time) ?? null)
  }

  function noteRead(entry: DeviceEntry, time: EpochMs): void {
    if (context.notes === null) return
    if (record.gpsStart === record.gpsEnd) context.notes.read(entry)
    else context.notes.readPosition(entry, time, true, context)
  }
}

/** Without any, the paths of `readsProperties` are keys of the message like all others. */
function hasProperties({ userProperties = null, properties = null }: Message): boolean {
  return userProperties !== null || properties !== null
}

/** Every other device has a result of its own. */
function isUsualDevice({ deliverable, ignored, quarantined, withhold }: DeviceEntry): boolean {
  return deliverable && !ignored && !quarantined && withhold === null
}

/** The time of a message; as ReadTime. */
function compileTimeOf({ time }: FastPlan, { find, kinds, starts, ends, numberIn }: MessageValues) {
  if (time === null) return () => Number.NaN
  const { slots, format, zone } = time
  let value: unknown
  const read: ReadTime = compileTime(format, () => value)
  return (bytes: Buffer, ofDevice: Zone | null): EpochMs => {
    const slot = find(slots)
    if (slot < 0) return Number.NaN
    if (kinds[slot] === text) {
      value = bytes.toString('latin1', starts[slot], ends[slot])
    } else {
      value = numberIn(slot)
      if (Number.isNaN(value)) return Number.POSITIVE_INFINITY
    }
    return read(undefined, undefined, undefined, zoneFor(zone, ofDevice))
  }
}
