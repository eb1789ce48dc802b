import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { judge } from '../../../src/delivery/policy/verdict.ts'
import type { RetryRule } from '../../../src/delivery/delivery-options.ts'
import type { Facts, RetryPolicy, Verdict } from '../../../src/delivery/policy/policy.ts'
import type { PayloadId } from '../../../src/domain/ids.ts'
import type { FailureRecord, Outcome } from '../../../src/domain/outcome.ts'

const ids = ['a', 'b', 'c'] as unknown as readonly PayloadId[]

const policy: RetryPolicy = {
  retryRules: new Map<string, RetryRule>([
    ['Validation', [300_000, 3_600_000]],
    ['default', [10_000, 60_000, 300_000]],
    ['Duplicate', 'delivered'],
  ]),
  onRepeat: 'hold',
  onRefusedRepeat: 'hold',
  mode: 'batch',
  emptyAnswersToUnavailable: 3,
  refusalsToUnavailable: 12,
  failuresToStuck: 3,
  maxMs: 60_000,
}

const facts: Facts = {
  payloadIds: () => ids,
  payloads: ids.length,
  attempts: () => [0, 0, 0],
  role: { kind: 'live' },
  mayBeProcessed: false,
  refusals: 0,
  interruptions: 0,
  longAnswers: 0,
  isHeld: false,
  earlierResults: null,
  emptyAnswers: 0,
  acceptedLately: true,
  outage: false,
  operation: 'batch',
  refusedInRow: 0,
  acceptedSince: false,
  refusedOfOrigin: 0,
  mayResubmit: false,
  forbidden: 'unknown',
  alone: () => false,
  failuresAlone: 0,
  stuck: false,
  deadLettersFull: false,
}

const failure = (payloadId: string, errorType = 'Validation'): FailureRecord => ({
  payloadId,
  errorType,
  errorMessage: 'is bad',
  validationErrorDetails: [{ field: 'gps.latitude', message: 'must not be empty' }],
})

const answered = (
  accepted: readonly string[] | 'all',
  failed: readonly FailureRecord[],
  deviations: string[] = [],
): Outcome => ({
  kind: 'answered',
  requestId: 'r',
  accepted,
  failed,
  deviations,
})

const all = (errorType: string) =>
  answered(
    [],
    ids.map((id) => failure(id, errorType)),
  )

/**
 * What becomes of the payloads: `retry Validation 0`, `dead Validation`, `delivered`, or what replaces the batch. Then
 * what a held batch waits for, and what the endpoint learns, where it is not `success`.
 */
function textOf(verdict: Verdict): string {
  const { wait, endpoint } = verdict
  const parts = [
    settlementsOf(verdict),
    ...(wait === 'none' ? [] : [`wait: ${wait}`]),
    ...(endpoint === 'success' ? [] : [`endpoint: ${endpoint}`]),
  ]
  return parts.join('; ')
}

function settlementsOf({ settlement, reseal, operation, resubmit }: Verdict): string {
  if (reseal !== null) return `split ${reseal.join('+')}`
  if (operation !== null) return `by ${operation}`
  if (resubmit) return 'submitted again'
  if (settlement === null) return 'held'
  if (settlement.payloads === 'all delivered') return 'all delivered'
  const words = settlement.payloads.map((one) => {
    if (one.kind === 'delivered') return 'delivered'
    if (one.kind !== 'retry') return `${one.kind} ${one.reason}`
    return `retry ${one.schedule} ${one.step}${one.uncounted ? ` ${one.uncounted}` : ''}`
  })
  return words.join(', ')
}

const message = 'words'
const requestId = 'r'
const retryRole = { kind: 'retry', schedule: 'default', step: 0 } as const

type Case = {
  name: string
  answer: { accepted?: readonly string[] | 'all'; failed?: Record<string, string>; [field: string]: unknown }
  /** The others are those of the same name. */
  facts?: {
    single?: boolean
    attempts?: number[]
    role?: object
    alone?: boolean
    earlier?: Record<string, string>
  }
  verdict: string
}

const cases = parse(readFileSync(join(import.meta.dirname, 'verdict.cases.yaml'), 'utf8')) as Case[]

function outcomeOf({ accepted, failed = {}, ...other }: Case['answer']): Outcome {
  const common = { requestId, message, details: [], retryAfterMs: null }
  if (accepted === undefined) return { ...common, ...other } as unknown as Outcome
  const records = Object.entries(failed).map(([id, errorType]) => failure(id, errorType))
  return { ...answered(accepted, records), ...other }
}

function factsOf({ single, attempts, role, alone, earlier, ...other }: NonNullable<Case['facts']>) {
  const results = Object.entries(earlier ?? {}).map(
    ([id, said]) => [id, said === 'accepted' ? said : failure(id, said)] as const,
  )
  return {
    ...facts,
    ...(single && { payloadIds: () => ids.slice(0, 1), payloads: 1, operation: 'single' as const }),
    ...(attempts && { attempts: () => attempts }),
    ...(role && { role: { ...retryRole, ...role } }),
    ...(alone && { alone: () => true }),
    ...(earlier && { earlierResults: new Map(results) }),
    ...other,
  }
}

describe('the verdict table', () => {
  test.each(cases)('$name', ({ answer, facts = {}, verdict }) => {
    expect(textOf(judge(outcomeOf(answer), factsOf(facts), { ...policy, ...facts }))).toBe(verdict)
  })

  test('names the fields in the detail of a dead letter', () => {
    const verdict = judge(
      answered(['a', 'c'], [failure('b')]),
      { ...facts, attempts: () => [0, 5, 0] },
      policy,
    )
    expect(verdict.settlement?.payloads[1]).toMatchObject({
      kind: 'dead',
      detail: 'is bad; gps.latitude: must not be empty',
      failure: { payloadId: 'b' },
    })
  })

  test('explains why a batch is held where a back-off does not help', () => {
    const outcome: Outcome = { kind: 'unexpected', status: 302, requestId, message: 'moved' }
    expect(judge(outcome, facts, policy).why).toMatch(/302.*moved/)
  })

  test('counts empty answers, and forgets them at the first accepted payload', () => {
    expect(judge(all('Internal'), facts, policy).emptyAnswers).toBe('increment')
    expect(judge(answered(['a', 'b'], [failure('c')]), facts, policy).emptyAnswers).toBe('reset')
    expect(judge(all('Internal'), { ...facts, role: retryRole }, policy).emptyAnswers).toBe('unchanged')
  })

  test('passes on the deviations of an answer', () => {
    expect(judge(answered(ids, [], ['no summary']), facts, policy).deviations).toEqual(['no summary'])
  })
})
