import { describe, expect, test } from 'vitest'
import type { EventOf, GatewayEvent } from '../../../src/domain/event.ts'
import { createLog } from '../../../src/ops/logging/logging.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { handClock, keptOutput, startedOps } from '../../support/ops-world.ts'

type Refused = EventOf<'client_refused'>

const refusal = (clientId: string, address: string, reason = 'bad_credentials'): Refused => ({
  ...eventSamples.client_refused,
  reason,
  clientId,
  address,
})

function world(level: 'info' | 'debug' = 'info') {
  const clock = handClock()
  const output = keptOutput()
  const log = createLog({ clock, stdout: output.stream, env: {} }, { level })
  /** Refusals that the lines stand for: each for itself and those that it says were not written. */
  const accounted = () => output.lines().reduce((sum, { suppressed }) => sum + 1 + Number(suppressed ?? 0), 0)
  return { clock, output, log, accounted }
}

describe('a client that is refused again and again', () => {
  test('has a line at once, and then one a minute that says how many are left out', () => {
    const { log, output, clock } = world()
    for (let n = 0; n < 100; n += 1) log.write(refusal('truck-7', '10.0.0.7'))
    clock.move(60_000)
    expect(output.lines().map(({ level, msg, suppressed }) => [level, msg, suppressed])).toEqual([
      ['info', 'Refused client "truck-7" (identity "fleet"). The password is wrong.', undefined],
      [
        'info',
        'Summary: 99 more times in the last minute, the last one 1 min ago: ' +
          'Refused client "truck-7" (identity "fleet"). The password is wrong.',
        98,
      ],
    ])
    expect(log.linesSuppressed).toBe(98)
  })

  test('has a line of its own beside others of its address', () => {
    const { log, output } = world()
    for (let round = 0; round < 5; round += 1)
      for (const clientId of ['truck-7', 'truck-8', 'truck-9']) log.write(refusal(clientId, '10.0.0.7'))
    expect(output.lines().map(({ clientId }) => clientId)).toEqual(['truck-7', 'truck-8', 'truck-9'])
  })
})

test('clients that the gateway closes for the same reason have a line each', () => {
  const { log, output } = world()
  for (const clientId of ['truck-7', 'truck-8', 'truck-7'])
    log.write({ ...refusal(clientId, '10.0.0.7', 'packet_too_large'), kind: 'client_dropped' })
  expect(output.lines().map(({ clientId }) => clientId)).toEqual(['truck-7', 'truck-8'])
})

describe('a summary', () => {
  const { message_source_lost: lost, message_source_connected: connected } = eventSamples

  /** The summary of two losses, the last one 10 s after the first, with what came after it. */
  function summaryAfter(later: readonly GatewayEvent[], level: 'info' | 'debug' = 'info') {
    const { log, output, clock } = world(level)
    log.write(lost)
    clock.move(10_000)
    log.write(lost)
    clock.move(5000)
    for (const event of later) log.write(event)
    clock.move(45_000)
    return output.lines().find(({ summary }) => summary === true)
  }

  test('says when its last line was due', () => {
    expect(summaryAfter([])).toMatchObject({
      suppressed: 0,
      lastAt: '2025-06-15T15:06:50.000Z',
      isOver: false,
      msg: expect.stringMatching(/^Summary: 1 more time in the last minute, 50 s ago: Bridge/),
    })
  })

  test('says that what it reports has ended since', () => {
    expect(summaryAfter([connected])).toMatchObject({
      isOver: true,
      msg: expect.stringMatching(/^Summary: 1 more time in the last minute, 50 s ago, over since: Bridge/),
    })
  })

  test('does not say so where it has come back, or another one has ended', () => {
    expect(summaryAfter([connected, lost])).toMatchObject({ isOver: false })
    expect(summaryAfter([{ ...connected, clientId: 'gw-2' }])).toMatchObject({ isOver: false })
  })

  test('of several clients says that they are more of a kind', () => {
    const { log, output, clock } = world()
    for (let n = 0; n < 13; n += 1) log.write(refusal(`x${n}`, '192.0.2.1'))
    clock.move(60_000)
    expect(output.lines().at(-1)?.msg).toMatch(/^Summary: 2 more lines of this kind in the last minute, /)
  })
})

describe('a scanner with invented client ids', () => {
  test('gets eleven lines a minute, and all its attempts are counted in them', () => {
    const { log, output, clock, accounted } = world()
    for (let n = 0; n < 5000; n += 1) log.write(refusal(`x${n}`, '192.0.2.1'))
    expect(output.lines()).toHaveLength(11)
    log.write(refusal('truck-7', '10.0.0.7'))
    expect(output.lines().at(-1)).toMatchObject({ clientId: 'truck-7' })
    clock.move(60_000)
    expect(output.lines()).toHaveLength(13)
    expect(accounted()).toBe(5001)
    expect(log.linesSuppressed).toBe(5000 - 12)
  })

  test('from many addresses gets 61 lines in a minute, and as many in the next', () => {
    const { log, output, clock, accounted } = world()
    for (let minute = 1; minute <= 3; minute += 1) {
      for (let n = 0; n < 3000; n += 1)
        log.write(refusal(`${minute}-${n}`, `10.${minute}.${n >> 8}.${n & 255}`))
      expect(output.lines().length).toBeLessThanOrEqual(minute * 62)
      clock.move(60_001)
    }
    log.close()
    expect(accounted()).toBe(9000)
  })

  test('does not hide lines of another event', () => {
    const { log, output } = world()
    for (let n = 0; n < 3000; n += 1) log.write(refusal(`x${n}`, `192.0.2.${n & 255}`))
    log.write({ kind: 'client_taken_over', clientId: 'truck-7', identity: null, address: '10.0.0.7' })
    expect(output.lines().at(-1)).toMatchObject({ event: 'client_taken_over', clientId: 'truck-7' })
  })

  test('cannot use the key that further lines share', () => {
    const { log, accounted } = world()
    for (const clientId of ['*', '', '\0', 'a|b'])
      for (let n = 0; n < 30; n += 1) log.write(refusal(clientId, 'x'))
    for (let n = 0; n < 30; n += 1) log.write(refusal(`${n}`, 'x'))
    log.close()
    expect(accounted()).toBe(150)
  })
})

test('lines of connects and disconnects say who, from where, why and after how long, each time at level debug', () => {
  const { log, output } = world('debug')
  for (let n = 0; n < 20; n += 1) log.write(eventSamples.client_connected)
  log.write({ ...eventSamples.client_disconnected, connectedMs: 61_000.4 })
  expect(output.lines().map(({ msg }) => msg)).toEqual([
    ...Array<string>(20).fill('Connected: client "c-1" (identity "fleet"), from ::1.'),
    expect.stringMatching(
      /^Disconnected: client "c-1" \(identity "fleet"\), after .+\. The password is wrong\.$/,
    ),
  ])
  expect(output.lines().at(-1)).toMatchObject({ clientId: 'c-1', address: '::1', connectedMs: 61_000 })
})

test('lines that were not written are a metric', async () => {
  await using of = await startedOps()
  for (let n = 0; n < 50; n += 1) of.ops.emit(refusal('truck-7', '10.0.0.7'))
  of.clock.move(60_000)
  expect(await of.metrics()).toContain('gateway_log_lines_suppressed_total 48\n')
})
