import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../src/domain/outcome.ts'
import { reasonText, unreachableOf } from '../../../src/delivery/provider-pipeline/outcome-text.ts'

const requestId = 'r-1'

const answered = (changes: Partial<Extract<Outcome, { kind: 'answered' }>>): Outcome => ({
  kind: 'answered',
  requestId,
  accepted: [],
  failed: [],
  complete: true,
  tooLarge: false,
  deviations: [],
  ...changes,
})

describe('the reason of an answer', () => {
  test('is a 200 that names none of the payloads, with the words of the service', () => {
    const none = 'The service answers 200 and names none of the payloads.'
    expect(reasonText(answered({}))).toBe(none)
    expect(reasonText(answered({ serviceMessage: 'asset is locked' }))).toBe(
      `${none} Its message: "asset is locked".`,
    )
    expect(reasonText(answered({ accepted: ['p-1'] }))).toContain('1 payloads as accepted and 0 as failed')
  })
})

describe('an answer of another server', () => {
  test.each<Outcome>([
    { kind: 'unexpected', status: 404, requestId: null, message: 'no such path' },
    { kind: 'unexpected', status: 302, requestId: null, message: 'moved' },
    {
      kind: 'unreadable',
      status: 200,
      requestId: null,
      message: 'the answer is not a JSON object: "<!DOCTYPE html><title>Sign in"',
    },
  ])('$kind $status names the settings to check', (outcome) => {
    expect(unreachableOf(outcome).act).toMatch(/delivery\.base_url, delivery\.proxy, redirects/)
  })

  test('is not assumed where the answer of the service is only cut', () => {
    const message = 'the answer is truncated'
    expect(unreachableOf({ kind: 'unreadable', status: 200, requestId, message })).toEqual({})
  })
})
