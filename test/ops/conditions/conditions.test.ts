import { heldActs } from '../../../src/ops/ops.ts'
import { describe, expect, test } from 'vitest'
import type { EventName, EventOf, GatewayEvent } from '../../../src/domain/event.ts'
import type { HeldReason } from '../../../src/domain/held.ts'
import type { LaneId, ProviderName } from '../../../src/domain/ids.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createEventConditions } from '../../../src/ops/conditions/event-conditions.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { handClock } from '../../support/ops-world.ts'

const other = 'other' as ProviderName
const lane = 1 as LaneId
const hourMs = 3_600_000
const { endpoint_unavailable: unavailable, endpoint_unauthorized: unauthorized } = eventSamples

const heldNow = (reason: HeldReason, batches: number): EventOf<'held_batches_changed'> => ({
  ...eventSamples.held_batches_changed,
  reason,
  batches,
  payloads: 10 * batches,
})

function world() {
  const clock = handClock()
  const conditions = createConditions({ clock })
  const rules = createEventConditions(conditions)
  const codes = () => conditions.open().map(({ code, key }) => (key === null ? code : `${code} ${key}`))
  return { clock, conditions, rules, codes, open: () => conditions.open() }
}

const held = (reason: EventOf<'spool_held'>['reason']) => ({ ...eventSamples.spool_held, reason })
const noDevices = (kind: 'model_unknown' | 'values_withheld' | 'positions_swapped') =>
  ({ ...eventSamples[kind], devices: 0 }) as GatewayEvent

describe('a condition is open while its problem exists', () => {
  test.each<[string, GatewayEvent | EventName, GatewayEvent | EventName]>([
    ['ENDPOINT_UNAVAILABLE north', 'endpoint_unavailable', 'endpoint_available'],
    ['ENDPOINT_UNAUTHORIZED north', 'endpoint_unauthorized', 'endpoint_available'],
    ['WRAPPER_REFUSED north', 'wrapper_refused', 'endpoint_available'],
    ['CREDENTIALS_MISSING north', 'credentials_failed', 'credentials_found'],
    ['CREDENTIALS_STALE north', 'credentials_stale', 'credentials_refreshed'],
    ['CLOCK_OFF north', 'clock_off', 'clock_right'],
    ['PROVIDER_UNKNOWN north', 'provider_unknown', { ...eventSamples.provider_unknown, payloads: 0 }],
    ['BATCH_STUCK north|stuck', heldNow('stuck', 2), heldNow('stuck', 0)],
    ['BATCHES_HELD north|repeated', heldNow('repeated', 1), heldNow('repeated', 0)],
    ['SPOOL_FULL', held('spool_full'), 'spool_resumed'],
    ['DISK_LOW', held('disk_low'), 'spool_resumed'],
    ['DEAD_LETTERS_FULL', 'dead_letters_full', 'dead_letters_resumed'],
    ['STORE_LOST', 'store_lost', 'store_reopened'],
    ['STORE_LOST', 'store_reopen_failed', 'store_reopened'],
    ['LISTENER_FAILED', 'listener_failed', 'listener_opened'],
    ['RESTART_NEEDED', 'restart_needed', { kind: 'restart_needed', options: [] }],
    ['MAPPING_STALE', 'mapping_refused', 'mapping_reloaded'],
    ['MODEL_UNKNOWN trucks', 'model_unknown', noDevices('model_unknown')],
    ['VALUES_WITHHELD trucks', 'values_withheld', noDevices('values_withheld')],
    ['POSITIONS_SWAPPED trucks', 'positions_swapped', noDevices('positions_swapped')],
    ['CLOCK_SUSPECT', 'clock_suspect', 'clock_trusted'],
  ])('%s', (code, begins, ends) => {
    const { rules, codes } = world()
    const eventOf = (event: GatewayEvent | EventName): GatewayEvent =>
      typeof event === 'string' ? eventSamples[event] : event
    const end = eventOf(ends)
    rules.apply(eventOf(begins))
    expect(codes()).toEqual([code])
    // That it is over for another provider ends nothing.
    if ('provider' in end) rules.apply({ ...end, provider: other })
    expect(codes()).toEqual([code])
    rules.apply(end)
    expect(codes()).toEqual([])
  })

  test('an endpoint is either unavailable or unauthorized', () => {
    const { rules, codes } = world()
    rules.apply(unavailable)
    rules.apply(unauthorized)
    expect(codes()).toEqual(['ENDPOINT_UNAUTHORIZED north'])
    rules.apply(unavailable)
    expect(codes()).toEqual(['ENDPOINT_UNAVAILABLE north'])
  })

  test('a spool that is held for another reason has only the condition of that reason', () => {
    const { rules, codes } = world()
    rules.apply(held('spool_full'))
    rules.apply(held('disk_low'))
    expect(codes()).toEqual(['DISK_LOW'])
  })

  test('repeats are one condition with since and a count', () => {
    const { rules, open, clock } = world()
    rules.apply(unavailable)
    clock.move(5000)
    rules.apply({ ...eventSamples.probe_failed, why: 'HTTP 503.' })
    expect(open()).toMatchObject([
      {
        count: 6,
        what: 'Cannot deliver for provider "north": HTTP 503. Data is kept.',
        why: '6 failures in a row. Last requestId: r-1.',
        since: 1_750_000_000_000,
        lastAt: 1_750_000_005_000,
        severity: 'error',
      },
    ])
  })

  test('an endpoint that is unavailable without a failure shows no count of failures', () => {
    const { rules, open } = world()
    rules.apply({ ...eventSamples.probe_failed, failures: 0 })
    expect(open()[0]?.why).toBe('Last requestId: r-1.')
  })

  test('each reason to ask the support about a batch names the commands that follow', () => {
    for (const reason of ['repeated', 'unlisted'] as const)
      expect(heldActs[reason]).toMatch(/`batches mark-delivered`; if not, `batches reissue`/)
  })
})

