// condition-hints.ts: says how a condition is written, where it has a sign of another language: `vel = 3`,
// `a && b`, `din & 8`.

import { malformed, type Cursor } from './text-cursor.ts'

/** Longer ones first. */
const signs: readonly (readonly [found: string, right: string])[] = [
  ['===', '=='],
  ['!==', '!='],
  ['=>', '>='],
  ['=<', '<='],
  ['<>', '!='],
  ['~=', '!='],
  ['&&', 'and'],
  ['||', 'or'],
  ['AND', 'and'],
  ['OR', 'or'],
  ['NOT', 'not'],
  ['IN', 'in'],
]

/** Refuses a sign that follows an operand, which began at `start`. */
export function refuseForeignSign(cursor: Cursor, start: number): void {
  const { text, at } = cursor
  for (const [found, right] of signs)
    if (text.startsWith(found, at) && !continuesWord(found, text[at + found.length]))
      malformed(cursor, `has ${found} instead of "${right}"`)
  if (text[at] === '=' && text[at + 1] !== '=') malformed(cursor, 'has = instead of "=="')
  if (text[at] === '&') malformed(cursor, bitHint(text.slice(start, at).trim(), text.slice(at + 1)))
  if (text[at] === '|') malformed(cursor, 'has | instead of "or"')
  if (text[at] === '"' || text[at] === "'")
    malformed(cursor, 'has a quote that begins no text; a text has one on both sides, such as "vp",')
}

/** Refuses a sign in the place of an operand. */
export function refuseForeignStart(cursor: Cursor): void {
  const { text, at } = cursor
  const next = text[at] ?? ''
  if (next === '!') malformed(cursor, 'has ! instead of "not"')
  if (next === '=' || next === '<' || next === '>')
    malformed(cursor, `has ${next} where a value is expected; comparisons are == != < <= > >=,`)
  if (next !== '' && '“”„‘’«»`'.includes(next))
    malformed(cursor, `has ${next} instead of a quote; a text is written "vp" or 'vp',`)
}

/** Refuses a sign inside of a key without quotes, which began at `start`: `din&8`, `a||b`. */
export function refuseSignInKey(cursor: Cursor, start: number): void {
  const { text, at: end } = cursor
  const key = text.slice(start, end)
  const found = /&&|\|\||&(?=\s*(?:0x)?[0-9])/.exec(key)
  if (found === null || /["']/.test(key)) return
  cursor.at = start + found.index
  refuseForeignSign(cursor, start)
}

function continuesWord(word: string, next: string | undefined): boolean {
  return /[A-Z]/.test(word) && next !== undefined && /\w/.test(next)
}

/** `din & 8` tests bit 3. */
function bitHint(left: string, right: string): string {
  const path = /^[\w$."'[\]-]+$/.test(left) ? left : 'din'
  const written = /^\s*(0[xX][0-9a-fA-F]{1,13}|[0-9]{1,15})\b/.exec(right)?.[1]
  const bits = written === undefined ? [] : bitsIn(BigInt(written))
  const [low, high] = [bits[0], bits.at(-1)]
  if (low === undefined || high === undefined)
    return `has &; a bit is read with $bit, such as ${path}.$bit(3),`
  const mask = `has & ${written};`
  if (low === high) return `${mask} this bit is read with ${path}.$bit(${low}),`
  if (bits.length === high - low + 1) return `${mask} these bits are read with ${path}.$bit(${low}-${high}),`
  return `${mask} these bits are read with ${bits.map((bit) => `${path}.$bit(${bit})`).join(', ')},`
}

function bitsIn(mask: bigint): number[] {
  const bits: number[] = []
  for (let bit = 0; mask >> BigInt(bit) > 0n; bit += 1) if ((mask >> BigInt(bit)) & 1n) bits.push(bit)
  return bits
}
