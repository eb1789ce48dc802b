// explain-unread.ts: the keys of one message that no path of its source reads.

import type { Message } from '../../domain/message.ts'
import type { SourceConfig } from '../config.ts'
import type { CompiledSource } from '../mapper/compiled-source.ts'
import { compileFindUnread, type UnreadKeys } from '../path/unread-keys.ts'
import type { ExplainedField } from './explain-field.ts'
import type { Trace } from './explain-trace.ts'

const visitsMax = 5000
const recordsMax = 1000

/** Null where it cannot be said: bytes that cannot be decoded, or records of several messages. */
export type ExplainUnread = (
  message: Message,
  captures: readonly string[],
  traces: readonly Trace[],
) => UnreadKeys | null

export function compileExplainUnread(config: SourceConfig, source: CompiledSource): ExplainUnread {
  const find = compileFindUnread(config, visitsMax)
  const { extract, each } = source
  const { decode } = source.encoding
  return ({ bytes }, captures, traces) => {
    if (find === null) return null
    // A decoder with memory is asked once for each message, by the mapper.
    if (!decode) return traces[0] ? find(traces[0].root, traces) : null
    const decoded = decode(bytes)
    if (decoded.kind !== 'value') return null
    const root = extract === null ? decoded.value : extract(decoded.value, decoded.value, captures)
    if (each?.kind === 'chain')
      return find(
        root,
        each.expand(root, recordsMax).map((place) => ({ ...place, root })),
      )
    const chosen: unknown = each === null ? root : each.read(root, root)
    const records: readonly unknown[] = each !== null && Array.isArray(chosen) ? chosen : [chosen]
    return find(
      root,
      records.map((record) => ({ record, root, up: undefined })),
    )
  }
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
