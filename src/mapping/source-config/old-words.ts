// old-words.ts: words of `map` that went, and what to write instead, for the message of `check`. Old
// conditions: ../expression/old-conditions.ts.
//
//   decimal_comma, default   words of a field that expressions replaced
//   speed_units              every speed is sent in km/h

import type { ConfigProblem } from '../../std/config-problem.ts'
import { expressionOf } from '../path/path-as-expression.ts'
import { pathIn } from '../path/paths-used.ts'

type Field = { path?: unknown; absent?: unknown; default?: unknown }

/** `found`: the value that the paths of the field find, as an expression. */
const expressions: Readonly<Record<string, (found: string, field: Field) => string>> = {
  decimal_comma: (found) => `number(${found}.replace(",", "."))`,
  default(found, { absent, default: otherwise }) {
    const isThere = Array.isArray(absent) ? ` && !(${found} in ${JSON.stringify(absent)})` : ''
    return `has(${found})${isThere} ? ${found} : ${JSON.stringify(otherwise)}`
  },
}

/** What to write instead of the word at the end of `path`, one of `options`; undefined for any other. */
export function insteadOfWord(path: ConfigProblem['path'], options: unknown): string | undefined {
  const [of, word] = path.slice(-2)
  const key = String(word)
  if (!path.includes('map')) return undefined
  if (key === 'default' && (of === 'latitude' || of === 'longitude'))
    return (
      'remove it: it gives messages without a position a false one. `value` is for ' +
      'an asset that does not move.'
    )
  if (key === 'speed_units')
    return 'write `unit` of the speed, such as `unit: mph`: every speed is sent in km/h.'
  const write = Object.hasOwn(expressions, key) ? expressions[key] : undefined
  if (write === undefined) return undefined
  const field = Object(options) as Field
  const texts = [field.path].flat()
  const paths = texts.flatMap((text) => (typeof text === 'string' ? pathIn(text) : [])).map(expressionOf)
  const [last, ...before] = paths.toReversed()
  if (last === undefined || paths.length < texts.length)
    return 'write an expression: `expr`. docs/mapping.md describes the language.'
  // Of several paths the first with a value counts.
  const found = before.reduce((otherwise, one) => `(has(${one}) ? ${one} : ${otherwise})`, last)
  return `write expr: ${JSON.stringify(write(found, field))} instead of path, ${key}.`
}
