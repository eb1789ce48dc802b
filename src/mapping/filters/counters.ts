// counters.ts: judges the counters of a record (odometer, engine hours, fuel used) by what is remembered
// (memory/counter-memory.ts). A value that jumps or falls has its share in the payloadId and is not sent.

import type { EpochMs } from '../../std/clock.ts'
import { hasGrown, judge, type CounterReset } from '../memory/counter-memory.ts'
import type { CounterState, DeviceMemory } from '../memory/device-memory.ts'
import type { Memory } from '../memory/memory.ts'
import { numberFrom } from '../path/value.ts'
import { isUnsetNumber } from '../plausibility/unset-numbers.ts'
import type { Reading } from '../read/reading.ts'
import type { JudgedCounter } from './judged-counters.ts'
import { takeAsset } from './remembered-values.ts'

export type CounterDeps = {
  memory: Pick<Memory, 'changed'>
  counterReset: (reset: CounterReset) => void
}

/** The signals with '' in the place of those that are not sent; the same list where all are sent. */
export function judgedSignals(
  reading: Reading,
  source: { name: string; counters: readonly JudgedCounter[] | null },
  deps: CounterDeps,
): readonly string[] {
  const { counters } = source
  const { memory, signals } = reading
  if (counters === null || memory === null) return signals
  takeAsset(reading, memory, deps.memory)
  const time = reading.moment
  let sent: readonly string[] = signals
  for (let slot = 0; slot < counters.length; slot += 1) {
    const value = reading.counters?.values[slot] ?? Number.NaN
    const counter = counters[slot]
    if (Number.isNaN(value) || counter === undefined) continue
    const before = memory.counters.get(counter.name)
    const last = before?.run === null ? before : undefined
    if (reading.live && last !== undefined && hasGrown(last, time, value, counter.rule)) {
      last.time = time
      last.value = value
      deps.memory.changed(memory)
    } else if (isWithheld(reading, memory, source.name, { counter, slot, time, value }, deps)) {
      const { head, tail } = counter
      sent = sent.map((signal) => (signal.startsWith(head) && signal.endsWith(tail) ? '' : signal))
    }
  }
  return sent
}

type Judged = { counter: JudgedCounter; slot: number; time: EpochMs; value: number }

function isWithheld(
  reading: Reading,
  memory: DeviceMemory,
  source: string,
  { counter, slot, time, value }: Judged,
  deps: CounterDeps,
): boolean {
  const { name, rule } = counter
  const before = memory.asset === reading.entry?.assetId ? memory.counters.get(name) : undefined
  const verdict = judge(before, { time, value }, rule, isUnset(reading, slot))
  if (reading.live && verdict.next !== null && verdict.next !== before) {
    memory.counters.set(name, verdict.next)
    deps.memory.changed(memory)
  }
  const { kind } = verdict
  if (kind === 'plausible') return false
  if (verdict.reset !== null) {
    if (reading.live && before !== undefined)
      deps.counterReset(resetOf(reading, source, name, { value, before, why: verdict.reset }))
    return false
  }
  const finding = counter.findings[kind]
  if (kind === 'placeholder' && !finding.isSent) {
    reading.leftOut = true
    reading.omit(finding.key)
  } else reading.implausible(finding, value)
  return !finding.isSent
}

/** Every number that the device wrote for it is a placeholder, whatever offset or expression it passed. */
function isUnset(reading: Reading, slot: number): boolean {
  const numbers = (reading.counters?.reads[slot] ?? [])
    .map((read) => numberFrom(read(reading)))
    .filter((number) => Number.isFinite(number))
  return numbers.length > 0 && numbers.every(isUnsetNumber)
}

function resetOf(
  { entry }: Reading,
  source: string,
  signal: string,
  { value, before, why }: { value: number; before: CounterState; why: CounterReset['why'] },
): CounterReset {
  const { device = '', assetId: asset = '' } = entry ?? {}
  const withheld = before.run?.withheld ?? 0
  return { source, device, asset, signal, before: before.value, after: value, withheld, why }
}
