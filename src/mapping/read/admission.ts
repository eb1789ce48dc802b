// admission.ts: decides whether a record and its device are mapped.

import { quote } from '../../std/quote.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { withinLimit } from '../expression/expression.ts'
import { isRecord } from '../path/path-eval.ts'
import type { Route } from '../routing/routing.ts'
import { notAnObject } from './map-result.ts'
import type { Reading } from './reading.ts'

/** The device of a record; null where the record was rejected. `broken`: records that could not be read. */
export function admitRecord(
  { runtime, entry, provider }: Route,
  reading: Reading,
  broken: ReadonlyMap<unknown, string> | undefined,
): DeviceEntry | null {
  const { source, devices } = runtime
  const { record, at } = reading
  const fault = broken?.get(record)
  if (fault !== undefined) return reading.refuse('NOT_JSON', fault)
  if (!isRecord(record)) return reading.refuse('NOT_AN_OBJECT', notAnObject(source, record))
  const damage = reading.badByteAt === 0 ? null : source.findDamage(reading)
  if (damage !== null) return reading.refuse('NOT_UTF8', damage)
  for (const { holds, reason, detail } of source.refuse)
    if (holds(reading)) {
      reading.refusedBy = reason
      reading.rejection = { kind: 'refused', reason, detail }
      return null
    }
  // Collected values are judged when their record is complete.
  if (source.coalesce === null && !isWanted(reading, source.when)) return null
  if (entry) return admitted(entry, reading)
  const name = deviceNamed(source.device, reading)
  if (name === null) return null
  const named = devices.entryOf(name, provider)
  at.owner = named
  at.notes?.heard(named)
  return admitted(named, reading)
}

/** The name of the device, also of a record that is rejected; null where there is none. */
export function deviceNameIn({ device }: SourcePlan, reading: Reading): string | null {
  return withinLimit(() => deviceNamed(device, reading)) ?? null
}

/** False where `when` does not hold: the record is ignored. */
export function isWanted(reading: Reading, when: Route['runtime']['source']['when']): boolean {
  if (when === null) return true
  reading.isWanted = when.holds(reading)
  if (!reading.isWanted) reading.ignore(when.reason)
  return reading.isWanted
}

/** A payload of a provider that is not in the config would never be sent. Null where it was refused. */
export function admitted(entry: DeviceEntry, reading: Reading): DeviceEntry | null {
  reading.entry = entry
  if (entry.deliverable || entry.ignored) return entry
  return reading.refuse('UNKNOWN_PROVIDER', `The config has no provider ${quote(entry.provider, 80)}.`)
}
