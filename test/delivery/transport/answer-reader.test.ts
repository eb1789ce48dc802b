// The scanner of long answers gives the outcome that JSON.parse() gives, wherever the parts of the answer end.

import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAnswerReader } from '../../../src/delivery/transport/answer-reader/answer-reader.ts'
import { createJsonScanner } from '../../../src/delivery/transport/answer-reader/json-scanner.ts'
import type { PayloadId } from '../../../src/domain/ids.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'

const ids = [1, 2, 3].map((n) => `0000000a-0000-8000-a000-00000000000${n}`) as unknown as PayloadId[]
const mebibyte = 1024 ** 2

type Options = {
  status?: number
  partBytes?: number
  scan?: boolean
  whole?: boolean
  responseBytesMax?: number
  inBody?: boolean
  payloadIds?: () => PayloadId[]
}

/** The payloadIds in the body, which is in shared memory. */
const bodyText = ids.map((payloadId) => JSON.stringify({ payloadId, carrier: 'ACME' })).join()
const body = Buffer.from(new SharedArrayBuffer(bodyText.length))
body.write(bodyText)
const starts = Uint32Array.from(bodyText.matchAll(/\{"payloadId"/g), ({ index }) => index)
const idsInBody = { body, starts }

function read(text: string | Buffer, options: Options = {}): Outcome {
  const { status = 200, partBytes = 1e9, scan = false, whole = true, responseBytesMax = 1e9 } = options
  const { inBody = false, payloadIds = () => ids } = options
  const known = inBody ? { idsInBody } : {}
  const question = { operation: 'batch' as const, payloadIds, responseBytesMax, ...known }
  const reader = createAnswerReader(
    { status, headers: {} },
    scan ? { ...question, wholeBytesMax: 0 } : question,
  )
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += partBytes)
    if (!reader.push(bytes.subarray(at, at + partBytes))) break
  return reader.end(whole, 0)
}

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary', maxLength: 700 }),
  fc.constantFrom(...ids, ids[0]?.toUpperCase() ?? '', 'x', '"\\\u0000\u001b\ud800'),
)
const anything = fc.jsonValue({ maxDepth: 4 })
const record = fc.record(
  {
    payloadId: fc.oneof(text, anything),
    errorType: fc.oneof(text, anything),
    errorMessage: fc.oneof(text, anything),
    validationErrorDetails: fc.oneof(
      fc.array(fc.oneof(fc.record({ field: text, message: text }, { requiredKeys: [] }), anything)),
      anything,
    ),
    more: anything,
  },
  { requiredKeys: [] },
)
const answer = fc.record(
  {
    requestId: fc.oneof(text, anything),
    RequestId: text,
    responseCode: fc.oneof(fc.constant(200), anything),
    accepted: fc.oneof(fc.array(fc.oneof(text, anything)), fc.constant(ids), anything),
    failed: fc.oneof(fc.array(fc.oneof(record, anything)), fc.constant([]), anything),
    summary: fc.oneof(
      fc.record({ total: fc.nat(4), accepted: anything, failed: fc.nat(3) }, { requiredKeys: [] }),
      anything,
    ),
    more: anything,
  },
  { requiredKeys: [] },
)

/** Of an answer that cannot be read, the words may differ. */
const known = (outcome: Outcome) => (outcome.kind === 'unreadable' ? { ...outcome, message: '' } : outcome)

const accepting = (more: object = {}) =>
  JSON.stringify({ requestId: 'r', responseCode: 200, accepted: ids, failed: [], ...more })

describe('an answer that is read as it arrives', () => {
  test('gives the outcome of one that is parsed as a whole', () => {
    const sizes = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 50 }))
    fc.assert(
      fc.property(answer, sizes, fc.constantFrom(undefined, 1, '\t'), (value, partBytes, space) => {
        const sent = JSON.stringify(value, null, space)
        expect(known(read(sent, { scan: true, partBytes }))).toEqual(known(read(sent)))
      }),
      { numRuns: 150 },
    )
  })

  test('gives the same for text that is nearly JSON', () => {
    const change = fc.tuple(
      fc.nat(1000),
      fc.constantFrom('', '"', ',', '}', '[', '\\', '0', '-', 'e', 'n', '\u0001'),
    )
    fc.assert(
      fc.property(answer, change, (value, [at, by]) => {
        const sent = JSON.stringify(value)
        const place = at % (sent.length + 1)
        const changed = sent.slice(0, place) + by + sent.slice(place + 1)
        expect(known(read(changed, { scan: true, partBytes: 7 }))).toEqual(known(read(changed)))
      }),
      { numRuns: 150 },
    )
  })

  test('a member that occurs twice counts once, with its last value', () => {
    for (const sent of [
      accepting().replace('"accepted"', '"accepted":["x"],"accepted"'),
      accepting().replace('"failed"', `"failed":[{"payloadId":"${ids[0]}"}],"failed"`),
    ])
      expect(read(sent, { scan: true })).toMatchObject({ accepted: 'all', failed: [] })
  })
})

