import { describe, expect, test } from 'vitest'
import { createAnswerQuality } from '../../../src/delivery/watch/answer-quality.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'

const accepted: Outcome = { kind: 'accepted_single', requestId: null }
const failed: Outcome = {
  kind: 'unavailable',
  status: 500,
  requestId: null,
  message: 'no',
  retryAfterMs: null,
}
const timedOut: Outcome = { kind: 'unreachable', reason: 'timeout', message: 'no answer' }
const refused = { kind: 'repeated', requestId: null, message: 'known' } as const

function world(timeoutMs = 30_000) {
  const events: GatewayEvent[] = []
  let isAvailable = true
  const quality = createAnswerQuality(
    { emit: (event) => void events.push(event), isAvailable: () => isAvailable },
    { name: defaultProvider, timeoutMs },
  )
  return {
    quality,
    answers(times: number, tookMs: number, { outcome = accepted } = {}) {
      for (let n = 0; n < times; n += 1) quality.ended(outcome, tookMs)
    },
    available: (is: boolean) => void (isAvailable = is),
    /** Kind and first number of each event. */
    said: () =>
      events.map((event) => [
        event.kind,
        'answers' in event ? event.answers : 'failed' in event ? event.failed : -1,
      ]),
  }
}

describe('a service that answers late', () => {
  test('is reported once after three answers of ten seconds, and again when most take less', () => {
    const { answers, said } = world()
    answers(2, 11_000)
    expect(said()).toEqual([])
    answers(30, 11_000)
    answers(10, 9000)
    expect(said()).toEqual([['answers_slow', 3]])
    answers(11, 5000)
    expect(said()).toEqual([
      ['answers_slow', 3],
      ['answers_slow', 0],
    ])
  })

  test('is measured against a short timeout, and time-outs count', () => {
    const { answers, said } = world(4000)
    answers(5, 1900)
    expect(said()).toEqual([])
    answers(6, 4000, { outcome: timedOut })
    expect(said().map(([kind]) => kind)).toEqual(['submissions_failing', 'answers_slow'])
  })
})

describe('requests that fail', () => {
  test('are reported where others succeed, until nearly all do', () => {
    const { answers, said } = world()
    answers(14, 10)
    answers(5, 10, { outcome: failed })
    expect(said()).toEqual([])
    answers(1, 10, { outcome: failed })
    expect(said()).toEqual([['submissions_failing', 6]])
    answers(18, 10)
    expect(said()).toHaveLength(1)
    answers(1, 10)
    expect(said().at(-1)).toEqual(['submissions_failing', 0])
  })

  test('are not reported where none succeeds, nor for what is about a batch', () => {
    const { answers, said } = world()
    answers(20, 10, { outcome: failed })
    expect(said()).toEqual([])
    const other = world()
    other.answers(14, 10)
    other.answers(40, 10, { outcome: refused })
    expect(other.said()).toEqual([])
  })

  test('are over with the availability of the endpoint, which has a condition of its own', () => {
    const { answers, available, said } = world()
    answers(14, 11_000)
    answers(6, 10, { outcome: failed })
    available(false)
    answers(1, 10, { outcome: failed })
    expect(said().slice(-2)).toEqual([
      ['answers_slow', 0],
      ['submissions_failing', 0],
    ])
    available(true)
    answers(4, 10)
    answers(5, 10, { outcome: failed })
    expect(said()).toHaveLength(4)
  })
})

describe('payloads that fail', () => {
  test('are reported from a quarter of at least twenty, until they are few', () => {
    const { quality, said } = world()
    quality.settled({ delivered: 10, retried: 9, dead: 0 })
    expect(said()).toEqual([])
    quality.settled({ delivered: 1, retried: 0, dead: 1 })
    expect(said()).toEqual([['payloads_failing', 10]])
    for (let n = 0; n < 17; n += 1) quality.settled({ delivered: 4, retried: 0, dead: 0 })
    expect(said()).toHaveLength(1)
    for (let n = 0; n < 10; n += 1) quality.settled({ delivered: 10, retried: 0, dead: 0 })
    expect(said().at(-1)).toEqual(['payloads_failing', 0])
  })
})
