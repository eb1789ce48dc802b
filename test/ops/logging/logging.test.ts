import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { Secret } from '../../../src/std/secret.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { BatchId, LaneId, ProviderName } from '../../../src/domain/ids.ts'
import { createLog } from '../../../src/ops/logging/logging.ts'
import { levelOf } from '../../../src/ops/logging/log-line.ts'
import { handClock, keptOutput } from '../../support/ops-world.ts'

const provider = 'default' as ProviderName
const lane = 1 as LaneId
const batchId = '00000000-0000-4000-8000-000000000001' as BatchId

const unmappable = (detail: string, reason = 'NOT_JSON'): GatewayEvent => ({
  kind: 'message_unmappable',
  source: 'trucks',
  topic: 'telemetry/v1/a',
  reason,
  detail,
  clientId: 'truck-7',
  userName: null,
  address: '10.0.0.7',
})

function world(level: 'debug' | 'info' = 'info') {
  const clock = handClock()
  const output = keptOutput()
  return { clock, output, log: createLog({ clock, stdout: output.stream, env: {} }, { level }) }
}

describe('a line in the log', () => {
  test('is one line of JSON with level, event, time, facts and a sentence', () => {
    const { log, output } = world()
    log.write({
      kind: 'endpoint_unavailable',
      provider,
      failures: 5,
      why: 'The service answers 500.',
      requestId: 'r-1',
      retryInMs: 8200.4,
      act: null,
    })
    expect(output.lines()).toEqual([
      {
        level: 'warn',
        time: '2025-06-15T15:06:40.000Z',
        event: 'endpoint_unavailable',
        provider: 'default',
        failures: 5,
        why: 'The service answers 500.',
        requestId: 'r-1',
        retryInMs: 8200,
        act: null,
        msg: 'Cannot deliver: the service answers 500. Data is kept. Next try in 8 s.',
      },
    ])
  })

  test('has the number of payloads accepted, not their ids', () => {
    const { log, output } = world('debug')
    const accepted = Array.from({ length: 500 }, (_, index) => `id-${index}`)
    log.write({
      kind: 'submission_ended',
      provider,
      lane,
      batchId,
      payloads: 500,
      bytes: 1000,
      attempt: 1,
      tookMs: 12,
      outcome: {
        kind: 'answered',
        requestId: 'r',
        accepted,
        failed: [],
        complete: true,
        tooLarge: false,
        deviations: [],
      },
    })
    expect(output.lines()[0]).toMatchObject({ level: 'debug', accepted: 500, failed: 0, requestId: 'r' })
    expect(output.text()).not.toContain('id-7')
  })

  test('is not written for a success at level info', () => {
    const { log, output } = world('info')
    log.write({ kind: 'batch_sealed', provider, lane, batchId, payloads: 1, bytes: 1 })
    log.write({
      kind: 'batch_settled',
      provider,
      lane,
      batchId,
      requestId: 'r',
      delivered: 1,
      retried: 0,
      dead: 0,
    })
    expect(output.lines()).toEqual([])
  })

  test('has foreign text quoted and bounded, on one line', () => {
    const { log, output } = world()
    log.write(unmappable('x'.repeat(100_000)))
    log.write({
      ...unmappable('d', 'OTHER'),
      topic: 'evil\n{"level":"error"}\u001b[2J\u202e',
    } as GatewayEvent)
    expect(output.text().length).toBeLessThan(2000)
    expect(output.lines()).toHaveLength(2)
    expect(output.lines()[1]?.msg).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })
})

