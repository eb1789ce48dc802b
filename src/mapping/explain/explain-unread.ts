// explain-unread.ts: the keys of one message that no path of its source reads, by the reads of its plan.
//
// A message of a source that collects is judged by what reads its name, value and time; what was collected,
// by the paths that read the names. The user properties of MQTT 5 that nothing reads stand behind the keys.

import type { Message } from '../../domain/message.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import type { SourceConfig } from '../config.ts'
import { unreadProperties } from '../path/packet-properties.ts'
import { findUnread, keysMax, stepText, type UnreadKeys } from '../path/unread-keys.ts'
import { selectRecords } from '../path/record-selection.ts'
import type { Place } from '../types.ts'
import type { ExplainedField } from './explain-effects.ts'

/** Values of a message that are looked at. No further record can be among them. */
const limits = { visitsMax: 5000 }

/** Null for bytes that cannot be decoded. */
export function unreadOfMessage(
  { config, source }: { config: SourceConfig; source: SourcePlan },
  message: Message,
  captures: readonly string[],
  traces: readonly Place[],
): UnreadKeys | null {
  const keys = keysOf(source, message, captures, traces)
  return keys && withProperties(keys, unreadProperties(config, message))
}

/** Of a record that was collected from several messages. */
export function unreadOfCollected(source: SourcePlan, trace: Place): UnreadKeys | null {
  return source.coalesce && findUnread(source.reads().record, trace.root, [trace], limits)
}

function keysOf(
  source: SourcePlan,
  { bytes }: Message,
  captures: readonly string[],
  traces: readonly Place[],
): UnreadKeys | null {
  const { record, part } = source.reads()
  const { decode } = source.encoding
  const find = (root: unknown, places: readonly Place[]) => findUnread(part ?? record, root, places, limits)
  // A decoder with memory is asked once for each message, by the mapper.
  if (!decode) return traces[0] ? find(traces[0].root, traces) : null
  const decoded = decode(bytes)
  if (decoded.kind !== 'value') return null
  const root = source.extract === null ? decoded.value : source.extract(decoded.value, { captures })
  const { records } = selectRecords(source.each, root, captures, limits.visitsMax)
  return find(root, records.slice(0, limits.visitsMax))
}

function withProperties(unread: UnreadKeys, names: readonly string[]): UnreadKeys {
  if (names.length === 0) return unread
  const shown = names.slice(0, keysMax).map((name) => `$properties.${stepText(name)}`)
  const more = unread.more + names.length - shown.length
  return { ...unread, keys: [...unread.keys, ...shown], more }
}

type RecordResult = { device: { name: string | null }; fields: readonly ExplainedField[] }

/** Without the fields that every record has. */
export function nearMissing(unread: UnreadKeys, records: readonly RecordResult[]): UnreadKeys {
  const near = unread.near.filter((field) => records.length === 0 || records.some((one) => lacks(one, field)))
  return { ...unread, near }
}

const signalTypes: Readonly<Record<string, string>> = {
  odometer: 'OBD_LIFETIME_ODOMETER',
  'engine hours': 'OBD_TOTAL_ENGINE_TIME',
}

function lacks({ device, fields }: RecordResult, name: string): boolean {
  if (name === 'device') return device.name === null
  const type = signalTypes[name]
  return !fields.some(
    ({ option, field, value }) =>
      value !== undefined && (type === undefined ? option === name : field.startsWith(type)),
  )
}
