// damaged-text.ts: which value that a source reads of a record is damaged: a text with bytes that are not
// UTF-8. Other values do no harm. It is asked only where a message has such bytes.

import type { SourceConfig } from '../config.ts'
import { compilePath, stepsText, type Read } from '../path/path.ts'
import { pathsReadBy } from '../path/paths-used.ts'
import type { RecordContext } from '../types.ts'

/** A sentence about the value; null where none is damaged. */
export type FindDamage = (context: RecordContext) => string | null

type Text = { name: string; read: Read; isAscii: boolean }

export function compileFindDamage(source: SourceConfig): FindDamage {
  // Compiled at the first such message: most sources never have one.
  let places: readonly Text[] | undefined
  return (context) => {
    places ??= placesReadBy(source)
    const found = places.find(({ read, isAscii }) => isDamaged(read(context), isAscii))
    if (found === undefined) return null
    return (
      `The value at ${found.name} has bytes that are not UTF-8 (the first one is byte ${context.badByteAt} of the ` +
      'message). Set the `charset` of the sender, such as `charset: latin1`, and remap the message.'
    )
  }
}

function placesReadBy({ extract, coalesce, ...options }: SourceConfig): readonly Text[] {
  const unpacked = extract.flatMap(({ from, when }) => pathsReadBy({ path: from, when }))
  const collected = pathsReadBy({ coalesce, path: coalesce?.value })
  return [...unpacked, ...collected, ...pathsReadBy(options)].map(({ path }) => {
    const name = stepsText('', path.steps)
    return { name, read: compilePath(path), isAscii: !/[^\0-\x7f]/.test(name) }
  })
}

/** A key with other letters is not found where its own bytes are damaged. */
function isDamaged(value: unknown, isAscii: boolean): boolean {
  return typeof value === 'string' ? value.includes('\uFFFD') : value === undefined && !isAscii
}
