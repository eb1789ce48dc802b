// mutate.ts: mutates valid messages, as broken devices, networks and attackers do.

import { checksum } from './teltonika-frame.ts'
import type { Random } from './random.ts'

/** What trackers and buses send in the place of a value, and values that no vehicle has. */
const implausible = [
  '255',
  '65535',
  '16777215',
  '2147483647',
  '4294967294',
  '4294967295',
  '4211081215',
  '4294967.295',
  '526385151.875',
  '999999',
  '81000000000',
  '250.001',
  '10000001',
  '200001',
]

const extremes = [
  ...implausible,
  '0',
  '-0',
  '-1',
  '1e400',
  '-1e308',
  '5e-324',
  '90.0000001',
  '-180.5',
  '360',
  '359.99999999999997',
  '9007199254740993',
  '18446744073709551615',
  '8640000000000001',
  '-62135596800001',
  '4102444800000',
  `1${'0'.repeat(400)}`,
  `0.${'3'.repeat(400)}`,
  'NaN',
  '1,5',
  '"51,3"',
  '"0x1F"',
  '""',
  'null',
  'true',
]

const odd: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  91,
  181,
  1e308,
  2 ** 53,
  ...implausible.map(Number),
  '',
  '-',
  '48,1',
  '1,2,3,4',
  'NaN',
  '__proto__',
  '\u0000\ud800',
  '2024-13-45T99:99:99Z',
  '+275760-09-13T00:00:00.001Z',
  '2026-01-28T14:00:00.123456789+14:00',
  '////',
  'FFFF',
  'P999999999999Y',
  'a'.repeat(3000),
  [],
  {},
  [[]],
  { valueOf: 1, toString: 2, constructor: 3 },
]

const keys = ['__proto__', 'constructor', 'length', 'toString', 'x', '0', '']

/** `bytes` with up to three mutations, which may insert parts of `other`. */
export function mutatedBytes(bytes: Buffer, other: Buffer, random: Random): Buffer {
  if (random.chance(0.05)) return bytes
  let mutated = bytes
  for (let round = random.pick([1, 1, 1, 2, 3]); round > 0; round -= 1)
    mutated = random.pick(ways)(mutated, other, random)
  return random.chance(0.4) ? resealed(mutated) : mutated
}

export function mutatedTopic(topic: string, random: Random): string {
  const levels = topic.split('/')
  const at = random.below(levels.length)
  const level = random.pick([
    '',
    'x',
    '0',
    '\u00fc\ud83d\ude9a',
    '"',
    '\\',
    '__proto__',
    'a'.repeat(600),
    '{x}',
  ])
  return levels.with(at, level).join('/') + random.pick(['', '', '/', '/x', '/a/b/c/d'])
}

type Way = (bytes: Buffer, other: Buffer, random: Random) => Buffer

const ways: readonly Way[] = [
  flipped,
  cut,
  spliced,
  withExtreme,
  withExtreme,
  withExtreme,
  restructured,
  restructured,
  restructured,
  restructured,
  restructured,
  restructured,
  nested,
  noise,
]

function flipped(bytes: Buffer, _: Buffer, random: Random): Buffer {
  const mutated = Buffer.from(bytes)
  for (let flips = random.below(8); flips >= 0 && mutated.length > 0; flips -= 1) {
    const at = random.below(mutated.length)
    mutated[at] = (mutated[at] ?? 0) ^ (1 << random.below(8))
  }
  return mutated
}

function cut(bytes: Buffer, _: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1)
  return random.chance(0.7) ? bytes.subarray(0, at) : bytes.subarray(at)
}

function spliced(bytes: Buffer, other: Buffer, random: Random): Buffer {
  const head = bytes.subarray(0, random.below(bytes.length + 1))
  return Buffer.concat([head, other.subarray(random.below(other.length + 1))])
}