describe('the usual answer', () => {
  const summary = { total: 3, accepted: 3, failed: 0 }
  const usual = accepting({ summary })
  const list = JSON.stringify(ids)
  const [first = '', second = '', third = ''] = ids

  test('is read without the payloadIds as texts', () => {
    const payloadIds = () => {
      throw new Error('asked for the payloadIds')
    }
    expect(read(usual, { inBody: true, payloadIds, partBytes: 50 })).toEqual({
      kind: 'answered',
      requestId: 'r',
      accepted: 'all',
      failed: [],
      complete: true,
      tooLarge: false,
      deviations: [],
    })
  })

  test.each([
    ['in another order', usual.replace(first, 'x').replace(second, first).replace('x', second)],
    ['without the last payload', usual.replace(`,"${third}"`, '')],
    ['with another payload behind', usual.replace(`"${third}"`, `"${third}","x"`)],
    ['with a payload again behind', usual.replace(`"${third}"`, `"${third}","${first}"`)],
    ['with another id', usual.replace(second, second.replace(/.$/, 'e'))],
    ['in upper case', usual.replace(second, second.toUpperCase())],
    ['that is usual', usual],
    ['that ends in an id', usual.slice(0, usual.indexOf(third) + 20)],
    ['that ends in the list', usual.slice(0, usual.indexOf(third) + 36)],
    ['that ends behind the last id', usual.slice(0, usual.indexOf(third) + 37)],
    ['that ends behind the list', usual.slice(0, usual.indexOf(']') + 1)],
    ['with text behind it', `${usual}x`],
    ['with a second list', usual.replace('"failed"', '"accepted":["x"],"failed"')],
    ['with a second member of the name', usual.replace('"failed"', '"accepted":7,"failed"')],
    ['whose list is in another member', `{"more":${usual},"accepted":[],"failed":[]}`],
    ['whose list is in another member only', `{"more":${usual},"failed":[]}`],
    ['whose list has a longer name', usual.replace('"accepted":[', String.raw`"\"accepted":[`)],
    ['with spaces', JSON.stringify(JSON.parse(usual), null, 1)],
    ['with failed ones', usual.replace('"failed":[]', `"failed":[{"payloadId":"${first}"}]`)],
    ['with another sum', usual.replace('"total":3', '"total":4')],
    ['without a summary', accepting()],
    ['with another responseCode', usual.replace('200', '207')],
    ['that is a list', `[${usual}]`],
    ['with a list as a text', usual.replace(list, JSON.stringify(list))],
  ])('%s is read as any answer', (_, sent) => {
    expect(read(sent, { inBody: true })).toEqual(read(sent))
    expect(read(sent, { inBody: true, whole: false })).toEqual(read(sent, { whole: false }))
    expect(read(sent, { inBody: true, status: 202 })).toEqual(read(sent, { status: 202 }))
  })

  test('is read as any answer with every change of one character', () => {
    for (let at = 0; at < usual.length; at += 1)
      for (const by of ['', '"', ',', ']', '0', '\\']) {
        const sent = usual.slice(0, at) + by + usual.slice(at + 1)
        expect(read(sent, { inBody: true }), sent).toEqual(read(sent))
      }
  })
})

