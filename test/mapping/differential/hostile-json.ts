// hostile-json.ts: writes messages as JSON in all the ways in which a device, or an attacker, may write them: numbers
// of every spelling, escape sequences, keys twice, blanks, wrong types, long and broken texts.

import type { Random } from '../../support/random.ts'

/** What a source reads: a value of its own for each message, or an object of these. */
export type Template = { readonly [key: string]: Template | ((random: Random) => unknown) }

/** A number as it is to be written. */
export class Spelled {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const numbers = [
  '0',
  '-0',
  '0.0',
  '-0.0',
  '1',
  '1.0',
  '1e0',
  '1E+2',
  '1.5e-7',
  '0.000001',
  '0.0000001',
  '-0.0000009',
  '90',
  '90.000000000000',
  '90.00000000000001',
  '-90.0000000000001',
  '180.0',
  '360',
  '360.0',
  '359.9999999999999',
  '99999999999999.9',
  '999999999999999',
  '9999999999999999',
  '9007199254740993',
  '2147483647',
  '4294967295',
  '4294967.295',
  '2147483.647',
  '1000000000000000000000',
  '123456.789012345',
  '1234567.89012345',
  '12345678.90123456',
  '0.1234567890123456',
  '0.00001',
  '-5',
  '-99999999999999999',
  '251',
  '10000001',
  '1769902000',
  '1769902000001',
  '1769902000.123456',
  '4102444800000',
  '01',
  '1.',
  '.5',
  '+1',
  '--1',
  '-',
  '1e',
  '0x10',
  'NaN',
  'Infinity',
  '-inf',
  '1_000',
]

const texts = [
  '',
  ' ',
  'x',
  '51.3',
  '51,3',
  '1e3',
  'true',
  'yes',
  'off',
  '0',
  '1',
  '-1',
  '2026-01-31T23:26:40Z',
  '2026-01-31T23:26:40.123+02:00',
  '2026-01-31 23:26',
  '1769902000001',
  'M\u00fcller',
  '\u65e5\u672c\u8a9e',
  '\ud83d\ude9a',
  '\u007f',
  '\u0000',
  '\ud800',
  'a"b\\c/d',
  'a'.repeat(300),
  'long '.repeat(800),
]

const others: readonly unknown[] = [null, true, false, [], {}, [1, [2, { a: 3 }]], { lat: 1 }, [[[[]]]]]

const blanks = ['', '', '', '', ' ', '\n', '\t', '\r\n', '  \n ']
const badBlanks = ['\u00a0', '\f', '\v', '\ufeff', '\0']
const ends = ['', '', '', ' ', '\n', '\0', '\0\0 \n', ' x', '{}', ',', '\u00a0']

export function oddValue(random: Random): unknown {
  const kind = random.below(5)
  if (kind < 2) return new Spelled(random.pick(numbers))
  if (kind === 4) return new Spelled(longNumber(random.pick(['', '', '1', '17', '5000']), random))
  return kind === 2 ? random.pick(texts) : random.pick(others)
}

/** With as many digits as a double holds, some more or some less; or nearly zero. */
function longNumber(whole: string, random: Random): string {
  if (random.chance(0.3)) return `0.${'0'.repeat(3 + random.below(6))}${1 + random.below(1000)}`
  const places = 10 + random.below(8)
  return `${whole === '' ? random.below(90) : whole}.${Array.from({ length: places }, () => random.below(10)).join('')}`
}

/** The bytes of one message. */
export function hostileMessage(template: Template, random: Random): Buffer {
  // Most messages have one fault or none: with more of them nearly every message is parsed.
  const faults = random.pick([0, 0, 0, 0.02, 0.02, 0.08, 0.4])
  const isBlank = random.chance(0.2)
  const text = objectText(template, { random, faults, isBlank }, 0)
  const around = random.chance(0.1) ? random.pick(blanks) + text + random.pick(ends) : text
  const bytes = Buffer.from(random.chance(0.01) ? `\ufeff${around}` : around)
  return random.chance(faults) ? brokenBytes(bytes, random) : bytes
}

type How = { random: Random; faults: number; isBlank: boolean }

function objectText(template: Template, how: How, depth: number): string {
  const { random, faults } = how
  let entries = Object.entries(template)
  if (random.chance(faults)) entries = entries.filter(() => random.chance(0.8))
  if (random.chance(faults)) entries = entries.toReversed()
  const members = entries.flatMap(([key, inner]) => {
    const own = memberText(key, inner, how, depth)
    if (random.chance(faults / 4)) return [own, memberText(key, inner, how, depth)]
    return random.chance(faults / 2) ? [extraText(how, depth), own] : [own]
  })
  if (random.chance(faults)) members.push(extraText(how, depth))
  const end = random.chance(faults / 20) ? random.pick([',', ' ', ']']) : ''
  return `{${gap(how)}${members.join(`${gap(how)},${gap(how)}`)}${gap(how)}${end}}`
}

function memberText(key: string, inner: Template[string], how: How, depth: number): string {
  const { random, faults } = how
  const value =
    random.chance(faults) || typeof inner === 'function'
      ? valueText(random.chance(faults) ? oddValue(random) : plainOf(inner, random), how, depth)
      : objectText(inner, how, depth + 1)
  return `${keyText(key, how)}${gap(how)}:${gap(how)}${value}`
}

function plainOf(inner: Template[string], random: Random): unknown {
  return typeof inner === 'function' ? inner(random) : oddValue(random)
}

function extraText(how: How, depth: number): string {
  const { random } = how
  const key = random.pick([
    'x',
    '__proto__',
    'constructor',
    '',
    'lat',
    'gps',
    'long key '.repeat(20),
    '\u00fc',
  ])
  return `${keyText(key, how)}:${valueText(oddValue(random), how, depth)}`
}

function keyText(key: string, how: How): string {
  return textOf(key, how)
}

function valueText(value: unknown, how: How, depth: number): string {
  const { random, faults } = how
  if (value instanceof Spelled) return value.text
  if (typeof value === 'string') return textOf(value, how)
  if (typeof value === 'number' && random.chance(faults)) return respelled(value, random)
  if (random.chance(faults / 10)) return deepText(random)
  if (Array.isArray(value))
    return `[${value.map((one) => valueText(one, how, depth + 1)).join(`,${gap(how)}`)}]`
  return JSON.stringify(value)
}

/** The same number in another spelling, or nearly the same one. */
function respelled(value: number, random: Random): string {
  const text = String(value)
  const point = text.includes('.') ? '' : '.'
  return random.pick([
    `${text}${point}0`,
    `${text}${point}000000`,
    `${text}e0`,
    value.toExponential(),
    `-${text}`,
    `0${text}`,
    `${text}${point}1234567890123`,
    `"${text}"`,
    `"${text}${point}00"`,
    longNumber(String(Math.trunc(value)), random),
    longNumber(String(Math.trunc(value)), random),
  ])
}

function deepText(random: Random): string {
  const depth = random.pick([3, 30, 33, 40, 260, 300])
  return random.chance(0.5)
    ? '['.repeat(depth) + ']'.repeat(depth)
    : `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
}

/** With escape sequences in the place of some characters. */
function textOf(text: string, { random, faults }: How): string {
  if (!random.chance(faults)) return JSON.stringify(text)
  const escaped = text
    .split('')
    .map((one) =>
      random.chance(0.2)
        ? `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`
        : JSON.stringify(one).slice(1, -1),
    )
  return `"${escaped.join('')}${random.chance(0.1) ? random.pick(['\\/', '\\x', '\n', '\t', '\\', '\\ud800']) : ''}"`
}

function gap({ random, isBlank, faults }: How): string {
  if (random.chance(faults / 40)) return random.pick(badBlanks)
  return isBlank ? random.pick(blanks) : ''
}

function brokenBytes(bytes: Buffer, random: Random): Buffer {
  const broken = Buffer.from(bytes)
  const at = random.below(broken.length + 1)
  switch (random.below(5)) {
    case 0:
      return broken.subarray(0, at)
    case 1:
      return broken.subarray(at)
    case 2:
      return Buffer.concat([broken.subarray(0, at), random.pick(invalid), broken.subarray(at)])
    case 3:
      return broken.fill(
        random.pick([0x00, 0x22, 0x5c, 0x7f, 0x80, 0xff]),
        at,
        Math.min(at + 1, broken.length),
      )
    default:
      for (let flips = random.below(4); flips >= 0 && at < broken.length; flips -= 1)
        broken[at] = broken[at]! ^ (1 << random.below(8))
      return broken
  }
}

/** Not UTF-8, or cut off. */
const invalid = [
  [0xff],
  [0xc3],
  [0xc3, 0x28],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x9f, 0x9a],
  [0xc0, 0xaf],
  [0xe2, 0x82, 0xac],
].map((bytes) => Buffer.from(bytes))
