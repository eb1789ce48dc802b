// old-words.ts: the words of a field that expressions replaced in version 0.2, for the messages of `check`:
// what the field is as an expression.
//
//   bit, negative, plus, minus, over, decimal_comma, and `unit` as { path, values }
//
// They computed in this order, behind `path` and before `scale`.

import { celOfOldCondition } from '../expression/old-conditions.ts'
import { unitRatios } from '../fields/units.ts'
import { expressionOf } from '../path/path-as-expression.ts'
import { parsePathAt } from '../path/path.ts'
import { isAtEnd, Malformed } from '../path/text-cursor.ts'

type Words = Readonly<Record<string, unknown>>

const words: ReadonlySet<string> = new Set(['bit', 'negative', 'plus', 'minus', 'over', 'decimal_comma'])

/** What to write instead of the word `key` of a field; undefined for any other key. */
export function insteadOfWord(key: string, field: unknown): string | undefined {
  if (typeof field !== 'object' || field === null) return undefined
  const isNamedUnit = key === 'unit' && isRecord((field as Words)['unit'])
  if (!isNamedUnit && !words.has(key)) return undefined
  const text = expressionOfField(field as Words)
  if (text === undefined) return 'write an expression: `expr`. docs/mapping.md describes the language.'
  const others = ['path', ...words, ...(isNamedUnit ? ['unit'] : [])].filter((word) => word in field)
  return `write expr: ${JSON.stringify(text)} instead of ${others.join(', ')}.`
}

/** Undefined where a part of it cannot be read. */
function expressionOfField(field: Words): string | undefined {
  const isComma = field['decimal_comma'] === true
  const found = valueOf(field['path'], isComma)
  if (found === undefined) return undefined
  const { bit, negative, unit } = field
  let text = found
  if (typeof bit === 'number' || typeof bit === 'string') {
    const [low = 0, high = low] = String(bit).split('-').map(Number)
    text = low === high ? `bit(${text}, ${low})` : `bits(${text}, ${low}, ${high - low + 1})`
  } else if (negative !== undefined || isComma) text = numberOf(text)
  if (typeof negative === 'string') {
    const condition = celOfOldCondition(negative)
    if (condition === undefined) return undefined
    text = `(${condition} ? -abs(${text}) : ${text})`
  }
  for (const [word, sign] of [
    ['plus', '+'],
    ['minus', '-'],
    ['over', '/'],
  ] as const) {
    if (field[word] === undefined) continue
    const second = operandOf(field[word], isComma)
    if (second === undefined) return undefined
    const isRatio = word === 'over'
    text = `${isRatio ? factor(text) : numberOf(text)} ${sign} ${isRatio ? factor(second) : second}`
  }
  return isRecord(unit) ? withUnit(text, unit) : text
}

function numberOf(text: string): string {
  return /^[\w.[\]"]+$/.test(text) ? `number(${text})` : text
}

/** In a product or a ratio. */
function factor(text: string): string {
  return / [-+*/] /.test(text) && !text.startsWith('(') ? `(${text})` : numberOf(text)
}

function operandOf(operand: unknown, isComma: boolean): string | undefined {
  const { path, scale = 1 } = isRecord(operand) ? operand : { path: operand }
  const value = valueOf(path, isComma)
  if (value === undefined) return undefined
  return scale === 1 ? numberOf(value) : `${numberOf(value)} * ${String(scale)}`
}

function withUnit(text: string, { path, values, default: usual }: Words): string | undefined {
  const name = valueOf(path, false)
  if (name === undefined || !isRecord(values)) return undefined
  const factors = Object.entries(values).map(
    ([word, unit]) => `${name} == ${JSON.stringify(word)} ? ${factorOf(unit)} : `,
  )
  const otherwise = usual === undefined ? 'null' : `(has(${name}) ? null : ${factorOf(usual)})`
  return `${factor(text)} * (${factors.join('')}${otherwise})`
}

function factorOf(unit: unknown): string {
  const ratio = typeof unit === 'string' ? unitRatios[unit] : undefined
  return ratio === undefined ? '1' : String(Number(ratio.numerator) / Number(ratio.denominator))
}

/** Of one path, or of several of which the first with a value counts. */
function valueOf(path: unknown, isComma: boolean): string | undefined {
  const texts = [path].flat().map(pathText)
  const [last, ...before] = texts.toReversed()
  if (last === undefined || before.includes(undefined)) return undefined
  const text = before.reduce<string>((otherwise, one) => `(has(${one}) ? ${one} : ${otherwise})`, last)
  return isComma ? `number(${text}.replace(",", "."))` : text
}

function pathText(path: unknown): string | undefined {
  if (typeof path !== 'string') return undefined
  const cursor = { text: path, at: 0 }
  try {
    const found = parsePathAt(cursor, true)
    return isAtEnd(cursor) ? expressionOf(found) : undefined
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return undefined
  }
}

function isRecord(value: unknown): value is Words {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