describe('the scanner', () => {
  const accepts = (sent: string, partBytes: number): boolean => {
    const silent = { open() {}, close() {}, key() {}, value() {}, wanted: () => false }
    const scanner = createJsonScanner(silent)
    const bytes = Buffer.from(sent)
    for (let at = 0; at < bytes.length; at += partBytes)
      if (!scanner.push(bytes.subarray(at, at + partBytes))) return false
    return scanner.ended()
  }
  const parses = (sent: string): boolean => {
    try {
      JSON.parse(sent)
      return true
    } catch {
      return false
    }
  }

  test('accepts what JSON.parse() accepts', () => {
    const pieces = fc.constantFrom(
      ...'{}[],:" \\/bfnrtu0123456789-+.eEtruefalsnul'.split(''),
      '"a"',
      '"a":',
      'true',
      'null',
      '-1.5e+3',
      '01',
      '1.',
      '\\u00e9',
      '\\u00g0',
      '[]',
      '{}',
      '\u0001',
      'ü',
    )
    const nearly = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(nearly, fc.json()), fc.integer({ min: 1, max: 9 }), (sent, partBytes) => {
        // A number at the end of the text is not known to be whole; the root of an answer is an object.
        const inList = `[${sent}]`
        expect(accepts(inList, partBytes), inList).toBe(parses(inList))
      }),
    )
  })
})

describe('an incomplete answer', () => {
  const sent = accepting()
  const until = (id: string) => sent.slice(0, sent.indexOf(id) + id.length + 1)

  test.each([false, true])('that ended early keeps the payloads that it named (scanned: %s)', (scan) => {
    expect(read(until(ids[1] ?? ''), { scan, whole: false })).toMatchObject({
      kind: 'answered',
      requestId: 'r',
      accepted: ids.slice(0, 2),
      complete: false,
      tooLarge: false,
      deviations: ['the answer is truncated'],
    })
  })

  test('that passes the limit keeps what came before it', () => {
    const long = accepting({ more: ' '.repeat(1000) })
    const outcome = read(long, { responseBytesMax: long.indexOf(ids[2] ?? '') })
    expect(outcome).toMatchObject({ accepted: ids.slice(0, 2), complete: false, tooLarge: true })
  })

  test('that names no payload of the batch is unreadable', () => {
    const strange = '{"accepted":["x","y"],'
    expect(read(strange, { whole: false })).toMatchObject({
      kind: 'unreadable',
      message: expect.stringMatching('truncated'),
    })
    expect(read(strange, { responseBytesMax: 5 })).toMatchObject({
      message: expect.stringMatching('max_response_bytes'),
    })
  })

  test('with an error in its text is unreadable: it is not known what else is wrong', () => {
    expect(read(`${until(ids[1] ?? '')}<html>`, { whole: false })).toMatchObject({ kind: 'unreadable' })
  })
})

describe('what is kept of an answer', () => {
  test('long messages of many payloads are cut, their types are not', () => {
    const details = Array.from({ length: 50 }, () => ({ field: 'f'.repeat(119), message: 'm'.repeat(299) }))
    const many = Array.from({ length: 1200 }, (_, n) => `id-${n}`) as unknown as PayloadId[]
    const failed = many.map((payloadId) => ({ payloadId, errorType: 'T', errorMessage: 'e', details }))
    const sent = JSON.stringify({
      failed: failed.map(({ details: validationErrorDetails, ...one }) => ({
        ...one,
        validationErrorDetails,
      })),
    })
    const reader = createAnswerReader(
      { status: 200, headers: {} },
      { operation: 'batch', payloadIds: () => many, responseBytesMax: 1e9 },
    )
    for (let at = 0; at < sent.length; at += mebibyte) reader.push(Buffer.from(sent.slice(at, at + mebibyte)))
    const outcome = reader.end(true, 0)
    if (outcome.kind !== 'answered') throw new Error(outcome.kind)
    expect(outcome.failed).toHaveLength(1200)
    expect(outcome.failed.every(({ errorType }) => errorType === 'T')).toBe(true)
    expect(JSON.stringify(outcome).length).toBeLessThan(2_000_000)
    expect(outcome.deviations.join()).toMatch(/too long together: \d{3,}/)
  })
})

test('an answer that names no payload keeps the words of the service, without control characters', () => {
  const words = (message: unknown, accepted: string[] = []) =>
    read(JSON.stringify({ accepted, failed: [], message }))
  expect(words('asset\nis locked')).toMatchObject({ kind: 'answered', serviceMessage: 'asset is locked' })
  expect(words('x'.repeat(5000))).toMatchObject({ serviceMessage: `${'x'.repeat(299)}…` })
  for (const outcome of [words(7), words('fine', [ids[0] ?? ''])])
    expect(outcome).not.toHaveProperty('serviceMessage')
})