describe('events that lose data are never below error', () => {
  const fault = new GatewayError('SPOOL_WRITE_FAILED', { what: 'w', why: 'y', act: 'a' })
  test.each<GatewayEvent>([
    { kind: 'messages_dropped', reason: 'spool_full', detail: 'The spool is full.', count: 3 },
    { kind: 'chunk_damaged', lane, firstSeq: 1, payloads: 10, what: 'Its checksum is wrong.' },
    { kind: 'conservation_broken', lane, appended: 3, settled: 1, open: 1 },
    { kind: 'store_lost', fault },
    {
      kind: 'payload_dead_lettered',
      provider,
      batchId,
      payloadId: 'p',
      reason: 'Validation',
      detail: 'd',
      requestId: null,
    },
  ])('$kind', (event) => {
    expect(levelOf(event)).toBe('error')
  })
})

describe('events that repeat are written once a minute', () => {
  test('the first is written, the others are counted, and the latest is written with their number', () => {
    const { log, output, clock } = world()
    for (let n = 0; n < 1000; n += 1) log.write(unmappable(`n ${n}`))
    expect(output.lines()).toHaveLength(1)
    clock.move(60_000)
    expect(output.lines()).toHaveLength(2)
    expect(output.lines()[1]).toMatchObject({ detail: 'n 999', suppressed: 998 })
  })

  test('another reason or source is a separate line', () => {
    const { log, output } = world()
    log.write(unmappable('a'))
    log.write(unmappable('a', 'NO_POSITION'))
    log.write({ ...unmappable('a'), source: 'vans' } as GatewayEvent)
    expect(output.lines()).toHaveLength(3)
  })

  test('after a quiet minute the next one is written at once', () => {
    const { log, output, clock } = world()
    log.write(unmappable('a'))
    clock.move(60_000)
    log.write(unmappable('b'))
    expect(output.lines().map(({ detail }) => detail)).toEqual(['a', 'b'])
    expect(output.lines()[1]).not.toHaveProperty('suppressed')
  })

  test('a line a minute is written as long as the event repeats', () => {
    const { log, output, clock } = world()
    for (let second = 0; second < 600; second += 1) {
      log.write(unmappable(`${second}`))
      clock.move(1000)
    }
    expect(output.lines()).toHaveLength(11)
    const reported = output.lines().reduce((sum, { suppressed }) => sum + 1 + Number(suppressed ?? 0), 0)
    expect(reported).toBe(600)
  })

  test('the counted events are written at the end', () => {
    const { log, output } = world()
    log.write(unmappable('a'))
    log.write(unmappable('b'))
    log.close()
    expect(output.lines().map(({ detail }) => detail)).toEqual(['a', 'b'])
  })

  test('a flood of new keys writes lines, and no count is lost', () => {
    const { log, output } = world()
    for (let n = 0; n < 2000; n += 1) {
      log.write(unmappable('first', `REASON_${n}`))
      log.write(unmappable('second', `REASON_${n}`))
    }
    log.close()
    expect(output.lines()).toHaveLength(4000)
  })
})

describe('the reader of the log', () => {
  test('may stop reading: lines are then counted and discarded', () => {
    const stuck = new Writable({ highWaterMark: 1, write: () => undefined })
    const log = createLog({ clock: handClock(), stdout: stuck, env: {} }, { level: 'info' })
    for (let n = 0; n < 40_000; n += 1) log.write({ kind: 'listener_opened', url: 'x'.repeat(200) })
    expect(log.linesLost).toBeGreaterThan(0)
    expect(stuck.writableLength).toBeLessThan(5 * 1024 * 1024)
  })

  test('never gets a secret', () => {
    const { log, output } = world()
    const secret = new Secret('hunter2-very-secret')
    const fault = new GatewayError('SPOOL_WRITE_FAILED', {
      what: `Key ${String(secret)}.`,
      why: 'w',
      act: 'a',
      cause: new Error('hunter2-very-secret'),
    })
    log.write({ kind: 'store_lost', fault })
    log.write(Object.assign({ kind: 'listener_opened' as const, url: '' }, { url: secret }))
    log.write({ kind: 'credentials_failed', provider, why: `key ${String(secret)}` })
    expect(output.text()).not.toContain('hunter2')
    expect(output.text()).toContain('***')
  })
})
