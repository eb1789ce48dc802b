import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readAnswer, type AnswerBody } from '../../../src/delivery/transport/answer-reader.ts'
import type { PayloadId } from '../../../src/domain/ids.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'

const ids = [1, 2, 3].map((n) => `0000000a-0000-8000-a000-00000000000${n}`) as unknown as PayloadId[]
const [first = '', second = '', third = ''] = ids

function read(text: string, cut: AnswerBody['cut'] = null): Outcome {
  const body = { bytes: Buffer.from(text), cut }
  const question = { operation: 'batch' as const, payloadIds: () => ids, now: 0 }
  return readAnswer({ status: 200, headers: {} }, body, question)
}

const textLike = (pattern: RegExp): unknown => expect.stringMatching(pattern)
const summary = { total: 3, accepted: 3, failed: 0 }
const usual = JSON.stringify({ requestId: 'r', responseCode: 200, accepted: ids, failed: [], summary })

/** What the answer says of each payload, by a reading of its own. */
function saidOf(text: string): string[] {
  const { accepted, failed } = JSON.parse(text) as { accepted: string[]; failed: { payloadId: string }[] }
  const has = (list: readonly unknown[], id: string) =>
    list.some((entry) => typeof entry === 'string' && entry.toLowerCase() === id)
  const records = failed.map((entry) => entry.payloadId)
  return ids.map((id) => (has(records, id) ? 'failed' : has(accepted, id) ? 'accepted' : 'unknown'))
}

function outcomeOf(text: string): string[] {
  const outcome = read(text)
  if (outcome.kind !== 'answered') return [outcome.kind]
  const { accepted, failed } = outcome
  return ids.map((id) => {
    if (failed.some(({ payloadId }) => payloadId === id)) return 'failed'
    return accepted === 'all' || accepted.includes(id) ? 'accepted' : 'unknown'
  })
}

describe('an answer', () => {
  test('that accepts all in order has no deviations', () => {
    const all = { kind: 'answered', requestId: 'r', accepted: 'all', failed: [], deviations: [] }
    expect(read(usual)).toEqual(all)
  })

  test.each([
    ['in another order', usual.replace(first, 'x').replace(second, first).replace('x', second), []],
    ['without the last payload', usual.replace(`,"${third}"`, ''), [/accepted is 3.* 2/, /neither list: 1/]],
    [
      'with another payload behind',
      usual.replace(`"${third}"`, `"${third}","x"`),
      [/not in this batch: 1/, /4/],
    ],
    ['with a payload again', usual.replace(`"${third}"`, `"${third}","${first}"`), [/again: 1/, /contain 4/]],
    ['in upper case', usual.replace(second, second.toUpperCase()), []],
    ['with another total', usual.replace('"total":3', '"total":"3"'), [/summary.total is "3"/]],
    ['with another code', usual.replace('200', '207'), [/responseCode is 207/]],
    ['without failed', usual.replace('"failed"', '"x"'), [/"failed" is not a list/]],
  ])('%s is compared with the batch', (_name, text, deviations) => {
    const { deviations: found } = read(text) as Extract<Outcome, { kind: 'answered' }>
    expect(found).toEqual(deviations.map(textLike))
  })

  test('says of each payload what its lists say, whatever else they contain', () => {
    const id = fc.constantFrom(...ids, first.toUpperCase(), 'x', '__proto__')
    const entry = fc.oneof(id, fc.jsonValue({ maxDepth: 2 }))
    const record = fc.record({ payloadId: entry, errorType: entry })
    const answer = fc.record({ accepted: fc.array(entry), failed: fc.array(record), summary: entry })
    fc.assert(
      fc.property(answer, (value) => {
        const text = JSON.stringify(value)
        expect(outcomeOf(text)).toEqual(saidOf(text))
      }),
    )
  })

  test('that is not whole is unreadable: what it lacks is unknown', () => {
    expect(read(usual.slice(0, -1))).toMatchObject({
      kind: 'unreadable',
      message: textLike(/not a JSON object/),
    })
    expect(read(usual, 'ended early')).toMatchObject({ kind: 'unreadable', message: textLike(/truncated/) })
    expect(read(usual, 'too large')).toMatchObject({ kind: 'unreadable', tooLarge: true })
  })

  test('that names no payload keeps the words of the service, without control characters', () => {
    expect(read('{"accepted":[],"failed":[],"message":"too\\nbusy"}')).toMatchObject({
      serviceMessage: 'too busy',
    })
  })
})
