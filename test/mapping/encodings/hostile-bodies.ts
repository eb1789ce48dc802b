// hostile-bodies.ts: hostile messages for each decoder, made from a seed, and what each of them may cost: in `npm test` a
// sample, all of them in hostile-bodies.slow.test.ts.
//
//   noise, messages of the field that are broken, units that cost a decoder most, repeated a million times, nests, lengths
//   beyond the end, numbers of a million digits, bombs that unpack to 16 MiB
//
// Processor time of this thread is measured, since other work runs beside it: the best of some times, as a collection
// of garbage may fall into one. Memory is that of the value by a rough size of each part.

import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { usualLimits } from '../../../src/mapping/body/body-limits.ts'
import { encodingNames, encodingOf, type EncodingName } from '../../../src/mapping/encodings/encodings.ts'
import { decodeJson } from '../../../src/mapping/encodings/lenient-json.ts'
import { compileExpression, withinLimit } from '../../../src/mapping/expression/expression.ts'
import { compileExtract, compileExtractor } from '../../../src/mapping/extract/extract.ts'
import { extractSchema } from '../../../src/mapping/extract/extract-config.ts'
import { compilePaths } from '../../../src/mapping/path/path.ts'
import { cborOf, messagePackOf } from '../../support/binary-values.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { mutatedBytes } from '../../support/mutate.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { sparkplugPayload, types } from '../../support/sparkplug-payload.ts'
import { placed } from '../../support/placed.ts'

const seed = 11
const msMax = 50
const bytesMax = 4_000_000

/** Of a message: most are small. The last one is the largest that the broker takes by default. */
const usualSizes = [64, 1000, 1000, 16_000, 16_000, 64_000, 64_000, 250_000, 1_048_576]
/** The largest message that is read where `max_records` has its default. */
export const largest = [usualLimits.bytesMax]
const unpackedSize = 16 * 1_048_576

type Parts = { texts: string[]; hex: string[] }
const parts = rowsBeside(import.meta.filename) as Record<'units' | 'heads' | 'tails' | 'valid', Parts>
const bytesOf = ({ texts, hex }: Parts) => [
  ...texts.map((text) => Buffer.from(text, 'latin1')),
  ...hex.map((text) => Buffer.from(text, 'hex')),
]
export const units = bytesOf(parts.units)
const heads = bytesOf(parts.heads)
const tails = bytesOf(parts.tails)
const valid = [
  ...bytesOf(parts.valid),
  ...[cborOf, messagePackOf].flatMap((write) =>
    parts.valid.texts
      .slice(0, 1)
      .map((text) => write({ ...(JSON.parse(text) as object), raw: Buffer.alloc(9) })),
  ),
  sparkplugPayload({
    ts: 1_767_085_201_000,
    metrics: [
      { name: 'GPS/Latitude', type: types.double, alias: 1, double: 51.3 },
      { name: 'note', type: types.string, text: 'of some length' },
    ],
    seq: 7,
  }),
]

type Make = (random: Random, sizes: readonly number[]) => Buffer

const filled = (unit: Buffer, size: number) => Buffer.alloc(size, unit.length === 0 ? 0 : unit)

const noise: Make = (random) =>
  Buffer.from(Array.from({ length: random.below(3000) }, () => random.below(256)))

const broken: Make = (random) => mutatedBytes(random.pick(valid), random.pick(valid), random)

/** The same message many times, such as on lines of their own. */
const repeated: Make = (random, sizes) => filled(random.pick(valid), random.pick(sizes))

const aroundUnits: Make = (random, sizes) => {
  const unit = random.chance(0.3)
    ? Buffer.concat([random.pick(units), random.pick(units)])
    : random.pick(units)
  const message = Buffer.concat([random.pick(heads), filled(unit, random.pick(sizes)), random.pick(tails)])
  for (let at = random.below(4); at > 0; at -= 1) message[random.below(message.length)] = random.below(256)
  return message
}

/** Whole JSON, which is read to its end. */
const whole: Make = (random, sizes) => {
  const size = random.pick(sizes)
  const one = random.pick([
    '{}',
    '[]',
    '""',
    '1',
    '{"a":1}',
    '{"lat":1,"lon":2}',
    '"\u00e9"',
    '1e9',
    'nan',
    '[[[]]]',
  ])
  const list = Array.from({ length: Math.floor(size / (one.length + 1)) }, () => one)
  return Buffer.from(random.chance(0.5) ? `[${list.join()}]` : `{"a":[${list.join()}]}`)
}

const keys: Make = (random, sizes) => {
  const count = Math.floor(random.pick(sizes) / 10)
  return Buffer.from(`{${Array.from({ length: count }, (_, at) => `"${at.toString(36)}":1`).join()}}`)
}

