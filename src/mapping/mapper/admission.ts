// admission.ts: decides whether a record and its device are mapped.

import type { Message } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { limitDetail, takeLimitReached } from '../expression/expression.ts'
import { isRecord } from '../path/path-eval.ts'
import type { MapResult, RecordContext } from '../types.ts'
import type { CompiledSource } from './compiled-source.ts'
import { ignored, notAnObject, quarantined, unlisted } from './map-result.ts'
import type { Route } from '../routing/routing.ts'

/** The device of the record at hand; null where the record was rejected. */
export function admitRecord({ runtime, entry, provider }: Route, context: RecordContext): DeviceEntry | null {
  const { source, devices } = runtime
  const { record, root, captures, up } = context
  context.isTimed = false
  // An expression of `each` or of a condition in `extract`.
  if (isBeyondLimit(context)) return null
  const fault = context.broken?.get(record)
  if (fault !== undefined) return context.refuse('NOT_JSON', fault)
  if (!isRecord(record)) return context.refuse('NOT_AN_OBJECT', notAnObject(source, record))
  const damage = context.badByteAt === 0 ? null : source.findDamage(context)
  if (damage !== null) return context.refuse('NOT_UTF8', damage)
  for (const rule of source.refuse)
    if (rule.holds(record, root, captures, up)) return context.refuseByRule(rule)
  // Collected values are judged when their record is complete.
  const isUnwanted =
    source.when !== null && source.coalesce === null && !source.when.holds(record, root, captures, up)
  if (isBeyondLimit(context)) return null
  if (source.when !== null && isUnwanted) return context.ignore(source.when.reason)
  if (entry) return checkProvider(entry, context)
  const name = deviceNamed(source.device, context)
  if (name === null) return null
  const named = devices.entryOf(name, provider)
  context.owner = named
  context.notes?.heard(named)
  return checkProvider(named, context)
}

/** What an expression that reached its limit would have said is not known, so the record is refused. */
export function isBeyondLimit(context: RecordContext): boolean {
  const isReached = takeLimitReached()
  if (isReached) context.refuse('EXPRESSION_LIMIT', limitDetail)
  return isReached
}

/** A payload of a provider that is not in the config would never be sent. Null where it was refused. */
export function checkProvider(entry: DeviceEntry, context: RecordContext): DeviceEntry | null {
  if (entry.deliverable || entry.ignored) return entry
  return context.refuse('UNKNOWN_PROVIDER', `The config has no provider ${quote(entry.provider, 80)}.`)
}

/** The result of all messages of a device that is ignored or quarantined; null where they are mapped. */
export function resultForDevice(
  entry: DeviceEntry | null,
  message: Message,
  source: CompiledSource,
): MapResult | null {
  if (entry === null) return null
  if (entry.ignored) return ignored(source, 'unknown device')
  return entry.quarantined ? quarantined(message, source, entry, unlisted(entry, source)) : null
}
