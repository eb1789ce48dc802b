// A gateway whose clock is wrong, and a service that refuses signatures more than five minutes off.

import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/std/clock.ts'
import { systemClock } from '../../src/std/clock.ts'
import type { Answered } from '../../src/sandbox/sandbox.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import type { Pipeline } from '../support/pipeline-world.ts'

const hourMs = 3_600_000
const messages = 50

/** The clock of the machine, wrong by `offsetMs()`; its monotonic clock is right. */
function wrongBy(offsetMs: () => number): Clock {
  return { ...systemClock, now: () => systemClock.now() + offsetMs() }
}

async function publish(pipeline: Pipeline, name: string): Promise<void> {
  const device = await pipeline.device(name)
  for (let n = 0; n < messages; n += 1)
    device.publish({ topic: topicOf(name), payload: messageOf(n), messageId: n + 1 })
  await device.acked(messages)
}

describe('a clock that is off by an hour', () => {
  test.each([
    ['behind', -hourMs],
    ['ahead', hourMs],
  ])('%s: the third request has the right time, and all after it', async (_name, offMs) => {
    const answers: Answered[] = []
    const pipeline = await startPipeline({
      sandbox: { onAnswer: (answered) => answers.push(answered) },
      sections: { delivery: 'max_in_flight: 1, batch: { max_payloads: 10, linger: 20ms }' },
      deps: { clock: wrongBy(() => offMs) },
    })
    await publish(pipeline, 'truck-1')
    await pipeline.until(() => pipeline.status().totals.delivered === messages)

    const [first, second, ...later] = answers
    expect([first?.status, second?.status]).toEqual([403, 403])
    expect(later.length).toBeGreaterThan(0)
    expect(later.map(({ status }) => status)).toEqual(later.map(() => 200))
    expect(pipeline.events.some(({ kind }) => kind === 'endpoint_unauthorized')).toBe(false)

    const [provider] = pipeline.status().providers
    expect(provider?.clockOffsetMs).toBeGreaterThan(-offMs - 5000)
    expect(provider?.clockOffsetMs).toBeLessThan(-offMs + 5000)
    const off = pipeline.events.filter(({ kind }) => kind === 'clock_off')
    expect(off).toHaveLength(1)
  })

  test('that is corrected while the gateway runs: one refusal at most, and no correction is left', async () => {
    let offMs = -hourMs
    const answers: Answered[] = []
    const pipeline = await startPipeline({
      sandbox: { onAnswer: (answered) => answers.push(answered) },
      sections: { delivery: 'max_in_flight: 1, batch: { max_payloads: 10, linger: 20ms }' },
      deps: { clock: wrongBy(() => offMs) },
    })
    await publish(pipeline, 'truck-1')
    await pipeline.until(() => pipeline.status().totals.delivered === messages)
    answers.length = 0
    offMs = 0
    await publish(pipeline, 'truck-2')
    await pipeline.until(() => pipeline.status().totals.delivered === 2 * messages)
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(Math.abs(pipeline.status().providers[0]?.clockOffsetMs ?? Infinity)).toBeLessThan(5000)
    expect(pipeline.events.some(({ kind }) => kind === 'clock_right')).toBe(true)
  })

  test('of the service itself is followed too, since the service checks the time', async () => {
    const pipeline = await startPipeline({
      sandbox: { faults: { clock_offset: 7200 * 1000 } },
      sections: { delivery: 'batch: { max_payloads: 10, linger: 20ms }' },
    })
    await publish(pipeline, 'truck-1')
    await pipeline.until(() => pipeline.status().totals.delivered === messages)
    expect(pipeline.status().providers[0]?.clockOffsetMs).toBeGreaterThan(7_190_000)
  })
})
