// text-cursor.ts: reads the small languages of a source (paths, conditions, templates) from left to right.

import { quote } from '../../std/quote.ts'

/** A malformed text of the config. Thrown only while compiling; becomes a ConfigProblem. */
export class Malformed extends Error {}

export type Cursor = { readonly text: string; at: number }

/** Refuses the text with the place. `what` continues a sentence on the option: `has an empty key`. */
export function malformed(cursor: Cursor, what: string): never {
  throw new Malformed(`${what} at position ${cursor.at + 1} of ${quote(cursor.text, 80)}`)
}

export function isAtEnd(cursor: Cursor): boolean {
  return cursor.at >= cursor.text.length
}

export function skipSpaces(cursor: Cursor): void {
  while (cursor.text[cursor.at] === ' ' || cursor.text[cursor.at] === '\t') cursor.at += 1
}

/** Takes `word` if it is next. */
export function take(cursor: Cursor, word: string): boolean {
  if (!cursor.text.startsWith(word, cursor.at)) return false
  cursor.at += word.length
  return true
}

/** Reads a text in single or double quotes, with `\` before a quote or another `\`. */
export function takeQuoted(cursor: Cursor): string {
  const mark = cursor.text[cursor.at]
  let found = ''
  for (let at = cursor.at + 1; at < cursor.text.length; at += 1) {
    const character = cursor.text[at]
    if (character === mark) {
      cursor.at = at + 1
      return found
    }
    if (character === '\\') at += 1
    found += cursor.text[at] ?? ''
  }
  return malformed(cursor, 'has a quote that is never closed')
}
