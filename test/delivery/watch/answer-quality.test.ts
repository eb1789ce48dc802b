import { expect } from 'vitest'
import { createAnswerQuality } from '../../../src/delivery/watch/answer-quality.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'
import { stepCases } from '../../support/step-cases.ts'

const outcomes: Record<string, Outcome> = {
  accepted: { kind: 'accepted_single', requestId: null },
  failed: { kind: 'unavailable', status: 500, requestId: null, message: 'no', retryAfterMs: null },
  timedOut: { kind: 'unreachable', reason: 'timeout', message: 'no answer' },
  refused: { kind: 'repeated', requestId: null, message: 'known' },
}

type World = ReturnType<typeof world>

function world(given: { timeoutMs: number } | undefined) {
  const state = { isAvailable: true }
  const quality = createAnswerQuality(
    { isAvailable: () => state.isAvailable },
    { name: defaultProvider, timeoutMs: given?.timeoutMs ?? 30_000 },
  )
  return { quality, state }
}

stepCases(import.meta.filename, world, {
  /** How many, how long each took, and what they were. */
  answers: ({ quality }: World, [times, tookMs, outcome = 'accepted']: [number, number, string?]) => {
    for (let n = 0; n < times; n += 1) quality.ended(outcomes[outcome]!, tookMs)
  },
  settles: ({ quality }: World, [times, delivered, retried = 0, dead = 0]: number[]) => {
    for (let n = 0; n < times!; n += 1) quality.settled({ delivered: delivered!, retried, dead })
  },
  isAvailable: ({ state }: World, isAvailable: boolean) => Object.assign(state, { isAvailable }),
  /** Code and first number of each state that holds. */
  holds: ({ quality }: World, expected: [string, number][]) =>
    expect(
      [...quality.states()].map((state) => [
        state.code,
        'answers' in state ? state.answers : 'failed' in state ? state.failed : -1,
      ]),
    ).toEqual(expected),
})
