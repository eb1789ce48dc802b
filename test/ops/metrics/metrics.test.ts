import { describe, expect, test } from 'vitest'
import type { ProviderName } from '../../../src/domain/ids.ts'
import {
  deliveryCounters,
  ingestCounters,
  lane,
  provider,
  spoolTotals,
  stages,
  startedOps,
} from '../../support/ops-world.ts'
import { mappingStage } from '../../support/mapping-stage.ts'
import { eventSamples, stateSamples } from '../../support/event-samples.ts'

/** Those of the lines that the metrics do not have. */
function missingIn(text: string, lines: readonly string[]): string[] {
  return lines.filter((line) => !text.includes(`${line}\n`))
}

describe('the metrics', () => {
  test('are read from the stages at the scrape', async () => {
    await using world = await startedOps()
    let received = 1
    world.ops.attach({
      ...stages({
        lanes: [
          lane(1, { pending: 3 }),
          lane(2, { pending: 4 }),
          lane(3, { role: { kind: 'backfill' }, pending: 5, oldestAt: 1_750_000_000_000 }),
        ],
        providers: [
          provider('default', { endpoint: 'unauthorized', clockOffsetMs: 1500, inFlight: 4, settling: 3 }),
        ],
        totals: spoolTotals({ openBytes: 10, deadLetters: 2 }),
        delivery: deliveryCounters({ outcomes: new Map([['unavailable_500', 4]]) }),
      }),
      ingest: {
        addresses: () => [],
        counters: () =>
          ingestCounters({
            received,
            deadByReason: [{ source: 'a|b', reason: 'NOT_JSON', count: 2 }],
            dead: 2,
            openParts: 7,
            quarantinedByReason: [{ source: 'a', reason: 'FUTURE', count: 2 }],
          }),
      },
      mapping: mappingStage({
        omitted: [{ source: 'a', field: 'speed', reason: 'not a number', values: 4 }],
        clocks: { devices: 1, evictions: 0, future: 2, past: 5, unset: 3, old: 4, restamped: 0 },
      }),
    })
    expect(
      missingIn(await world.metrics(), [
        'gateway_messages_received_total 1',
        'gateway_messages_dead_total{source="a|b",reason="NOT_JSON"} 2',
        'gateway_payloads_pending{provider="default",role="live"} 7',
        'gateway_payloads_pending{provider="default",role="backfill"} 5',
        'gateway_payloads_oldest_timestamp_seconds{provider="default",role="backfill"} 1750000000',
        'gateway_endpoint_state{provider="default",state="unauthorized"} 1',
        'gateway_endpoint_state{provider="default",state="available"} 0',
        'gateway_clock_offset_seconds{provider="default"} 1.5',
        'gateway_submissions_in_flight{provider="default"} 4',
        'gateway_batches_settling{provider="default"} 3',
        'gateway_submissions_total{outcome="unavailable_500"} 4',
        'gateway_spool_bytes 10',
        'gateway_spool_limit_bytes 1000',
        'gateway_dead_letters 2',
        'gateway_condition{code="DEAD_LETTERS",severity="error"} 1',
        `gateway_build_info{version="1.2.3",node="${process.version}"} 1`,
        'gateway_messages_open 7',
        'gateway_messages_quarantined_total{source="a",reason="FUTURE"} 2',
        'gateway_fields_omitted_total{source="a",field="speed",reason="not_a_number"} 4',
        'gateway_device_times_total{verdict="unset"} 3',
      ]),
    ).toEqual([])
    received = 5
    expect(missingIn(await world.metrics(), ['gateway_messages_received_total 5'])).toEqual([])
  })

  test('count accepted payloads by the role of their lane, also when the lane is gone', async () => {
    await using world = await startedOps()
    world.ops.attach(stages({ lanes: [lane(1)] }))
    world.ops.emit({ ...eventSamples.batch_sealed, payloads: 3 })
    world.ops.attach(stages({ lanes: [] }))
    world.ops.emit({ ...eventSamples.batch_settled, delivered: 3 })
    expect(missingIn(await world.metrics(), ['gateway_payloads_accepted_total{lane="live"} 3'])).toEqual([])
  })

  test('time every submission', async () => {
    await using world = await startedOps()
    const outcome = { kind: 'unreachable', reason: 'timeout', message: 'm' } as const
    world.ops.emit({ ...eventSamples.submission_ended, tookMs: 80, outcome })
    const { text, headers } = await world.ask('/metrics')
    expect(
      missingIn(text, [
        'gateway_submission_duration_seconds_bucket{le="0.1",outcome="unreachable"} 1',
        'gateway_submission_duration_seconds_bucket{le="0.05",outcome="unreachable"} 0',
      ]),
    ).toEqual([])
    expect(headers.get('content-type')).toContain('text/plain; version=0.0.4')
  })

  test('have short stable codes as label values, except for names', async () => {
    await using world = await startedOps()
    const reasons = [{ source: 'my trucks', reason: 'no fix', count: 1 }]
    const words = new Map([['The client id is longer than 256 bytes.', 2]])
    world.ops.attach({
      ...stages({
        lanes: [lane(1)],
        providers: [provider('North Haulage')],
        delivery: deliveryCounters({ outcomes: new Map([['unavailable_500', 4]]) }),
        ingest: ingestCounters({
          ignoredByReason: reasons,
          deadByReason: reasons,
          quarantinedByReason: reasons,
          refusedByReason: words,
          droppedByReason: words,
        }),
      }),
      mapping: mappingStage({
        omitted: [{ source: 'my trucks', field: 'speed', reason: 'not a number', values: 4 }],
      }),
    })
    for (const event of Object.values(eventSamples)) world.ops.emit(event)
    const text = await world.metrics()
    const names = new Set(['provider', 'source', 'field', 'le'])
    const codes = [...text.matchAll(/[{,](\w+)="((?:[^"\\]|\\.)*)"/g)]
      .filter(([, label = '']) => !names.has(label))
      .map(([, , value = '']) => value)
    expect(codes.length).toBeGreaterThan(30)
    expect(codes.filter((code) => !/^[A-Za-z0-9_.:-]{1,64}$/.test(code))).toEqual([])
    expect(text).toContain('gateway_messages_ignored_total{source="my trucks",reason="no_fix"} 1\n')
  })

  test('of one gateway are not those of another in the same process', async () => {
    await using first = await startedOps()
    await using second = await startedOps()
    first.ops.attach(stages({ ingest: ingestCounters({ received: 7 }) }))
    expect(missingIn(await second.metrics(), ['gateway_messages_received_total 0'])).toEqual([])
  })

  test('of which one gateway knows nothing are absent, not 0', async () => {
    await using world = await startedOps()
    const before = await world.metrics()
    for (const name of ['gateway_last_message_timestamp_seconds', 'gateway_spool_disk_free_bytes'])
      expect(before).not.toMatch(new RegExp(`^${name} `, 'm'))
    const totals = spoolTotals({ freeBytes: 7000, freeBytesMin: 1000, openBytes: 10, stateBytes: 5 })
    world.ops.attach(stages({ ingest: ingestCounters({ lastMessageAt: 1_750_000_000_500 }), totals }))
    expect(
      missingIn(await world.metrics(), [
        'gateway_last_message_timestamp_seconds 1750000000.5',
        'gateway_spool_disk_free_bytes 7000',
        'gateway_spool_disk_free_limit_bytes 1000',
        'gateway_spool_used_bytes 15',
      ]),
    ).toEqual([])
  })

  test('have a bounded number of label values: those beyond it are added up in one', async () => {
    await using world = await startedOps()
    const many = Array.from({ length: 5000 }, (_, n) => ({ source: `s${n}`, reason: 'R', count: 2 }))
    const ofProvider = (_: unknown, n: number) => ({
      ...stateSamples.BATCHES_HELD,
      provider: `p-${n}` as ProviderName,
    })
    const states = Array.from({ length: 500 }, ofProvider)
    const ingest = ingestCounters({ deadByReason: many, ignoredByReason: many })
    world.ops.attach(stages({ ingest, states }))
    const text = await world.metrics()
    expect(missingIn(text, ['gateway_messages_dead_total{source="other",reason="other"} 9800'])).toEqual([])
    expect(text.match(/^gateway_messages_dead_total\{/gm)).toHaveLength(101)
    expect(text.split('\n').length).toBeLessThan(950)
  })
})
