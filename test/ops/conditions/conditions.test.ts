import { heldActs } from '../../../src/ops/ops.ts'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { HeldReason } from '../../../src/domain/held.ts'
import type { BatchId, LaneId, ProviderName } from '../../../src/domain/ids.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createEventConditions } from '../../../src/ops/conditions/event-conditions.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { handClock } from '../../support/ops-world.ts'

const provider = 'default' as ProviderName
const other = 'other' as ProviderName
const lane = 1 as LaneId
const batchId = 'b-1' as BatchId
const fault = new GatewayError('SPOOL_WRITE_FAILED', { what: 'W.', why: 'Y.', act: 'A.' })

const unavailable = (of: ProviderName): GatewayEvent => ({
  kind: 'endpoint_unavailable',
  provider: of,
  failures: 5,
  why: 'HTTP 500.',
  requestId: 'r',
  retryInMs: 1000,
  act: null,
})
const unauthorized: GatewayEvent = {
  kind: 'endpoint_unauthorized',
  provider,
  status: 403,
  requestId: 'r-9',
  message: 'no',
  clockOffsetMs: 400_000,
  accessKeyId: 'AKIA1',
  retryInMs: 600_000,
}

const heldNow = (
  reason: HeldReason,
  batches: number,
): Extract<GatewayEvent, { kind: 'held_batches_changed' }> => ({
  kind: 'held_batches_changed',
  provider,
  reason,
  batches,
  payloads: 10 * batches,
  oldestAt: 1_750_000_000_000,
  batchId,
  why: 'no',
  requestId: 'request-9',
})

function world() {
  const clock = handClock()
  const conditions = createConditions({ clock })
  const rules = createEventConditions(conditions)
  const codes = () => conditions.open().map(({ code, key }) => (key === null ? code : `${code} ${key}`))
  return { clock, conditions, rules, codes }
}

describe('a condition is open while its problem exists', () => {
  test.each<[string, GatewayEvent, GatewayEvent]>([
    [
      'ENDPOINT_UNAVAILABLE default',
      unavailable(provider),
      { kind: 'endpoint_available', provider, unavailableMs: 1 },
    ],
    [
      'ENDPOINT_UNAUTHORIZED default',
      unauthorized,
      { kind: 'endpoint_available', provider, unavailableMs: 1 },
    ],
    [
      'CREDENTIALS_MISSING default',
      { kind: 'credentials_failed', provider, why: 'no file' },
      { kind: 'credentials_found', provider, accessKeyId: 'AKIA1' },
    ],
    [
      'SPOOL_FULL',
      { kind: 'spool_held', reason: 'spool_full', detail: 'd' },
      { kind: 'spool_resumed', heldMs: 1 },
    ],
    [
      'DISK_LOW',
      { kind: 'spool_held', reason: 'disk_low', detail: 'd' },
      { kind: 'spool_resumed', heldMs: 1 },
    ],
    ['DEAD_LETTERS_FULL', { kind: 'dead_letters_full', bytesMax: 1024 }, { kind: 'dead_letters_resumed' }],
    ['STORE_LOST', { kind: 'store_lost', fault }, { kind: 'store_reopened', lostMs: 1 }],
    ['STORE_LOST', { kind: 'store_reopen_failed', fault, attempt: 2 }, { kind: 'store_reopened', lostMs: 1 }],
    ['BATCH_STUCK default|stuck', heldNow('stuck', 2), heldNow('stuck', 0)],
    ['BATCHES_HELD default|repeated', heldNow('repeated', 1), heldNow('repeated', 0)],
    [
      'WRAPPER_REFUSED default',
      {
        kind: 'wrapper_refused',
        provider,
        why: 'm',
        requestId: null,
        retryInMs: 1,
      },
      { kind: 'endpoint_available', provider, unavailableMs: 1 },
    ],
    ['LISTENER_FAILED', { kind: 'listener_failed', fault }, { kind: 'listener_opened', url: 'mqtt://x' }],
  ])('%s', (code, begins, ends) => {
    const { rules, codes } = world()
    rules.apply(begins)
    expect(codes()).toEqual([code])
    rules.apply(ends)
    expect(codes()).toEqual([])
  })

  test('one provider that recovers does not hide that another has not', () => {
    const { rules, codes } = world()
    rules.apply(unavailable(provider))
    rules.apply(unavailable(other))
    rules.apply({ kind: 'endpoint_available', provider, unavailableMs: 1 })
    expect(codes()).toEqual(['ENDPOINT_UNAVAILABLE other'])
  })

  test('an endpoint is either unavailable or unauthorized', () => {
    const { rules, codes } = world()
    rules.apply(unavailable(provider))
    rules.apply(unauthorized)
    expect(codes()).toEqual(['ENDPOINT_UNAUTHORIZED default'])
    rules.apply(unavailable(provider))
    expect(codes()).toEqual(['ENDPOINT_UNAVAILABLE default'])
  })

  test('a spool that is held for another reason has only the condition of that reason', () => {
    const { rules, codes } = world()
    rules.apply({ kind: 'spool_held', reason: 'spool_full', detail: 'd' })
    rules.apply({ kind: 'spool_held', reason: 'disk_low', detail: 'd' })
    expect(codes()).toEqual(['DISK_LOW'])
  })

  test('repeats are one condition with since and a count', () => {
    const { rules, conditions, clock } = world()
    rules.apply(unavailable(provider))
    clock.move(5000)
    const probe = { failures: 6, why: 'HTTP 503.', requestId: 'r-6', retryInMs: 1, act: null }
    rules.apply({ kind: 'probe_failed', provider, ...probe })
    const [condition] = conditions.open()
    expect(condition).toMatchObject({
      count: 6,
      what: 'Cannot deliver: HTTP 503. Data is kept.',
      why: '6 failures in a row. Last requestId: r-6.',
      since: 1_750_000_000_000,
      lastAt: 1_750_000_005_000,
      severity: 'error',
    })
  })

  test('an endpoint that is unavailable without a failure shows no count of failures', () => {
    const { rules, conditions } = world()
    const probe = { failures: 0, why: 'HTTP 200.', requestId: 'r-1', retryInMs: 1, act: null }
    rules.apply({ kind: 'probe_failed', provider, ...probe })
    expect(conditions.open()[0]?.why).toBe('Last requestId: r-1.')
  })

  test('each reason to ask the support about a batch names the commands that follow', () => {
    for (const reason of ['repeated', 'unlisted'] as const)
      expect(heldActs[reason]).toMatch(/`batches mark-delivered`; if not, `batches reissue`/)
  })

  test('a refused signature names the three causes with what is known of each', () => {
    const { rules, conditions } = world()
    rules.apply(unauthorized)
    const why = conditions.open()[0]?.why
    expect(why).toContain('AKIA1')
    expect(why).toContain('account')
    expect(why).toContain('6 min 40 s behind')
    expect(why).toContain('r-9')
  })
})

