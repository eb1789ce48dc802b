// dead-letter-reader.ts: reads dead letters, a page at a time, as kept-message-reader.ts reads kept messages.

import type { DeadLetter } from '../../domain/dead-letter.ts'
import { firstPage, pageEntriesMax, type ReadDeps } from './kept-message-reader.ts'
import { keyAfter, letterIdOf, letterKeyOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { letterRecord } from '../chunk-log/record-codec.ts'
import type { DeadLetterEntry, DeadLetterFilter } from '../spool.ts'

/** Dead letters, oldest first. A damaged one is left out here and left alone on the disk. */
export async function* readLetters(
  deps: ReadDeps,
  filter: DeadLetterFilter,
): AsyncGenerator<DeadLetterEntry> {
  const { state, desk } = deps
  const range = tableRange(table.deadLetters)
  let left = filter.limit
  let from = range.gte
  while (left > 0) {
    const page = await desk.reading(async () => {
      const raw = await firstPage(state.store, { ...range, gte: from }, pageEntriesMax)
      return {
        last: raw.at(-1),
        entries: raw.flatMap(([key, value]) => showLetter(deps, filter, key, value)),
      }
    })
    if (page.last === undefined) return
    from = keyAfter(page.last[0])
    const entries = page.entries.slice(0, left)
    yield* entries
    left -= entries.length
  }
}

export async function readLetter({ state, desk }: ReadDeps, id: string): Promise<DeadLetterEntry | null> {
  if (!/^[0-9a-f]{32}$/.test(id)) return null
  const key = letterKeyOf(id)
  return desk.reading(async () => {
    const value = await state.store.get(key)
    const letter = letterRecord.decode(value)
    if (value === undefined || letter === null) return null
    return desk.show(id, { kind: 'letter', place: { key, bytes: value.length } })
      ? { id, deadLetter: letter }
      : null
  })
}

function showLetter(
  { desk }: ReadDeps,
  filter: DeadLetterFilter,
  key: Buffer,
  value: Buffer,
): DeadLetterEntry[] {
  const letter = letterRecord.decode(value)
  if (letter === null || !fits(letter, filter)) return []
  const id = letterIdOf(key)
  return desk.show(id, { kind: 'letter', place: { key, bytes: value.length } })
    ? [{ id, deadLetter: letter }]
    : []
}

function fits({ stage, reason }: DeadLetter, filter: DeadLetterFilter): boolean {
  return (filter.stage ?? stage) === stage && (filter.reason ?? reason) === reason
}
