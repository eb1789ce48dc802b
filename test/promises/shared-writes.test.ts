import { basename } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openLevelStore, type OpenStore } from '../../src/storage/storage.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { messageOf, roundTrip, startPipeline, topicOf } from '../support/pipeline-world.ts'

/**
 * A gateway whose devices are connected for ten seconds. From then on its time runs at a tenth, so that a deadline is
 * far away for a test that needs some hundred milliseconds.
 */
async function openDepot(names: readonly string[]) {
  let writes = 0
  const openStore: OpenStore = async (path, options) => {
    const store = await openLevelStore(path, options)
    if (basename(path) !== 'store') return store
    return {
      ...store,
      write(ops, how) {
        if (how.sync) writes += 1
        return store.write(ops, how)
      },
    }
  }
  const clock = createFastClock(1000)
  const baseUrl = 'http://127.0.0.1:9'
  const pipeline = await startPipeline({ ackDelay: '250ms', baseUrl, clock, deps: { openStore } })
  const devices = await Promise.all(names.map((name) => pipeline.device(name)))
  const untilMs = clock.monotonic() + 10_000
  while (clock.monotonic() < untilMs) await Promise.all(devices.map(roundTrip))
  clock.setFactor(0.1)
  // Its stop needs no slow time.
  onTestFinished(() => clock.setFactor(100))
  const send = (index: number, n: number) =>
    devices[index]?.publish({ topic: topicOf(names[index] ?? ''), payload: messageOf(n), messageId: n })
  return { pipeline, devices, clock, send, writes: () => writes }
}

describe('a write serves many devices', () => {
  test('that send seldom: all get their acknowledgement with one fsync, and none before it', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `truck-${index}`)
    const { pipeline, devices, send, writes } = await openDepot(names)
    const before = writes()
    for (const index of names.keys()) send(index, 1)
    await Promise.all(devices.map(roundTrip))
    expect(pipeline.status().totals).toMatchObject({ messages: 20, acked: 0 })
    expect(writes()).toBe(before)
    await Promise.all(devices.map((device) => device.acked(1)))
    expect(writes() - before).toBe(1)
  })

  test('and one that sends its next message after each acknowledgement does not wait for others', async () => {
    const { devices, clock, send } = await openDepot(['truck-1', 'truck-2'])
    send(0, 1)
    await devices[0]?.acked(1)
    const startedMs = clock.monotonic()
    for (let n = 2; n <= 40; n += 1) {
      send(0, n)
      await devices[0]?.acked(n)
    }
    // With a wait for each it would be 39 times the bound.
    expect(clock.monotonic() - startedMs).toBeLessThan(2 * 250)
  })
})