const unmappable = {
  kind: 'message_unmappable',
  source: 's',
  topic: 't',
  reason: 'NOT_JSON',
  detail: 'd',
  clientId: null,
  userName: null,
  address: null,
} as const

describe('a loss stays visible', () => {
  test('a dead letter is never silent: it stays until the restart', () => {
    const { rules, conditions, clock } = world()
    rules.apply(unmappable)
    rules.apply({
      kind: 'payload_dead_lettered',
      provider,
      batchId,
      payloadId: 'p',
      reason: 'Validation',
      detail: 'gps',
      requestId: null,
    })
    clock.move(100 * 86_400_000)
    expect(conditions.open()).toEqual([
      expect.objectContaining({ code: 'DEAD_LETTERS', count: 2, severity: 'error' }),
    ])
    expect(conditions.open()[0]?.why).toContain('gps')
  })

  test('a dead letter without an event of its own is found in the counters, once', () => {
    const { rules, conditions } = world()
    rules.apply(unmappable)
    rules.reconcile({ DEAD_LETTERS: 5, MESSAGES_DROPPED: 2, deadLettersKept: 5 })
    rules.reconcile({ DEAD_LETTERS: 5, MESSAGES_DROPPED: 2, deadLettersKept: 5 })
    const counts = Object.fromEntries(conditions.open().map(({ code, count }) => [code, count]))
    expect(counts).toEqual({ DEAD_LETTERS: 5, MESSAGES_DROPPED: 2 })
  })

  test('DEAD_LETTERS is cleared when none is left, but not before the first one is on disk', () => {
    const { rules, codes } = world()
    rules.apply(unmappable)
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: 0 })
    expect(codes()).toEqual(['DEAD_LETTERS'])
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: 1 })
    expect(codes()).toEqual(['DEAD_LETTERS'])
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: 0 })
    expect(codes()).toEqual([])
    rules.reconcile({ DEAD_LETTERS: 2, MESSAGES_DROPPED: 0, deadLettersKept: 1 })
    expect(codes()).toEqual(['DEAD_LETTERS'])
  })

  test('DEAD_LETTERS is cleared when the last one was removed, also between two looks at their number', () => {
    const { rules, codes } = world()
    rules.reconcile({ DEAD_LETTERS: 0, MESSAGES_DROPPED: 0, deadLettersKept: 0 })
    rules.apply(unmappable)
    rules.apply({ kind: 'dead_letters_requeued', deadLetters: 1, payloads: 1 })
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: 0 })
    expect(codes()).toEqual([])
  })

  test('dead letters keep their conditions while the store is lost', () => {
    const { rules, codes } = world()
    rules.apply(unmappable)
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: 3 })
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: null })
    expect(codes()).toEqual(['DEAD_LETTERS', 'DEAD_LETTERS_WAITING'])
    rules.reconcile({ DEAD_LETTERS: 1, MESSAGES_DROPPED: 0, deadLettersKept: 3 })
    expect(codes()).toEqual(['DEAD_LETTERS', 'DEAD_LETTERS_WAITING'])
  })

  test('dead letters from before the start are a warning until they are gone', () => {
    const { rules, conditions, codes } = world()
    rules.reconcile({ DEAD_LETTERS: 0, MESSAGES_DROPPED: 0, deadLettersKept: 3 })
    expect(conditions.open()).toMatchObject([{ code: 'DEAD_LETTERS_WAITING', severity: 'warning', count: 3 }])
    rules.reconcile({ DEAD_LETTERS: 2, MESSAGES_DROPPED: 0, deadLettersKept: 5 })
    const counts = Object.fromEntries(conditions.open().map(({ code, count }) => [code, count]))
    expect(counts).toEqual({ DEAD_LETTERS: 2, DEAD_LETTERS_WAITING: 3 })
    rules.reconcile({ DEAD_LETTERS: 2, MESSAGES_DROPPED: 0, deadLettersKept: 2 })
    expect(codes()).toEqual(['DEAD_LETTERS'])
  })

  test('a config change that needs a restart is a condition until it is reverted', () => {
    const { rules, conditions, codes } = world()
    rules.apply({ kind: 'restart_needed', sections: ['spool', 'ops'] })
    expect(conditions.open()).toMatchObject([
      { code: 'RESTART_NEEDED', what: expect.stringContaining('spool, ops') },
    ])
    rules.apply({ kind: 'restart_needed', sections: [] })
    expect(codes()).toEqual([])
  })

  test('CLIENTS_REFUSED is one for each reason, an error while it is the fleet, and clears after ten minutes', () => {
    const { clock, conditions, rules } = world()
    const refused = { ...eventSamples.clients_refused, reason: 'no_user_name' as const }
    const shown = () =>
      conditions.open().map(({ code, key, severity, count }) => [code, key, severity, count])
    rules.apply(refused)
    rules.apply({ ...refused, reason: 'will_retain', wholeFleet: false, count: 10 })
    expect(shown()).toEqual([
      ['CLIENTS_REFUSED', 'no_user_name', 'error', 25],
      ['CLIENTS_REFUSED', 'will_retain', 'warning', 10],
    ])
    expect(conditions.open()[0]).toMatchObject({
      what: '25 connections of 25 clients refused: 25 of 25 known clients.',
      act: 'Set user name and password in the devices.',
    })
    clock.move(599_999)
    rules.apply({ ...refused, wholeFleet: false, count: 20 })
    expect(shown()).toContainEqual(['CLIENTS_REFUSED', 'no_user_name', 'warning', 45])
    clock.move(1)
    expect(shown()).toEqual([['CLIENTS_REFUSED', 'no_user_name', 'warning', 45]])
    clock.move(599_999)
    expect(shown()).toEqual([])
  })

  test('a purge is an error with its reasons, for a day', () => {
    const { rules, conditions, clock } = world()
    rules.apply({ kind: 'dead_letters_purged', deadLetters: 3, by: 'age', reasons: '3 mapping NOT_JSON' })
    expect(conditions.open()).toMatchObject([{ code: 'DEAD_LETTERS_PURGED', severity: 'error', count: 3 }])
    expect(conditions.open()[0]?.why).toContain('3 mapping NOT_JSON')
    clock.move(86_400_000)
    expect(conditions.open()).toEqual([])
  })

  test('MESSAGES_DROPPED clears an hour after the last drop, and another drop raises it again', () => {
    const { rules, codes, clock } = world()
    rules.apply({ kind: 'messages_dropped', reason: 'spool_full', detail: 'The spool is full.', count: 7 })
    clock.move(3_599_000)
    expect(codes()).toEqual(['MESSAGES_DROPPED'])
    clock.move(1000)
    rules.reconcile({ DEAD_LETTERS: 0, MESSAGES_DROPPED: 7, deadLettersKept: 0 })
    expect(codes()).toEqual([])
    rules.reconcile({ DEAD_LETTERS: 0, MESSAGES_DROPPED: 8, deadLettersKept: 0 })
    expect(codes()).toEqual(['MESSAGES_DROPPED'])
  })

  test('damage of a lane counts the payloads of all its events, and records apart', () => {
    const { rules, conditions } = world()
    rules.apply({ kind: 'chunk_damaged', lane, firstSeq: 4, payloads: 500, what: 'it is missing' })
    rules.apply({ kind: 'chunk_damaged', lane, firstSeq: 0, payloads: 0, what: 'its totals are damaged' })
    rules.apply({ kind: 'chunk_damaged', lane, firstSeq: 900, payloads: 370, what: 'it is missing' })
    const texts = conditions.open().map(({ what, why, count }) => ({ what, why, count }))
    expect(texts).toEqual([
      {
        what: 'Cannot read 870 payloads of lane 1.',
        why: 'Last report: 370 payloads from number 900. It is missing. The lane continues.',
        count: 870,
      },
      {
        what: 'Cannot read 1 record of lane 1.',
        why: 'Its totals are damaged. The lane continues.',
        count: 1,
      },
    ])
  })

  test.each([
    [200, 138, 'Wrong number of dead letters: 200 by the counter, 138 found; 62 are missing.', 62],
    [4, 5, 'Wrong number of dead letters: 4 by the counter, 5 found; 1 more than counted.', 1],
  ])('records that are missing or back are counted (%i, %i)', (known, found, what, count) => {
    const { rules, conditions } = world()
    rules.apply({ kind: 'records_unbalanced', table: 'dead letters', name: '', known, found })
    expect(conditions.open()).toMatchObject([{ code: 'RECORDS_UNBALANCED', what, count }])
  })

  test('damage and a broken count are critical and stay', () => {
    const { rules, conditions, clock } = world()
    rules.apply({ kind: 'chunk_damaged', lane, firstSeq: 4, payloads: 10, what: 'Bad CRC.' })
    rules.apply({ kind: 'conservation_broken', lane, appended: 3, settled: 1, open: 1 })
    clock.move(100 * 86_400_000)
    expect(conditions.open().map(({ code, severity, count }) => [code, severity, count])).toEqual([
      ['CHUNK_DAMAGED', 'critical', 10],
      ['CONSERVATION_BROKEN', 'critical', 1],
    ])
  })
})

