import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { Secret } from '../../../src/std/secret.ts'
import type { EventName, EventOf } from '../../../src/domain/event.ts'
import { createLog } from '../../../src/ops/logging/logging.ts'
import { levelOf } from '../../../src/ops/logging/log-line.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { handClock, keptOutput } from '../../support/ops-world.ts'

const unmappable = (detail: string, reason = 'NOT_JSON'): EventOf<'message_unmappable'> => ({
  ...eventSamples.message_unmappable,
  reason,
  detail,
})

function world(level: 'debug' | 'info' = 'info') {
  const clock = handClock()
  const output = keptOutput()
  return { clock, output, log: createLog({ clock, stdout: output.stream, env: {} }, { level }) }
}

describe('a line in the log', () => {
  test('is one line of JSON with level, event, time, facts and a sentence', () => {
    const { log, output } = world()
    log.write({ ...eventSamples.batch_held, retryInMs: 8200.4 })
    expect(output.lines()).toEqual([
      {
        level: 'warn',
        time: '2025-06-15T15:06:40.000Z',
        event: 'batch_held',
        provider: 'north',
        batchId: '00000000-0000-4000-8000-000000000001',
        why: 'The service is busy.',
        requestId: 'r-1',
        retryInMs: 8200,
        msg: 'A batch is held: the service is busy. Next try in 8 s.',
      },
    ])
  })

  test('shows what a client hides in a text: control characters of both sets, and marks that turn it around', () => {
    const { log, output } = world()
    const hidden = 'a\u0085b\u202ec\u200bd\u{e0041}e\u009b2Jf'
    log.write({ ...unmappable(hidden), topic: hidden })
    expect(output.lines()[0]).toMatchObject({ topic: hidden })
    expect(output.text()).not.toMatch(/[^\n\P{Cc}]|\p{Cf}/u)
    expect(output.text()).toContain(String.raw`a\u0085b\u202ec\u200bd\udb40\udc41e\u009b2Jf`)
  })

  test('has the number of payloads accepted, not their ids', () => {
    const { log, output } = world('debug')
    const accepted = Array.from({ length: 500 }, (_, index) => `id-${index}`)
    const rest = { failed: [], deviations: [] }
    log.write({
      ...eventSamples.submission_ended,
      outcome: { kind: 'answered', requestId: 'r', accepted, ...rest },
    })
    expect(output.lines()[0]).toMatchObject({ level: 'debug', accepted: 500, failed: 0, requestId: 'r' })
    expect(output.text()).not.toContain('id-7')
  })

  test('is not written at level info for a success, or for each connection', () => {
    const { log, output } = world('info')
    log.write(eventSamples.batch_sealed)
    log.write({ ...eventSamples.batch_settled, retried: 0 })
    log.write(eventSamples.client_connected)
    expect(output.lines()).toEqual([])
  })

  test('has foreign text quoted and bounded, on one line', () => {
    const { log, output } = world()
    log.write(unmappable('x'.repeat(100_000)))
    log.write({ ...unmappable('d', 'OTHER'), topic: 'evil\n{"level":"error"}\u001b[2J\u202e' })
    expect(output.text().length).toBeLessThan(2000)
    expect(output.lines()).toHaveLength(2)
    expect(output.lines()[1]?.msg).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  test('of an event that loses data is never below error', () => {
    const losing: EventName[] = [
      'messages_dropped',
      'chunk_damaged',
      'conservation_broken',
      'store_lost',
      'payload_dead_lettered',
    ]
    for (const name of losing) expect([name, levelOf(eventSamples[name])]).toEqual([name, 'error'])
  })
})

// More of it: repeated-lines.test.ts.
describe('events that repeat are written once a minute', () => {
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

  test('a flood of new keys writes lines, and no count is lost at the end', () => {
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
    const words = { what: `Key ${String(secret)}.`, why: 'w', act: 'a' }
    const cause = new Error('hunter2-very-secret')
    log.write({ kind: 'store_lost', fault: new GatewayError('SPOOL_WRITE_FAILED', { ...words, cause }) })
    log.write(Object.assign({ kind: 'listener_opened' as const, url: '' }, { url: secret }))
    log.write({ ...eventSamples.condition_raised, why: `key ${String(secret)}` })
    expect(output.text()).not.toContain('hunter2')
    expect(output.text()).toContain('***')
  })
})
