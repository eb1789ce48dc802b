// record-memory.ts: what memory says about the record at hand: the values that its device did not repeat,
// those of the record before, and whether its counters jump or fall. One instance serves all records of a
// mapper; `begin` starts a record.

import { assertNever } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import {
  hasGrown,
  isUnsetNumber,
  judge,
  type CounterReset,
  type CounterVerdict,
} from '../memory/counter-memory.ts'
import {
  openSlots,
  setLevel,
  settle,
  type CounterReading,
  type DeviceMemory,
} from '../memory/device-memory.ts'
import { numberFrom } from '../path/value.ts'
import type { JudgedCounter } from '../memory/judged-counters.ts'
import type { Memory, MemorySource } from '../memory/memory.ts'
import {
  createPreviousNotes,
  forgetPrevious,
  previousBy,
  type CompiledPrevious,
} from '../memory/previous-values.ts'
import { lacksRemembered, remember, withRemembered } from '../memory/remembered-values.ts'
import { placeIn } from '../memory/swapped-positions.ts'
import { setPrevious } from '../path/previous-record.ts'
import type { SuspectDevices } from '../plausibility/suspect-devices.ts'
import type { Finding, MapResult, RecordContext } from '../types.ts'
import type { CompiledSource, Fix } from './compiled-source.ts'

export type RecordMemory = {
  /** `time`: of the record, or its arrival. */
  begin(source: CompiledSource, entry: DeviceEntry, time: EpochMs): void
  /** The record lacks remembered values, so that its position is named whether they make it valid or not. */
  mayChangeFix(): boolean
  /** Whether the position is valid, with what is remembered. */
  isValid(fix: Fix, isValid: boolean): boolean
  /** The motion by a remembered value; null where there is none. */
  motion(): boolean | null
  /** Notes the values of the record. */
  note(): void
  /** Notes the values that later records are compared with; whether the record has any. */
  notePrevious(): boolean
  /** The message ended; what its records noted for later ones is undone where it became no payload. */
  ended(result: MapResult): void
  /** The same where it is kept as a whole, whatever its result. Before the next message. */
  undoLast(): void
  /** The signals with '' in the place of those that are not sent; the same list where all are sent. */
  plausible(signals: readonly string[]): readonly string[]
  /** Counts a written position that seems to be swapped. */
  compareWithFleet(source: string, entry: DeviceEntry, gps: string): void
}

/** Every so many positions of a device, one is compared with the fleet. */
export const comparedEvery = 16

type Deps = {
  memory: Memory
  context: RecordContext
  watched: Pick<SuspectDevices, 'isSwapped'>
  counterReset: (reset: CounterReset) => void
}

export function hasMemory({ remember: names, counters, previous }: CompiledSource): boolean {
  return names !== null || counters !== null || previous !== null
}

export function memorySourceOf({ name, remember: values, counters, previous }: CompiledSource): MemorySource {
  return {
    name,
    remembered: values?.names.length ?? 0,
    counters: counters?.length ?? 0,
    previous: previous?.names.size ?? 0,
  }
}