describe('held batches', () => {
  test('are counted as they are now, with their age, the last requestId and what to do', () => {
    const { rules, conditions } = world()
    rules.apply(heldNow('repeated', 1))
    rules.apply(heldNow('repeated', 7))
    rules.apply(heldNow('repeated', 5))
    const [open] = conditions.open()
    expect(open).toMatchObject({ code: 'BATCHES_HELD', count: 5 })
    expect(open?.what).toMatch(/5 batches with 50 payloads, the oldest since 2025-06-15T15:06:40/)
    expect(open?.why).toMatch(/409.*request-9/)
    expect(open?.act).toMatch(/batches mark-delivered/)
  })
})

describe('the list is short', () => {
  test('the most severe is first, and the least severe is removed when there are too many', () => {
    const { rules, conditions } = world()
    for (let n = 0; n < 200; n += 1)
      rules.apply({ ...heldNow('stuck', 1), provider: `p-${n}` as ProviderName })
    rules.apply({ kind: 'store_lost', fault })
    const open = conditions.open()
    expect(open).toHaveLength(64)
    expect(open[0]?.code).toBe('STORE_LOST')
    expect(conditions.hidden).toBe(137)
  })

  test('a milder condition takes the place of no other one', () => {
    const { conditions } = world()
    for (let n = 0; n < 64; n += 1) conditions.raise('STORE_LOST', { key: `${n}`, why: 'w.' })
    conditions.raise('MODEL_UNKNOWN', { why: 'w.' })
    expect(conditions.open().every(({ code }) => code === 'STORE_LOST')).toBe(true)
    expect(conditions.hidden).toBe(1)
  })

  test('what stops receiving or delivery is before what is worse and stops nothing', () => {
    const { conditions } = world()
    conditions.raise('CHUNK_DAMAGED', { why: 'w.' })
    conditions.raise('ENDPOINT_UNAVAILABLE', { why: 'w.' })
    conditions.raise('DEVICES_SILENT', { why: 'w.', severity: 'info' })
    expect(conditions.open().map(({ code }) => code)).toEqual([
      'ENDPOINT_UNAVAILABLE',
      'CHUNK_DAMAGED',
      'DEVICES_SILENT',
    ])
  })
})
