import { describe, expect, test } from 'vitest'
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
  earlierResults: null,
  emptyAnswers: 0,
  acceptedLately: true,
  outage: false,
  operation: 'batch',
  suspects: () => [],
  faultShare: null,
  refusedInRow: 0,
  acceptedSince: false,
  mayIsolate: true,
  mayResubmit: false,
  forbidden: 'unknown',
  forbiddenConfirmed: false,
  forbiddenLimitReached: false,
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
  complete: true,
  tooLarge: false,
  deviations,
})

/** An answer that ended early, or at delivery.max_response_bytes. */
const cut = (accepted: readonly string[], failed: readonly FailureRecord[], tooLarge = false): Outcome => ({
  kind: 'answered',
  requestId: 'r',
  accepted,
  failed,
  complete: false,
  tooLarge,
  deviations: [],
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

type Row = [
  name: string,
  outcome: Outcome,
  changes: Partial<Facts & RetryPolicy>,
  /** What `textOf` says. */
  verdict: string,
]

const message = 'words'
const requestId = 'r'
const earlier = new Map([['a', 'accepted' as const]])
const retryRole = { kind: 'retry', schedule: 'default', step: 0 } as const
const lastStep = { kind: 'retry', schedule: 'default', step: 2 } as const
/** Two answers of type Validation counted, and those of other types. */
const validated = (step: number, others = 0) =>
  ({
    kind: 'retry',
    schedule: 'Validation',
    step,
    counted: { Validation: step + 1, default: others },
  }) as const

const alone = { payloadIds: () => ids.slice(0, 1), payloads: 1, operation: 'single' as const }
const refused = (status: 400 | 413): Outcome => ({ kind: 'refused', status, requestId, message, details: [] })

const forbidden = (status: 401 | 403): Outcome => ({ kind: 'unauthorized', status, requestId, message })

const rows: Row[] = [
  ['all accepted', answered('all', []), {}, 'all delivered'],
  ['all accepted in another order', answered(['c', 'a', 'b'], []), {}, 'delivered, delivered, delivered'],
  ['ids in upper case', answered(['A', 'B', 'C'], []), {}, 'delivered, delivered, delivered'],
  ['one failed', answered(['a', 'c'], [failure('b')]), {}, 'delivered, retry Validation 0, delivered'],
  [
    'failed the second time',
    answered(['a', 'c'], [failure('b')]),
    { attempts: () => [1, 1, 1], role: { ...retryRole, schedule: 'Validation' } },
    'delivered, retry Validation 1, delivered',
  ],
  [
    'failed after the last step',
    answered(['a', 'c'], [failure('b')]),
    { attempts: () => [2, 2, 2], role: validated(1) },
    'delivered, dead Validation, delivered',
  ],
  [
    'another type goes the default steps',
    answered(['a', 'c'], [failure('b', 'Quota')]),
    { attempts: () => [2, 2, 2], role: { ...retryRole, step: 1 } },
    'delivered, retry default 2, delivered',
  ],
  [
    'one of Validation after two of another type',
    answered(['a', 'c'], [failure('b')]),
    { attempts: () => [2, 2, 2], role: { ...retryRole, step: 1 } },
    'delivered, retry Validation 0, delivered',
  ],
  [
    'a type of before, after one of Validation',
    answered(['a', 'c'], [failure('b', 'Throttled')]),
    { attempts: () => [3, 3, 3], role: validated(0, 2) },
    'delivered, retry default 2, delivered',
  ],
  [
    'two types in turn, after as many answers as there are steps in all',
    answered(['a', 'c'], [failure('b')]),
    { attempts: () => [5, 5, 5], role: { ...retryRole, step: 1 } },
    'delivered, dead Validation, delivered',
  ],
  [
    'a type declared delivered',
    answered(['a', 'c'], [failure('b', 'Duplicate')]),
    {},
    'delivered, delivered, delivered',
  ],
  [
    'in both lists: failed wins',
    answered(['a', 'b', 'c'], [failure('b')]),
    {},
    'delivered, retry Validation 0, delivered',
  ],
  [
    'foreign ids are nothing to us',
    answered(['a', 'b', 'c', 'x'], [failure('y')]),
    {},
    'delivered, delivered, delivered',
  ],
  ['one in neither list', answered(['a', 'b'], []), {}, 'held; wait: backoff'],
  [
    'the same one, again',
    answered(['a', 'b'], []),
    { earlierResults: new Map() },
    'delivered, delivered, retry default 0',
  ],
  [
    'an earlier answer fills the gap',
    answered(['b', 'c'], []),
    { earlierResults: earlier },
    'delivered, delivered, delivered',
  ],
  [
    'what an earlier answer accepted stays delivered',
    answered(['b', 'c'], [failure('a')]),
    { earlierResults: earlier },
    'delivered, delivered, delivered',
  ],
  ['an answer that ended early', cut(['a'], []), {}, 'held; wait: backoff; endpoint: failure'],
  [
    'the same, again',
    cut(['a'], []),
    { earlierResults: new Map() },
    'held; wait: backoff; endpoint: failure',
  ],
  ['an answer that is too large', cut(['a'], [], true), {}, 'held; wait: slow'],
  [
    'an answer that is too large and accepts nothing',
    cut([], [failure('a')], true),
    {},
    'held; wait: slow; endpoint: refused',
  ],
  [
    'an answer that ended early, after all payloads were named',
    cut(['a', 'b'], [failure('c')]),
    {},
    'delivered, delivered, retry Validation 0',
  ],
  [
    'an answer that ended early and names what an earlier one did not',
    cut(['b', 'c'], []),
    { earlierResults: earlier },
    'delivered, delivered, delivered',
  ],
  [
    'one in neither list, after an answer that ended early',
    answered(['a', 'b'], []),
    { earlierResults: Object.assign(new Map(), { partial: true }) },
    'held; wait: backoff',
  ],
  ['none of the batch', answered([], []), {}, 'held; wait: backoff; endpoint: refused'],
  [
    'none of the batch, again',
    answered([], []),
    { earlierResults: new Map() },
    'held; wait: slow; endpoint: refused',
  ],
  [
    'nothing accepted, the second batch',
    all('Internal'),
    { emptyAnswers: 1 },
    'retry default 0, retry default 0, retry default 0',
  ],
  [
    'nothing accepted, the third batch',
    all('Internal'),
    { emptyAnswers: 2 },
    'retry default 0 outage, retry default 0 outage, retry default 0 outage; endpoint: outage',
  ],
  [
    'nothing accepted, third batch, Validation',
    all('Validation'),
    { emptyAnswers: 2 },
    'retry Validation 0, retry Validation 0, retry Validation 0',
  ],
  [
    'nothing accepted, third batch, mixed',
    answered([], [failure('a'), failure('b'), failure('c', 'Internal')]),
    { emptyAnswers: 2 },
    'retry Validation 0 outage, retry Validation 0 outage, retry default 0 outage; endpoint: outage',
  ],
  [
    'an outage goes on, Validation only',
    all('Validation'),
    { emptyAnswers: 3, outage: true, attempts: () => [2, 2, 2], role: validated(1) },
    'retry Validation 0 outage, retry Validation 0 outage, retry Validation 0 outage',
  ],
  [
    'an outage goes on, and one payload is accepted',
    answered(['a'], [failure('b'), failure('c', 'Internal')]),
    { emptyAnswers: 3, outage: true },
    'delivered, retry Validation 0 outage, retry default 0 outage',
  ],
  [
    'nothing accepted, a last step, and nothing accepted lately either',
    all('Internal'),
    { acceptedLately: false, attempts: () => [3, 3, 3], role: lastStep },
    'retry default 0 outage, retry default 0 outage, retry default 0 outage',
  ],
  [
    'nothing accepted, a last step of Validation, and nothing accepted lately either',
    all('Validation'),
    { acceptedLately: false, attempts: () => [2, 2, 2], role: validated(1) },
    'dead Validation, dead Validation, dead Validation',
  ],
  [
    'nothing accepted, a last step, and the answer may be that to an earlier submission',
    all('Internal'),
    { mayBeProcessed: true, attempts: () => [3, 3, 3], role: lastStep },
    'retry default 0 outage, retry default 0 outage, retry default 0 outage',
  ],
  [
    'nothing accepted, a last step, while others are accepted',
    all('Internal'),
    { attempts: () => [3, 3, 3], role: lastStep },
    'dead Internal, dead Internal, dead Internal',
  ],
  [
    'a batch of a retry lane does not count',
    all('Internal'),
    { emptyAnswers: 2, role: retryRole },
    'retry default 1, retry default 1, retry default 1',
  ],
  [
    'a retry lane counts no attempt in an outage',
    all('Internal'),
    { emptyAnswers: 3, role: lastStep },
    'retry default 0 outage, retry default 0 outage, retry default 0 outage; endpoint: outage',
  ],
  ['202 for one payload', { kind: 'accepted_single', requestId }, alone, 'all delivered'],
  [
    '202 for many says nothing',
    { kind: 'accepted_single', requestId },
    {},
    'held; wait: backoff; endpoint: failure',
  ],
  [
    '202 for one of a refused batch, others accepted since',
    { kind: 'accepted_single', requestId },
    { ...alone, refusedInRow: 1, acceptedSince: true },
    'all delivered',
  ],
  [
    '202 for one of a refused batch, nothing else accepted since',
    { kind: 'accepted_single', requestId },
    { ...alone, refusedInRow: 1 },
    'all delivered; endpoint: wrapper',
  ],
  [
    '202 where every payload goes by itself',
    { kind: 'accepted_single', requestId },
    { ...alone, refusedInRow: 1, mode: 'single' },
    'all delivered',
  ],
  ['400', refused(400), {}, 'split 2+1; endpoint: isolating'],
  ['413', refused(413), {}, 'split 2+1; endpoint: isolating'],
  ['400, the second in a row', refused(400), { refusedInRow: 1 }, 'split 2+1; endpoint: isolating'],
  ['400, the third in a row', refused(400), { refusedInRow: 2 }, 'split 1+2; endpoint: isolating'],
  ['413, the third in a row', refused(413), { refusedInRow: 2 }, 'split 2+1; endpoint: isolating'],
  [
    '400 while another is taken apart',
    refused(400),
    { mayIsolate: false },
    'held; wait: isolation; endpoint: isolating',
  ],
  ['400 for one payload', refused(400), { ...alone, operation: 'batch' }, 'by single; endpoint: isolating'],
  [
    '400 by the single operation too',
    refused(400),
    { ...alone, acceptedSince: true },
    'dead Refused; endpoint: isolating',
  ],
  [
    '413 by the single operation too',
    refused(413),
    { ...alone, acceptedSince: true },
    'dead Refused; endpoint: isolating',
  ],
  [
    '400 by both, and nothing accepted since',
    refused(400),
    alone,
    'held; wait: acceptance; endpoint: isolating',
  ],
  ['400, the twelfth in a row', refused(400), { refusedInRow: 11 }, 'split 2+1; endpoint: wrapper'],
  [
    '400 by both, the twelfth in a row, makes no dead letter',
    refused(400),
    { ...alone, refusedInRow: 11, acceptedSince: true },
    'held; wait: acceptance; endpoint: wrapper',
  ],
  [
    '409, sent before, resend',
    { kind: 'repeated', requestId, message },
    { mayBeProcessed: true, onRepeat: 'resend' },
    'split 3; endpoint: isolating',
  ],
  [
    '409, never sent, resend',
    { kind: 'repeated', requestId, message },
    { onRepeat: 'resend' },
    'held; wait: slow; endpoint: refused',
  ],
  [
    '409, sent before, hold',
    { kind: 'repeated', requestId, message },
    { mayBeProcessed: true },
    'held; wait: slow; endpoint: refused',
  ],
  [
    '409, sent before, delivered',
    { kind: 'repeated', requestId, message },
    { mayBeProcessed: true, onRepeat: 'delivered' },
    'all delivered',
  ],
  [
    '409, sent before, delivered, but an earlier answer refused one',
    { kind: 'repeated', requestId, message },
    { mayBeProcessed: true, onRepeat: 'delivered', earlierResults: new Map([['a', failure('a')]]) },
    'retry Validation 0, delivered, delivered',
  ],
  [
    '409, sent before, resend, but an earlier answer accepted one',
    { kind: 'repeated', requestId, message },
    { mayBeProcessed: true, onRepeat: 'resend', earlierResults: earlier },
    'delivered, retry default 0, retry default 0; endpoint: isolating',
  ],
  [
    '409, sent before, resend, but an answer that ended early accepted one',
    { kind: 'repeated', requestId, message },
    {
      mayBeProcessed: true,
      onRepeat: 'resend',
      role: lastStep,
      earlierResults: Object.assign(new Map(earlier), { partial: true }),
    },
    'delivered, retry default 0 unanswered, retry default 0 unanswered; endpoint: isolating',
  ],
  [
    '409, never sent',
    { kind: 'repeated', requestId, message },
    { onRepeat: 'delivered' },
    'held; wait: slow; endpoint: refused',
  ],
  [
    '401, credentials not read again yet',
    { kind: 'unauthorized', status: 401, requestId, message },
    { mayResubmit: true },
    'submitted again; endpoint: unchanged',
  ],
  ['403, others are due', forbidden(403), {}, 'held; wait: other-batches; endpoint: unchanged'],
  [
    '403, no other is due',
    forbidden(403),
    { alone: () => true },
    'held; wait: other-batches; endpoint: unauthorized',
  ],
  ['403 to three others too', forbidden(403), { forbidden: 'all' }, 'held; endpoint: unauthorized'],
  ['403 to this batch alone', forbidden(403), { forbidden: 'alone' }, 'split 2+1; endpoint: isolating'],
  ['401 to this batch alone', forbidden(401), { forbidden: 'alone' }, 'held; wait: slow; endpoint: refused'],
  [
    '403 to this batch alone, which may have been processed',
    forbidden(403),
    { forbidden: 'alone', mayBeProcessed: true },
    'held; wait: slow; endpoint: refused',
  ],
  [
    '403 to one payload, not confirmed yet',
    forbidden(403),
    { ...alone, forbidden: 'alone', acceptedSince: true },
    'held; wait: acceptance; endpoint: isolating',
  ],
  [
    '403 to one payload again, while others are accepted',
    forbidden(403),
    { ...alone, forbidden: 'alone', acceptedSince: true, forbiddenConfirmed: true },
    'dead FORBIDDEN; endpoint: isolating',
  ],
  [
    '403 to one payload again, the eleventh within an hour',
    forbidden(403),
    {
      ...alone,
      forbidden: 'alone',
      acceptedSince: true,
      forbiddenConfirmed: true,
      forbiddenLimitReached: true,
    },
    'held; wait: slow; endpoint: isolating',
  ],
  [
    '403, the twelfth refusal in a row',
    forbidden(403),
    { forbidden: 'alone', refusedInRow: 11 },
    'split 2+1; endpoint: unauthorized',
  ],
  [
    '400 to a batch that may have been processed',
    refused(400),
    { mayBeProcessed: true },
    'held; wait: backoff; endpoint: isolating',
  ],
  [
    '413 to a batch that may have been processed, the third time',
    refused(413),
    { mayBeProcessed: true, refusals: 2 },
    'held; wait: slow; endpoint: isolating',
  ],
  [
    '400 to a batch that may have been processed, if the config says split',
    refused(400),
    { mayBeProcessed: true, onRefusedRepeat: 'split' },
    'split 2+1; endpoint: isolating',
  ],
  [
    '500 the third time, while others are accepted',
    { kind: 'unavailable', status: 500, requestId, message, retryAfterMs: null },
    { failuresAlone: 3 },
    'held; wait: stuck; endpoint: failure',
  ],
  [
    '429 with a Retry-After of minutes, while others are accepted',
    { kind: 'unavailable', status: 429, requestId, message, retryAfterMs: 600_000 },
    { failuresAlone: 1 },
    'held; wait: backoff; endpoint: failure',
  ],
  ['a stuck batch with an answer with gaps', answered(['a'], []), { stuck: true }, 'held; wait: stuck'],
  [
    'a last step while the dead letters are full',
    answered(['a', 'c'], [failure('b')]),
    { attempts: () => [2, 2, 2], role: validated(1), deadLettersFull: true },
    'delivered, retry Validation 0 no_room, delivered',
  ],
  [
    '400 by both operations while the dead letters are full',
    refused(400),
    { ...alone, acceptedSince: true, deadLettersFull: true },
    'retry default 0 no_room; endpoint: isolating',
  ],
  [
    'an earlier step while the dead letters are full',
    answered(['a', 'c'], [failure('b')]),
    { deadLettersFull: true },
    'delivered, retry Validation 0, delivered',
  ],
  [
    '401, no other is due',
    forbidden(401),
    { alone: () => true },
    'held; wait: other-batches; endpoint: unauthorized',
  ],
  [
    '500',
    { kind: 'unavailable', status: 500, requestId, message, retryAfterMs: null },
    {},
    'held; wait: backoff; endpoint: failure',
  ],
  [
    'timeout',
    { kind: 'unreachable', reason: 'timeout', message },
    {},
    'held; wait: backoff; endpoint: failure',
  ],
  [
    'unreadable',
    { kind: 'unreadable', status: 200, requestId, message },
    {},
    'held; wait: backoff; endpoint: failure',
  ],
  [
    '302',
    { kind: 'unexpected', status: 302, requestId, message },
    {},
    'held; wait: backoff; endpoint: failure',
  ],
  ['aborted', { kind: 'aborted' }, {}, 'held; endpoint: unchanged'],
  [
    'interrupted by the loss of the sender thread',
    { kind: 'interrupted', losses: 1, message: '' },
    { failuresAlone: 99 },
    'held; wait: backoff; endpoint: unchanged',
  ],
  [
    'interrupted twice in a row: a back-off of its own',
    { kind: 'interrupted', losses: 2, message: '' },
    {},
    'held; wait: stuck; endpoint: unchanged',
  ],
  [
    'bytes that changed in memory',
    { kind: 'body_changed', message: 'x' },
    {},
    'held; wait: backoff; endpoint: unchanged',
  ],
]

describe('the verdict table', () => {
  test.each(rows)('%s', (_name, outcome, changes, expected) => {
    expect(textOf(judge(outcome, { ...facts, ...changes }, { ...policy, ...changes }))).toBe(expected)
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

  test('keeps what an incomplete answer said, and whether any answer was complete', () => {
    const first = judge(cut(['a'], []), facts, policy).results
    expect([...(first ?? [])]).toEqual([['a', 'accepted']])
    expect(first?.partial).toBe(true)
    const second = judge(cut(['b'], []), { ...facts, earlierResults: first }, policy).results
    expect([...(second?.keys() ?? [])]).toEqual(['a', 'b'])
    const whole = judge(answered(['b'], []), { ...facts, earlierResults: first }, policy).results
    expect(whole?.partial).toBe(false)
  })

  test('passes on the deviations of an answer', () => {
    expect(judge(answered(ids, [], ['no summary']), facts, policy).deviations).toEqual(['no summary'])
  })
})
