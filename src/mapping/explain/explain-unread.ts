// explain-unread.ts: the keys of one message that no path of its source reads.

import type { Message } from '../../domain/message.ts'
import type { SourceConfig } from '../config.ts'
import type { CompiledSource } from '../mapper/compiled-source.ts'
import { compileFindUnread, type UnreadKeys } from '../path/unread-keys.ts'
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
