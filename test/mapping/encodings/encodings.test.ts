import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { limitsOf } from '../../../src/mapping/body/body-limits.ts'
import {
  csvDecoder,
  decodeScalar,
  decodeText,
  type Separator,
} from '../../../src/mapping/encodings/csv-lines.ts'
import { decodeJson } from '../../../src/mapping/encodings/lenient-json.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import type { Decode } from '../../../src/mapping/types.ts'

const decodeCsv = csvDecoder(',')
const rows = rowsBeside(import.meta.filename) as {
  text: Record<string, string>
  scalar: Record<string, string | null>
  csv: Record<string, string[][]>
  'csv-semicolon': Record<string, string[][]>
  'csv-tab': Record<string, string[][]>
}

const valueIn = (decode: Decode, bytes: string | Buffer): unknown => {
  const decoded = decode(Buffer.from(bytes as string))
  return decoded.kind === 'value' ? decoded.value : decoded.kind
}

describe('a text', () => {
  test.each(Object.entries(rows.text))('%j is taken as it is', (text, value) => {
    expect(valueIn(decodeText, text)).toEqual({ value })
  })

  test.each(['', '\0', '\uFEFF'])('%j is an empty message', (text) => {
    expect(valueIn(decodeText, text)).toBe('empty')
  })
})

describe('a scalar', () => {
  test.each(Object.entries(rows.scalar))('%j is %j', (text, value) => {
    expect(valueIn(decodeScalar, text)).toEqual({ value })
  })
})

describe('JSON', () => {
  test.each(['Helsinki', '~\u007F', 'Itäkeskus', '\u0080', 'Łódź', '東京', '🚚'])(
    '%j is read as it is',
    (text) => {
      expect(valueIn(decodeJson, JSON.stringify({ [text]: text }))).toEqual({ [text]: text })
      expect(valueIn(decodeJson, `\uFEFF{"a":"${text}"}\0`)).toEqual({ a: text })
    },
  )

  const ofKeys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]))
  test.each([
    ['80,000 different keys', ofKeys(80_000), 'TOO_MANY'],
    [
      'the same in two hundred objects',
      Array.from({ length: 200 }, (_, n) => ({ [`o${n}`]: ofKeys(400) })),
      'value',
    ],
    ['as many as no device has', ofKeys(9000), 'value'],
    ['8,000 records of ten keys', Array.from({ length: 8000 }, () => ofKeys(10)), 'value'],
  ])('of %s: %#', (_what, value, expected) => {
    const decoded = decodeJson(Buffer.from(JSON.stringify(value)))
    expect(decoded.kind === 'refused' ? decoded.reason : decoded.kind).toBe(expected)
  })
})

describe('CSV', () => {
  test.each(Object.entries(rows.csv))('%j has the fields %j', (text, lines) => {
    expect(valueIn(decodeCsv, text)).toEqual(lines.map((fields) => ({ fields })))
  })

  test.each([
    ...Object.entries(rows['csv-semicolon']).map((row) => [';', ...row] as const),
    ...Object.entries(rows['csv-tab']).map((row) => ['\t', ...row] as const),
  ])('between %j: %j has the fields %j', (separator, text, lines) => {
    expect(valueIn(csvDecoder(separator as Separator), text)).toEqual(lines.map((fields) => ({ fields })))
  })

  test.each(['', '\n\n', '\0', ' \r\n'])('%j is an empty message', (text) => {
    expect(valueIn(decodeCsv, text)).toBe('empty')
  })

  test('has as many lines and fields as `max_records` is for; of more it is refused', () => {
    expect(valueIn(decodeCsv, 'a,b\n'.repeat(20_000))).toHaveLength(20_000)
    expect(decodeCsv(Buffer.from('a,b\n'.repeat(400_000)), limitsOf(0, 20_000)).kind).toBe('value')
    for (const text of [','.repeat(200_000), 'a,b\n'.repeat(30_000), '\n'.repeat(30_000)])
      expect(decodeCsv(Buffer.from(text))).toEqual({
        kind: 'refused',
        reason: 'TOO_MANY',
        detail:
          'The message has more than 128000 values: 128 for each of 1000 records (max_records of the source).',
      })
  })

  test('written by the rules is read back unchanged', () => {
    const field = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', 'é') })
    const table = fc.array(fc.array(field, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(table, fc.constantFrom('\n', '\r\n'), (lines, end) => {
        const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
        const text = lines.map((fields) => fields.map(quoted).join(',')).join(end)
        expect(valueIn(decodeCsv, text)).toEqual(lines.map((fields) => ({ fields })))
      }),
    )
  })

  // Searched again for each quote, it would take minutes: the time limit of the test ends that.
  test('a megabyte of unclosed quotes is read in linear time', () => {
    for (const text of ['"'.repeat(1_000_001), `"${',""'.repeat(250_000)}`, `"${'\n"""",x'.repeat(900)}`])
      expect(['value', 'refused']).toContain(decodeCsv(Buffer.from(text)).kind)
  })
})
