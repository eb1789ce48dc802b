// old-words.ts: `decimal_comma`, the word of a field of version 0.1 that expressions replaced: what the field
// is as an expression, for the message of `check`. Old conditions: ../expression/old-conditions.ts.

import { expressionOf } from '../path/path-as-expression.ts'
import { pathIn } from '../path/paths-used.ts'

/** What to write instead of the word `key` of a field; undefined for any other key. */
export function insteadOfWord(key: string, field: unknown): string | undefined {
  if (key !== 'decimal_comma') return undefined
  const { path } = Object(field) as { path?: unknown }
  const texts = [path].flat()
  const paths = texts.flatMap((text) => (typeof text === 'string' ? pathIn(text) : [])).map(expressionOf)
  const [last, ...before] = paths.toReversed()
  if (last === undefined || paths.length < texts.length)
    return 'write an expression: `expr`. docs/mapping.md describes the language.'
  // Of several paths the first with a value counts.
  const found = before.reduce((otherwise, one) => `(has(${one}) ? ${one} : ${otherwise})`, last)
  return `write expr: ${JSON.stringify(`number(${found}.replace(",", "."))`)} instead of path, decimal_comma.`
}
