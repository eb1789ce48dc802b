// explain-declined.ts: why sources that have the topic of a message did not take it.

import type { ConditionParts } from '../expression/condition-parts.ts'
import { isRecord } from '../path/path-eval.ts'
import { notAnObject } from '../read/map-result.ts'
import { selectRecords } from '../path/record-selection.ts'
import { rootOf, type OnDeclined } from '../routing/source-choice.ts'
import type { SourceConfig } from '../config.ts'

/** A source that has the topic and did not take the message. */
export type DeclinedSource = {
  source: string
  records: number
  /** Why it cannot read the message; null where it can. */
  unread: string | null
  /** Its `when`. */
  text: string
  /** The parts of it that do not hold for the first record; null where the message has no records. */
  parts: ConditionParts | null
}

export type DeclinedSources = {
  note: OnDeclined
  /** Those of the last message, in the order in which they were asked. */
  take(): readonly DeclinedSource[]
}

export function createDeclinedSources(configOf: (source: string) => SourceConfig | null): DeclinedSources {
  let noted: DeclinedSource[] = []
  return { note, take }

  function note(...[{ runtime, captures }, decoded, message]: Parameters<OnDeclined>): void {
    const { source } = runtime
    const text = configOf(source.name)?.when ?? ''
    const declined = { source: source.name, records: 0, unread: null, text, parts: null }
    if (decoded.kind !== 'value') {
      const unread = decoded.kind === 'refused' ? decoded.detail : 'It is empty.'
      noted.push({ ...declined, unread })
      return
    }
    const root = rootOf(source, captures, decoded.value, message)
    const { records } = selectRecords(source.each, root, captures, source.recordsMax)
    const other = records.find(({ record }) => !isRecord(record))
    const first = records.find(({ record }) => isRecord(record))
    noted.push({
      ...declined,
      records: records.length,
      unread: other === undefined ? null : notAnObject(source, other.record),
      parts: (first && source.notes?.conditions.get(text)?.(first)) ?? null,
    })
  }

  function take(): readonly DeclinedSource[] {
    const taken = noted
    noted = []
    return taken
  }
}