export function createRecordMemory(deps: Deps): RecordMemory {
  const { memory, context, watched, counterReset } = deps
  let source: CompiledSource | null = null
  let entry: DeviceEntry | null = null
  let device: DeviceMemory | null = null
  let time: EpochMs = Number.NaN
  let mayChangeFix = false
  let full: unknown
  const previousNotes = createPreviousNotes(memory.changed)
  return {
    begin,
    mayChangeFix() {
      return mayChangeFix
    },
    isValid,
    motion,
    note,
    notePrevious,
    ended: previousNotes.ended,
    undoLast: previousNotes.undo,
    plausible,
    compareWithFleet,
  }

  /** One of sixteen positions of a device, so that it costs nothing. */
  function compareWithFleet(name: string, owner: DeviceEntry, gps: string): void {
    owner.positions += 1
    if (owner.positions % comparedEvery !== 1 || !context.live) return
    const place = placeIn(gps)
    if (!watched.isSwapped(name, owner, place, context.arrivedAt)) return
    const key = `${name}|position|latitude and longitude may be swapped`
    context.implausible({ key, isSent: true, rule: 'the positions of the other devices' }, place.latitude)
  }

  function begin(next: CompiledSource, owner: DeviceEntry, moment: EpochMs): void {
    source = null
    mayChangeFix = false
    if (!hasMemory(next)) return
    source = next
    entry = owner
    time = moment
    device = context.live ? memory.of(next.name, owner) : memory.known(next.name, owner)
    if (next.counters !== null)
      for (let slot = 0; slot < next.counters.length; slot += 1) context.counterValues[slot] = Number.NaN
    if (next.previous !== null) setPrevious(context.record, previousOf(next.previous))
    if (next.remember === null) return
    const { record } = context
    full = withRemembered(next.remember, device, record, time)
    mayChangeFix = next.fix !== null && lacksRemembered(next.remember, record)
  }

  /** None for a record that does not arrive now: later ones contain its difference. */
  function previousOf(previous: CompiledPrevious) {
    if (!context.live || device === null || device.asset !== entry?.assetId) return null
    return previousBy(previous, device, time, entry.withhold)
  }

  function notePrevious(): boolean {
    const previous = source?.previous ?? null
    if (previous === null || device === null || entry === null || !context.live) return false
    if (device.asset !== entry.assetId) moveTo(entry.assetId, device)
    const { record, root, up, arrivedAt, offsetMs } = context
    const now = arrivedAt + (offsetMs ?? Number.NaN)
    return previousNotes.note(previous, device, { time, now }, [record, root, up])
  }

  function isValid({ validWithMemory }: Fix, isValidAlone: boolean): boolean {
    const { record, root, captures, up } = context
    if ((source?.remember ?? null) === null || validWithMemory === null || full === record)
      return isValidAlone
    return validWithMemory(full, root === record ? full : root, captures, up)
  }

  function motion(): boolean | null {
    const read = source?.remember?.motion ?? null
    const { record, root, up, captures } = context
    if (read === null || full === record) return null
    return read(full, root === record ? full : root, up, captures) ?? null
  }

  function note(): void {
    if (source === null || source.remember === null || device === null || !context.live) return
    if (remember(source.remember, device, context.record, time)) memory.changed(device)
  }

  function plausible(signals: readonly string[]): readonly string[] {
    const counters = source?.counters ?? null
    if (counters === null || device === null || entry === null) return signals
    if (device.asset !== entry.assetId && context.live) moveTo(entry.assetId, device)
    const { counterValues } = context
    if (device.levels.length === 0) openSlots(device, counters)
    const { levels } = device
    let sent: readonly string[] = signals
    for (let slot = 0; slot < counters.length; slot += 1) {
      const value = counterValues[slot] ?? Number.NaN
      const counter = counters[slot]
      if (Number.isNaN(value) || counter === undefined) continue
      const before = levels[2 * slot] ?? Number.NaN
      // An older reading is never compared with a newer one.
      if (time < before) continue
      if (context.live && hasGrown(before, levels[2 * slot + 1] ?? 0, time, value, counter.rule)) {
        levels[2 * slot] = time
        levels[2 * slot + 1] = value
        memory.changed(device)
      } else if (isWithheld(counter, slot, value)) {
        const { head, tail } = counter
        sent = sent.map((signal) => (signal.startsWith(head) && signal.endsWith(tail) ? '' : signal))
      }
    }
    return sent
  }

  /** The tracker is in another vehicle now, and its counters are those of that one. */
  function moveTo(asset: string, own: DeviceMemory): void {
    own.asset = asset
    own.counters.clear()
    forgetPrevious(own)
    own.slots = []
    own.levels = []
    memory.changed(own)
  }

  function isWithheld(counter: JudgedCounter, slot: number, value: number): boolean {
    if (device === null || entry === null) return false
    const { name, rule } = counter
    settle(device)
    const before = device.asset === entry.assetId ? device.counters.get(name) : undefined
    const reading = { time, value }
    const verdict = judge(before, reading, rule, isUnset(slot))
    if (context.live && verdict.next !== null && verdict.next !== before) {
      device.counters.set(name, verdict.next)
      setLevel(device, slot, verdict.next)
      memory.changed(device)
    }
    const { kind } = verdict
    if (kind === 'plausible') return false
    if (verdict.reset !== null) {
      if (context.live) report(counter, reading, before, verdict)
      return false
    }
    const finding = findingOf(counter, kind)
    if (kind === 'placeholder' && !finding.isSent) {
      context.leftOut = true
      context.omit(finding.key)
    } else context.implausible(finding, reading.value)
    return !finding.isSent
  }

  /** Every number that the device wrote for it is a placeholder, whatever offset or expression it passed. */
  function isUnset(slot: number): boolean {
    const { record, root, up, captures, counterReads } = context
    const numbers = (counterReads[slot] ?? [])
      .map((read) => numberFrom(read(record, root, up, captures)))
      .filter((number) => Number.isFinite(number))
    return numbers.length > 0 && numbers.every(isUnsetNumber)
  }

  function report(
    { name: signal }: JudgedCounter,
    { value: after }: CounterReading,
    before: { value: number; run: { withheld: number } | null } | undefined,
    { reset: why }: CounterVerdict,
  ): void {
    if (source === null || entry === null || before === undefined || why === null) return
    const { device: name, assetId: asset } = entry
    const withheld = before.run?.withheld ?? 0
    counterReset({
      source: source.name,
      device: name,
      asset,
      signal,
      before: before.value,
      after,
      withheld,
      why,
    })
  }
}

function findingOf(counter: JudgedCounter, kind: Exclude<CounterVerdict['kind'], 'plausible'>): Finding {
  switch (kind) {
    case 'jump':
      return counter.jump
    case 'fall':
      return counter.fall
    case 'placeholder':
      return counter.placeholder
    case 'other unit':
      return counter.otherUnit
    default:
      return assertNever(kind)
  }
}
