// names-read.ts: which of the values that come one by one a source makes use of: all others are noise, and
// some vehicles send hundreds of those a second.
//
// A value counts where a path of the source begins with its name: in `map`, in `fix`, in a condition. It is
// read off the config as it stands, so that an option that is new tomorrow is seen as well: every `path`, and
// every text that is a condition (`when`, `valid`).

import { Malformed, skipSpaces, take, takeQuoted, type Cursor } from '../cursor.ts'
import { parsePath, parsePathAt, type Path } from '../path.ts'

/** Names that paths anywhere in `options` begin with. What is malformed is told elsewhere. */
export function namesReadBy(options: unknown): Set<string> {
  const names = new Set<string>()
  collect(options, names)
  // The record's own time is made when it closes; a device that sends a value of that name cannot forge it.
  names.delete('$time')
  return names
}

function collect(options: unknown, names: Set<string>): void {
  if (typeof options !== 'object' || options === null) return
  for (const [key, option] of Object.entries(options) as [string, unknown][]) {
    const texts = (Array.isArray(option) ? option : [option]).filter((text) => typeof text === 'string')
    if (key === 'path') for (const text of texts) attempt(() => addName(parsePath(text), names))
    else if (key === 'when' || key === 'valid')
      for (const text of texts) attempt(() => addNamesOf({ text, at: 0 }, names))
    else collect(option, names)
  }
}

function attempt(read: () => void): void {
  try {
    read()
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
}

function addName({ from, steps: [first] }: Path, names: Set<string>): void {
  // Of a record that was put together, the message itself is the record.
  if (from !== 'up' && first?.kind === 'key') names.add(first.key)
}

const words = new Set(['and', 'or', 'not', 'in', 'exists', 'true', 'false', 'null'])

/** The paths of a condition are what is neither text, capture, number, word nor sign in it (when.ts). */
function addNamesOf(cursor: Cursor, names: Set<string>): void {
  let inExists = false
  for (;;) {
    skipSpaces(cursor)
    const next = cursor.text[cursor.at]
    if (next === undefined) return
    if (next === '{') {
      const end = cursor.text.indexOf('}', cursor.at)
      cursor.at = end === -1 ? cursor.text.length : end + 1
    } else if ((next === '"' || next === "'") && !inExists) {
      takeQuoted(cursor)
    } else if ('()=!<>,'.includes(next)) {
      cursor.at += 1
    } else if (take(cursor, 'exists(')) {
      skipSpaces(cursor)
      inExists = true
      continue
    } else {
      addOperand(cursor, names, inExists)
    }
    inExists = false
  }
}

function addOperand(cursor: Cursor, names: Set<string>, quotedStart: boolean): void {
  const start = cursor.at
  while (!isAtBreak(cursor)) cursor.at += 1
  const word = cursor.text.slice(start, cursor.at)
  if (words.has(word) || (word !== '' && Number.isFinite(Number(word)))) return
  cursor.at = start
  addName(parsePathAt(cursor, quotedStart), names)
}

function isAtBreak({ text, at }: Cursor): boolean {
  return at >= text.length || ' \t()[]{}"\'<>=!,'.includes(text[at] ?? '')
}