const digits: Make = (random, sizes) => {
  const long =
    random.pick(['1', '9', '0.3', '1e', '-']) + random.pick(['0', '7', '12']).repeat(random.pick(sizes) / 2)
  return Buffer.from(
    random.pick(['', '{"a":', '[1,', '"', '1,']) + long + random.pick(['', '}', ']', '"', ',1']),
  )
}

const nests: Make = (random) => {
  const count = random.pick([100, 300, 5000, 100_000])
  const [open = '', close = ''] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"a":', '}]'],
    ['(', ')'],
  ])
  return Buffer.from(open.repeat(count) + (random.chance(0.5) ? `1${close.repeat(count)}` : ''))
}

/** Bytes of the field, of which some say that more follow than there are. */
const lengths: Make = (random) => {
  const message = Buffer.from(random.pick(valid))
  for (let count = 1 + random.below(3); count > 0; count -= 1)
    message.fill(random.pick([0xff, 0x7f, 0x80]), random.below(message.length)).subarray(0, random.below(9))
  return message
}

const kinds: readonly Make[] = [
  noise,
  broken,
  broken,
  repeated,
  aroundUnits,
  aroundUnits,
  aroundUnits,
  whole,
  keys,
  digits,
  nests,
  lengths,
]

/** `of`: a message as this decoder gets it; what makes it costs the decoder nothing. */
type Decoder = {
  name: string
  of?: (message: Buffer, random: Random) => unknown
  read(message: unknown): unknown
}

function encoding(
  name: EncodingName,
  options: Partial<Parameters<typeof encodingOf>[1]> = {},
): Decoder['read'] {
  const all = { compression: undefined, charset: undefined, limits: usualLimits, ...options }
  const { decode, createDecoder } = encodingOf(name, all)
  if (decode !== undefined) return (message) => decode(message as Buffer)
  const { forTopic } = createDecoder({ source: 'one' })
  return (message) => forTopic('spBv1.0/fleet/NBIRTH/node')(message as Buffer, 0, true)
}

/** Some of them bombs. */
function packedBy(pack: (bytes: Buffer) => Buffer): (message: Buffer, random: Random) => Buffer {
  let bombs: readonly Buffer[] | undefined
  return (message, random) => {
    bombs ??= ['[', '{}', ',', '\0'].map((unit) => pack(filled(Buffer.from(unit), unpackedSize)))
    return random.chance(0.1) ? random.pick(bombs) : pack(message)
  }
}

const zlibPacked = packedBy(deflateSync)

const inData = (message: Buffer, random: Random) => ({
  data: random.chance(0.5) ? message.toString('base64') : message.toString(random.pick(['latin1', 'hex'])),
})

/** The value of a message that is JSON; else the text. */
const valueOf = (message: Buffer) => {
  const decoded = decodeJson(message)
  return { data: decoded.kind === 'value' ? decoded.value : message.toString('latin1') }
}

const layout = { a: { at: 0, type: 'u8' }, b: { at: -4, type: 'f32be' } }
const signal = { pgn: 65_253, at: 0, type: 'u32le' }
const extractors: readonly [options: Record<string, unknown>, of: Decoder['of']][] = [
  [{ as: 'base64', layout }, inData],
  [{ as: 'hex', layout }, inData],
  [{ as: 'base64' }, inData],
  [{ as: 'json' }, (message) => ({ data: message.toString() })],
  [{ as: 'nmea' }, (message) => ({ data: message.toString('latin1') })],
  [{ as: 'j1939', signals: { hours: signal } }, valueOf],
  [{ as: 'obd', signals: { rpm: { pid: 12, at: 0, type: 'u16be' } } }, valueOf],
  [{ as: 'positions' }, valueOf],
  [{ as: 'secretbox' }, inData],
]

const paths = ['value.$split(",")', 'value.$split(" ")[3]', 'data.$entries()', 'data[n="lat"].v']
const expressions = [
  'value.split(",")',
  'value.matches("(a+)+$|([0-9,.]+)*x")',
  'value.replace(",", ";").split(";").map(part, number(part))',
  'number(value)',
  'hex(value)',
]

