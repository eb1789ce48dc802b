// No bytes make an encoding throw, and each reads hostile messages; `npm run test:system` has 300 of them. What is measured is the best of some times, and more is allowed where
// the machine is slow or busy.

import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodingNames, encodingOf, type EncodingName } from '../../../src/mapping/encodings/encodings.ts'
import type { StatefulDecoded } from '../../../src/mapping/types.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { tcpFrame } from '../../support/teltonika-frame.ts'

const bytes = 64 * 1024
const inputs = Number(process.env['HOSTILE_MESSAGES'] ?? 20)
const seed = 11
const msMax = 50
/** 4 MB of objects and texts. */
const valuesMax = 66_000
const charactersMax = 4_000_000

const repeated = (unit: Buffer | string, size = bytes) => {
  const one = Buffer.from(unit as string, 'latin1')
  return Buffer.alloc(size, one)
}
const around = (head: string, unit: string, tail: string) =>
  Buffer.concat([Buffer.from(head, 'latin1'), repeated(unit), Buffer.from(tail, 'latin1')])

type Parts = { texts: string[]; hex: string[] }
const parts = rowsBeside(import.meta.filename) as Record<'units' | 'heads' | 'tails', Parts>
const latin1 = ({ texts, hex }: Parts) => [
  ...texts,
  ...hex.map((text) => Buffer.from(text, 'hex').toString('latin1')),
]
const [units, heads, tails] = [latin1(parts.units), latin1(parts.heads), latin1(parts.tails)]

function hostile(random: Random, index: number): Buffer {
  const unit = units[index % units.length]!
  const other = random.pick(units)
  const mixed = random.chance(0.3) ? unit + other : unit
  const message = around(random.pick(heads), mixed, random.pick(tails))
  for (let at = random.below(4); at > 0; at -= 1) message[random.below(message.length)] = random.below(256)
  return random.chance(0.2) ? gzipSync(message) : message
}

function sizeOf(root: unknown): { values: number; characters: number } {
  const size = { values: 0, characters: 0 }
  const open = [root]
  while (open.length > 0) {
    const value = open.pop()
    size.values += 1
    if (typeof value === 'string') size.characters += value.length
    else if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value)) {
        if (!Array.isArray(value)) size.characters += key.length
        open.push(inner)
      }
  }
  return size
}

/** Milliseconds, the best of nine; of fewer where one is `enough`. */
function fastest(run: () => void, enough = 0): number {
  let best = Infinity
  for (let tries = 0; tries < 9 && best > enough; tries += 1) {
    const startMs = performance.now()
    run()
    best = Math.min(best, performance.now() - startMs)
  }
  return best
}

function decoderOf(name: EncodingName): (message: Buffer) => StatefulDecoded {
  const encoding = encodingOf(name, { compression: 'gzip', charset: undefined, unpackedBytesMax: 256 * 1024 })
  if (encoding.decode !== undefined) return (message) => encoding.decode(message)
  const { forTopic } = encoding.createDecoder({ source: 'one' })
  return (message) => forTopic('spBv1.0/fleet/NBIRTH/node')(message, 0, true)
}

describe('hostile messages', () => {
  // One million numbers take about 25 ms on a machine of today.
  const usual = JSON.stringify(Array.from({ length: 1_000_000 }, (_, n) => n % 10))
  const slack = Math.max(1, fastest(() => JSON.parse(usual)) / 25)

  test.each(encodingNames)('take no encoding long, or much memory: %s', (name) => {
    const random = createRandom(seed)
    const decode = decoderOf(name)
    for (let index = 0; index < inputs; index += 1) {
      const message = hostile(random, index)
      const shown = `seed ${seed}, message ${index}: ${message.toString('hex', 0, 40)}`
      let decoded: unknown
      const tookMs = fastest(() => (decoded = decode(message)), msMax * slack)
      expect(tookMs, shown).toBeLessThan(msMax * slack)
      const { values, characters } = sizeOf(decoded)
      expect(values, shown).toBeLessThan(valuesMax)
      expect(characters, shown).toBeLessThan(charactersMax)
    }
  })
})

describe('any bytes', () => {
  const noise = fc.uint8Array({ maxLength: 120 }).map((array) => Buffer.from(array))
  const starts = ['', '00000000', '08', '8e', '10', '0c', '02', '0201', '1f8b08', '2447', '7b22'].map((hex) =>
    Buffer.from(hex, 'hex'),
  )
  const started = fc.tuple(fc.constantFrom(...starts), noise).map((parts) => Buffer.concat(parts))
  const text = fc
    .string({
      unit: fc.constantFrom(...units, 'GPRMC', 'GPGGA', 'GPVTG', 'A', 'T', 'N', '0', '.', '-', ':', 'nan'),
    })
    .map((characters) => Buffer.from(characters, 'latin1'))
  /** Such as a decoder reads on behind its checks. */
  const sealed = started.map((bytes) => [
    tcpFrame(bytes),
    Buffer.concat([bytes, Buffer.from([sumOf(bytes)])]),
  ])

  test.each(encodingNames)('get a result of the encoding %s, and no exception', (name) => {
    const decode = decoderOf(name)
    fc.assert(
      fc.property(fc.oneof(noise, started, text), sealed, (bytes, others) => {
        for (const each of [bytes, ...others])
          expect(['value', 'empty', 'ignored', 'refused']).toContain(decode(each).kind)
      }),
      { numRuns: 2000 },
    )
  })
})

function sumOf(bytes: Buffer): number {
  return bytes.reduce((total, byte) => (total + byte) & 0xff, 0)
}