describe('a condition says what is known', () => {
  const off = (offsetMs: number) => ({ ...eventSamples.clock_off, offsetMs })
  const failing = (why: string, act: string) => ({ ...unavailable, why, act })
  const suspect = 'The clock of this machine is probably wrong: 9 of 10 devices agree that it is 1 h behind.'
  test.each<[GatewayEvent, { what?: RegExp; why?: RegExp; act?: RegExp }]>([
    [off(hourMs), { what: /^The clock of this machine is 1 h behind the service/ }],
    [off(-hourMs), { what: /1 h ahead of/ }],
    [eventSamples.clock_suspect, { what: new RegExp(`^${suspect}$`) }],
    [
      { ...eventSamples.credentials_stale, expiresAt: Date.UTC(2026, 10, 21) },
      { why: /^HTTP 500\. The old ones expire at 2026-11-21T00:00:00\.000Z\.$/ },
    ],
    [
      { ...unauthorized, clockOffsetMs: 400_000, accessKeyId: 'AKIA1' },
      { why: /(?=.*AKIA1)(?=.*account)(?=.*6 min 40 s behind)(?=.*r-1)/s },
    ],
    [unavailable, { act: /If this continues, ask the support/ }],
    [
      failing('our clock says 1970-01-01', 'Set the time of this machine.'),
      {
        what: /our clock says 1970-01-01/,
        act: /^Set the time of this machine\. Delivery resumes automatically\.$/,
      },
    ],
    [
      failing('nothing listens there', 'Check scheme, host and port in delivery.base_url.'),
      {
        act: /base_url\. Delivery resumes automatically, or after the restart where RESTART_NEEDED names delivery\.$/,
      },
    ],
    [{ kind: 'restart_needed', options: ['spool.path', 'ops.listen'] }, { what: /spool\.path, ops\.listen/ }],
  ])('%j', (event, texts) => {
    const { rules, open } = world()
    rules.apply(event)
    for (const [name, text] of Object.entries(texts)) expect(open()[0]?.[name as 'what']).toMatch(text)
  })
})

const unmappable = eventSamples.message_unmappable
const counted = (DEAD_LETTERS: number, deadLettersKept: number | null, MESSAGES_DROPPED = 0) => ({
  DEAD_LETTERS,
  MESSAGES_DROPPED,
  deadLettersKept,
})