const decoders: readonly Decoder[] = [
  ...encodingNames.map((name) => ({ name, read: encoding(name) })),
  { name: 'json in gzip', of: packedBy(gzipSync), read: encoding('json', { compression: 'gzip' }) },
  { name: 'csv in zlib', of: packedBy(deflateSync), read: encoding('csv', { compression: 'zlib' }) },
  {
    name: 'json in deflate',
    of: packedBy(deflateRawSync),
    read: encoding('json', { compression: 'deflate' }),
  },
  { name: 'kura in gzip', of: packedBy(gzipSync), read: encoding('kura') },
  { name: 'cbor in gzip', of: packedBy(gzipSync), read: encoding('cbor', { compression: 'gzip' }) },
  {
    name: 'Sparkplug, compressed',
    of: (message, random) =>
      sparkplugPayload({ uuid: 'SPBV1.0_COMPRESSED', body: zlibPacked(message, random) }),
    read: encoding('sparkplug'),
  },
  ...(['utf-16le', 'utf-16be', 'latin1'] as const).flatMap((charset) => [
    { name: `json in ${charset}`, read: encoding('json', { charset }) },
    { name: `csv in ${charset}`, read: encoding('csv', { charset }) },
  ]),
  {
    name: 'json in UTF-16 with its mark',
    of: (message) => Buffer.from(`\uFEFF${message.toString('latin1')}`, 'utf16le'),
    read: encoding('json'),
  },
  ...extractors.map(([options, of]): Decoder => {
    const [entry] = extractSchema.parse([{ from: 'data', into: 'found', ...options }])
    const extract = compileExtract([compileExtractor(entry!, [], () => [Buffer.alloc(32)])])
    const named = entry!.as + ('layout' in options ? ' by a layout' : '')
    return {
      name: `extract ${named}`,
      of: of!,
      read: (message) => extract(message, { captures: [], others: [] }),
    }
  }),
  ...paths.map((text): Decoder => {
    const read = compilePaths(text)
    const of = (message: Buffer) => ({ value: message.toString('latin1'), ...valueOf(message) })
    return { name: `the path ${text}`, of, read: (message) => read(placed(message)) }
  }),
  ...expressions.map((text): Decoder => {
    const read = compileExpression(text, [])
    const of = (message: Buffer) => ({ value: message.toString('latin1') })
    return {
      name: `the expression ${text}`,
      of,
      read: (message) => withinLimit(() => read(placed(message))),
    }
  }),
]

/** What the value takes beside the message, of which it may have parts. */
function sizeBeside(value: unknown, message: unknown): number {
  const size = sizeOf(value, new Set())
  if (size <= bytesMax || Buffer.isBuffer(message)) return size
  const parts = new Set<unknown>()
  sizeOf(message, parts)
  return sizeOf(value, parts)
}

/** About what it takes in memory, without objects and lists that were seen. */
function sizeOf(root: unknown, seen: Set<unknown>): number {
  let size = 0
  const open = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value === 'string') size += 16 + Math.min(value.length, 1000)
    else if (typeof value === 'number') size += Number.isInteger(value) ? 0 : 16
    else if (typeof value === 'object' && value !== null && !seen.has(value)) {
      seen.add(value)
      const inner: unknown[] = value instanceof Map ? [...value.keys()] : Object.values(value)
      size += Array.isArray(value) ? 32 + 8 * inner.length : 40 + 16 * inner.length
      for (const one of inner) open.push(one)
    }
  }
  return size
}

function millisecondsOf(run: () => void): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** The best of some times; of fewer where one is `enough`. */
function fastest(run: () => void, enough: number): number {
  let best = Infinity
  for (let tries = 0; tries < 7 && best > enough; tries += 1) best = Math.min(best, millisecondsOf(run))
  return best
}

/** `inputs` messages for each decoder. */
export function testHostileBodies(inputs: number, sizes: readonly number[] = usualSizes): void {
  // One million numbers take about 25 ms on a machine of today; a slower one may take longer for all.
  const usual = JSON.stringify(Array.from({ length: 1_000_000 }, (_, n) => n % 10))
  const slack = Math.max(1, fastest(() => JSON.parse(usual), 0) / 25)

  test.each(decoders)('hostile messages take no decoder long, or much memory: $name', ({ of, read }) => {
    const random = createRandom(seed)
    const faults: string[] = []
    for (let index = 0; index < inputs; index += 1) {
      const plain = kinds[index % kinds.length]!(random, sizes).subarray(0, usualLimits.bytesMax)
      const message = of === undefined ? plain : of(plain, random)
      let value: unknown
      const tookMs = fastest(() => (value = read(message)), msMax * slack)
      const size = sizeBeside(value, message)
      if (tookMs > msMax * slack || size > Math.max(bytesMax, 3 * plain.length))
        faults.push(
          `seed ${seed}, message ${index}, ${plain.length} bytes: ${plain.toString('hex', 0, 24)} took ${tookMs.toFixed()} ms and ${size} bytes`,
        )
    }
    expect(faults).toEqual([])
  })
}
