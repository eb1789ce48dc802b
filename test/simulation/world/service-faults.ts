// service-faults.ts: what a submission can meet at the service, and how a seed draws it.

import type { Random } from '../../support/random.ts'

/** Ways in which an answer is not what the specification says, although most name every payload. */
const oddities = [
  'in both lists',
  'twice',
  'unknown ids',
  'capital letters',
  'wrong summary',
  'other code',
  // Its summary says that all were accepted, and its list has some of them.
  'short list',
] as const

export type Fault =
  | { kind: 'none' }
  | { kind: 'status'; status: number; retryAfterS?: number; hasDate?: boolean; processes: boolean }
  /** The connection ends within the request, before it was read or processed, or before the answer. */
  | { kind: 'reset'; when: 'within' | 'at once' | 'before' | 'after' }
  | { kind: 'hang'; processes: boolean }
  | { kind: 'slow'; ms: number }
  /** This part of the answer, then the end of the connection. `times`: so many submissions of a batch meet it. */
  | { kind: 'truncated'; part: number; times: number }
  | { kind: 'html' }
  /** Payloads in neither list. `processes`: what is left out was processed. `isSteady`: the same ones each time. */
  | { kind: 'unlisted'; share: number; processes: boolean; isSteady: boolean; times: number }
  /**
   * An outage told inside a 200: everything failed with this errorType. `isLost`: the first answer to each batch does not
   * arrive, so a service that remembers tells of the outage when it is over.
   */
  | { kind: 'outage'; errorType: string; isLost: boolean }
  | { kind: 'some failed'; share: number; errorTypes: readonly string[] }
  | { kind: 'odd'; how: (typeof oddities)[number] }
  /** 413 for each body beyond it, unless it has one payload. */
  | { kind: 'body limit'; bytes: number }
  /** 403 for each request with one of some payloads, of which there is one in `every`. */
  | { kind: 'firewall'; every: number }

type Of = {
  /** Answers may name payloads as failed. */
  mayFail: boolean
  /** To a batch that it knows it repeats its first answer. */
  remembers: boolean
}

export function drawFault(random: Random, { mayFail, remembers }: Of): Fault {
  const outage = (lostShare: number): Fault => ({
    kind: 'outage',
    errorType: random.pick(['Throttled', 'Internal', 'Internal', 'Validation']),
    isLost: random.chance(lostShare),
  })
  const ofPayloads: (() => Fault)[] = [
    () => ({
      kind: 'unlisted',
      share: random.next(),
      processes: random.chance(0.5),
      isSteady: random.chance(0.5),
      times: 1 + random.below(3),
    }),
    () => outage(0.4),
    () => outage(remembers ? 1 : 0),
    () => ({ kind: 'some failed', share: random.next(), errorTypes: ['Throttled'] }),
    () => ({ kind: 'some failed', share: random.next(), errorTypes: ['Validation'] }),
    () => ({ kind: 'some failed', share: random.next(), errorTypes: ['Throttled', 'Validation', 'Busy'] }),
    () => ({ kind: 'odd', how: random.pick(oddities) }),
  ]
  return random.pick<() => Fault>([
    ...(mayFail ? [...ofPayloads, ...ofPayloads] : []),
    // The status of the specification, with which a batch may have been processed.
    () => ({ kind: 'status', status: 500, processes: true }),
    () => ({
      kind: 'status',
      status: random.pick([500, 500, 500, 502, 503, 429, 408]),
      processes: random.chance(0.5),
    }),
    () => ({
      kind: 'status',
      status: random.pick([503, 429]),
      retryAfterS: random.below(random.pick([10, 30, 120])),
      processes: random.chance(0.3),
    }),
    () => ({
      kind: 'status',
      status: random.pick([403, 401, 302, 404, 202]),
      hasDate: random.chance(0.7),
      processes: false,
    }),
    () => ({ kind: 'status', status: random.pick([400, 413]), processes: false }),
    () => ({ kind: 'reset', when: random.pick(['within', 'at once', 'before', 'after', 'after']) }),
    () => ({ kind: 'hang', processes: random.chance(0.5) }),
    () => ({ kind: 'slow', ms: random.below(20_000) }),
    () => ({ kind: 'truncated', part: 0.2 + 0.7 * random.next(), times: 1 + random.below(3) }),
    () => ({ kind: 'html' }),
    () => ({ kind: 'body limit', bytes: 600 + random.below(4000) }),
    () => ({ kind: 'firewall', every: 3 + random.below(6) }),
  ])()
}