describe('a loss stays visible', () => {
  test('a dead letter is never silent: it stays until the restart', () => {
    const { rules, conditions, clock } = world()
    rules.apply(unmappable)
    rules.apply(eventSamples.payload_dead_lettered)
    clock.move(100 * 86_400_000)
    expect(conditions.open()).toEqual([
      expect.objectContaining({ code: 'DEAD_LETTERS', count: 2, severity: 'error' }),
    ])
    expect(conditions.open()[0]?.why).toContain('gps')
  })

  test('a dead letter without an event of its own is found in the counters, once', () => {
    const { rules, conditions } = world()
    rules.apply(unmappable)
    rules.reconcile(counted(5, 5, 2))
    rules.reconcile(counted(5, 5, 2))
    const counts = Object.fromEntries(conditions.open().map(({ code, count }) => [code, count]))
    expect(counts).toEqual({ DEAD_LETTERS: 5, MESSAGES_DROPPED: 2 })
  })

  test('DEAD_LETTERS is cleared when none is left, but not before the first one is on disk', () => {
    const { rules, codes } = world()
    rules.apply(unmappable)
    rules.reconcile(counted(1, 0))
    expect(codes()).toEqual(['DEAD_LETTERS'])
    rules.reconcile(counted(1, 1))
    expect(codes()).toEqual(['DEAD_LETTERS'])
    rules.reconcile(counted(1, 0))
    expect(codes()).toEqual([])
    rules.reconcile(counted(2, 1))
    expect(codes()).toEqual(['DEAD_LETTERS'])
  })

  test('DEAD_LETTERS is cleared when the last one was removed, also between two looks at their number', () => {
    const { rules, codes } = world()
    rules.reconcile(counted(0, 0))
    rules.apply(unmappable)
    rules.apply(eventSamples.dead_letters_requeued)
    rules.reconcile(counted(1, 0))
    expect(codes()).toEqual([])
  })

  test('dead letters keep their conditions while the store is lost', () => {
    const { rules, codes } = world()
    rules.apply(unmappable)
    rules.reconcile(counted(1, 3))
    rules.reconcile(counted(1, null))
    expect(codes()).toEqual(['DEAD_LETTERS', 'DEAD_LETTERS_WAITING'])
    rules.reconcile(counted(1, 3))
    expect(codes()).toEqual(['DEAD_LETTERS', 'DEAD_LETTERS_WAITING'])
  })

  test('dead letters from before the start are a warning until they are gone', () => {
    const { rules, conditions, codes } = world()
    rules.reconcile(counted(0, 3))
    expect(conditions.open()).toMatchObject([{ code: 'DEAD_LETTERS_WAITING', severity: 'warning', count: 3 }])
    rules.reconcile(counted(2, 5))
    const counts = Object.fromEntries(conditions.open().map(({ code, count }) => [code, count]))
    expect(counts).toEqual({ DEAD_LETTERS: 2, DEAD_LETTERS_WAITING: 3 })
    rules.reconcile(counted(2, 2))
    expect(codes()).toEqual(['DEAD_LETTERS'])
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
    rules.reconcile(counted(0, 0, 7))
    expect(codes()).toEqual([])
    rules.reconcile(counted(0, 0, 8))
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

test('held batches are counted as they are now, with their age, the last requestId and what to do', () => {
  const { rules, open } = world()
  for (const batches of [1, 7, 5]) rules.apply(heldNow('repeated', batches))
  expect(open()).toMatchObject([
    {
      code: 'BATCHES_HELD',
      count: 5,
      what: expect.stringMatching(/5 batches with 50 payloads, the oldest since 2025-06-15T15:06:40/),
      why: expect.stringMatching(/409.*r-1/),
      act: expect.stringMatching(/batches mark-delivered/),
    },
  ])
})

describe('the list is short', () => {
  test('the most severe is first, and the least severe is removed when there are too many', () => {
    const { rules, conditions } = world()
    for (let n = 0; n < 200; n += 1)
      rules.apply({ ...heldNow('stuck', 1), provider: `p-${n}` as ProviderName })
    rules.apply(eventSamples.store_lost)
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