/** Mutates one number, or a run of bytes if there are no digits. */
function withExtreme(bytes: Buffer, _: Buffer, random: Random): Buffer {
  const text = bytes.toString('latin1')
  const numbers = [...text.matchAll(/-?\d+(?:\.\d+)?/g)]
  if (numbers.length > 0 && isText(bytes)) {
    const { index, 0: number } = random.pick(numbers)
    const changed = text.slice(0, index) + random.pick(extremes) + text.slice(index + number.length)
    return Buffer.from(changed, 'latin1')
  }
  const mutated = Buffer.from(bytes)
  const start = random.below(mutated.length + 1)
  const end = Math.min(mutated.length, start + (1 << random.below(4)))
  return mutated.fill(random.pick([0x00, 0xff, 0x7f, 0x80]), start, end)
}

function restructured(bytes: Buffer, other: Buffer, random: Random): Buffer {
  try {
    const before: unknown = JSON.parse(bytes.toString())
    const value = changedValue(before, random)
    // Sometimes beyond the limit of records.
    if (bytes.length < 2048 && random.chance(0.003))
      return Buffer.from(JSON.stringify(longList(value, random)))
    return Buffer.from(JSON.stringify(value) ?? '')
  } catch (error) {
    // Not JSON, or nested too deep: then its bytes are mutated.
    if (error instanceof SyntaxError || error instanceof RangeError) return flipped(bytes, other, random)
    throw error
  }
}

/** Wrapped in a long list, or with its first list extended. */
function longList(value: unknown, random: Random): unknown {
  const repeated = (one: unknown) => Array.from({ length: 900 + random.below(200) }, () => one)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return repeated(value)
  const found = Object.entries(value).find(([, one]) => Array.isArray(one) && one.length > 0)
  return found ? { ...value, [found[0]]: repeated(found[1][0]) } : repeated(value)
}

function changedValue(value: unknown, random: Random): unknown {
  if (random.chance(0.06)) return random.pick(odd)
  if (Array.isArray(value)) {
    const list: unknown[] = value.map((one) => changedValue(one, random))
    if (random.chance(0.1)) list.push(random.pick(odd))
    if (random.chance(0.03)) list.length = 0
    return list
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .filter(() => random.chance(0.95))
    .map(([key, one]) => [random.chance(0.02) ? random.pick(keys) : key, changedValue(one, random)] as const)
  return Object.fromEntries(entries)
}

/** A deeply nested value instead of a number, or alone. */
function nested(bytes: Buffer, _: Buffer, random: Random): Buffer {
  const depth = 1 << random.below(random.chance(0.05) ? 15 : 8)
  const [open, end] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['[[],', ']'],
  ] as const)
  const junk = open.repeat(depth) + (random.chance(0.8) ? `1${end.repeat(depth)}` : '')
  const text = bytes.toString('latin1')
  const number = /-?\d+(?:\.\d+)?/.exec(text.slice(random.below(text.length + 1)))?.[0]
  return Buffer.from(number === undefined ? junk : text.replace(number, () => junk), 'latin1')
}

function noise(bytes: Buffer, _: Buffer, random: Random): Buffer {
  const length = random.below(random.chance(0.05) ? 4096 : 64)
  const junk = Buffer.from(Array.from({ length }, () => random.below(256)))
  if (random.chance(0.3)) return junk
  const at = random.below(bytes.length + 1)
  return Buffer.concat([bytes.subarray(0, at), junk, bytes.subarray(at + random.below(junk.length + 1))])
}

function isText(bytes: Buffer): boolean {
  return bytes.every((byte) => byte >= 0x09 && byte !== 0x7f)
}

/** A Teltonika frame with corrected length and checksum, so that the decoder reads the mutation inside. */
function resealed(bytes: Buffer): Buffer {
  if (bytes.length < 15 || bytes.readUInt32BE(0) !== 0) return bytes
  const body = bytes.subarray(8, bytes.length - 4)
  const frame = Buffer.alloc(body.length + 12)
  frame.writeUInt32BE(body.length, 4)
  body.copy(frame, 8)
  frame.writeUInt32BE(checksum(body), body.length + 8)
  return frame
}
