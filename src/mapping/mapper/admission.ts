// admission.ts: whether a record, and its device, is to be mapped at all.

import type { Message } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import type { RecordContext } from '../reasons.ts'
import { deviceNamed } from '../devices/device-name.ts'
import { ignored, notAnObject, quarantined, unlisted, type MapResult } from './map-result.ts'
import type { Up } from '../path/path.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { Route } from './routing.ts'
import type { CompiledSource } from './record-mapper.ts'
import { isRecord } from '../path/path-eval.ts'

/** The device of a record that is to be mapped; null where it is not, and the context knows why. */
export function admitRecord(
  route: Route,
  record: unknown,
  root: unknown,
  up: Up,
  message: Message,
  context: RecordContext,
): DeviceEntry | null {
  const { source, devices: registry } = route.runtime
  if (!isRecord(record)) return context.refuse('NOT_AN_OBJECT', notAnObject(source, record))
  for (const rule of source.refuse)
    if (rule.holds(record, root, route.captures, up)) return context.refuseByRule(rule)
  // What is collected is judged when it is complete.
  if (source.when && source.coalesce === null && !source.when.holds(record, root, route.captures, up))
    return context.ignore(source.when.reason)
  if (route.entry) return checkProvider(route.entry, context)
  const name = deviceNamed(source.device, record, root, up, route.captures, message.sender, context)
  return name === null ? null : checkProvider(registry.entryOf(name, route.provider), context)
}

/** A payload of a provider that the config does not have would wait for ever. Null where it was refused. */
export function checkProvider(entry: DeviceEntry, context: RecordContext): DeviceEntry | null {
  if (entry.deliverable) return entry
  return context.refuse('UNKNOWN_PROVIDER', `The config has no provider ${quote(entry.provider, 80)}.`)
}

/** What becomes of a device's messages whatever they say; null where they are mapped. */
export function resultForDevice(
  entry: DeviceEntry | null,
  message: Message,
  source: CompiledSource,
): MapResult | null {
  if (entry === null) return null
  if (entry.ignored) return ignored(source, 'unknown device')
  return entry.quarantined ? quarantined(message, source, entry, unlisted(entry)) : null
}
