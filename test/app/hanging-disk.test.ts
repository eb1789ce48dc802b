// A disk that hangs or crawls fails nothing. The real daemon over a real database whose writes wait; its clock is
// twenty times as fast as that of the system.

import { expect, onTestFinished, test } from 'vitest'
import { openLevelStore, type OpenStore } from '../../src/storage/storage.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { createHeldStore } from '../support/held-store.ts'
import { messageOf, roundTrip, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const factor = 20
const second = () => 1000 / factor

async function readiness({ gateway }: Pipeline): Promise<[status: number, text: string]> {
  const answer = await fetch(`${gateway.addresses.ops}/readyz`)
  return [answer.status, await answer.text()]
}

const passed = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * second()))

test('a write that hangs is seen after 10 s: the verdict, /readyz and a condition say it until it ends', async () => {
  const store = createHeldStore()
  const pipeline = await startPipeline({
    clock: createFastClock(factor),
    deps: { openStore: store.openStore },
  })
  onTestFinished(() => store.release())
  const device = await pipeline.device('truck-1')
  store.hold()
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 7 })
  await roundTrip(device)
  await pipeline.until(() => store.waiting() > 0)
  expect((await readiness(pipeline))[0]).toBe(200)

  await pipeline.until(() => pipeline.codes().includes('SPOOL_WRITE_HANGING'))
  const { verdict, sentence, ready, conditions } = pipeline.status()
  expect([verdict, ready]).toEqual(['not_receiving', false])
  expect(sentence).toMatch(/^A write to the spool hangs since 20\S+ \S+ \S+, for 1\d\.?\d* s\./)
  expect(conditions[0]).toMatchObject({ code: 'SPOOL_WRITE_HANGING', severity: 'critical' })
  expect(await readiness(pipeline)).toEqual([503, expect.stringContaining('a write to the spool hangs')])
  expect(device.acks).toEqual([])

  store.release()
  await device.acked(1)
  await pipeline.until(() => !pipeline.codes().includes('SPOOL_WRITE_HANGING'))
  expect((await readiness(pipeline))[0]).toBe(200)
  const scrape = await (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
  const longer = /spool_write_duration_seconds_bucket\{le="10"\} (\d+)[^]*_seconds_count (\d+)/.exec(scrape)
  // At least this one: on a busy machine others may wait behind it.
  expect(Number(longer?.[2])).toBeGreaterThan(Number(longer?.[1]))
})

test('while a write hangs, nothing says that the credentials or the devices are at fault', async () => {
  const store = createHeldStore()
  const pipeline = await startPipeline({
    clock: createFastClock(factor),
    deps: { openStore: store.openStore },
    sections: { ops: '{ listen: "127.0.0.1:0", silence: { after: 30s } }' },
  })
  await pipeline.publish('truck-1', messageOf(1))
  // The message is durable, and the seal of its batch waits.
  store.hold()
  await pipeline.until(() => store.waiting() > 0)
  await passed(60)
  expect(pipeline.codes()).toEqual(['SPOOL_WRITE_HANGING'])
  store.release()
  await pipeline.until(() => pipeline.sandbox.stats().payloadsAccepted === 1)
  const raised = pipeline.events.flatMap((event) => (event.kind === 'condition_raised' ? [event.code] : []))
  expect(raised).not.toContain('DELIVERY_STALLED')
})

test('writes that take 5 s each have a condition, which goes when the disk is fast again', async () => {
  const clock = createFastClock(factor)
  let writeMs = 0
  const openStore: OpenStore = async (path) => {
    const store = await openLevelStore(path)
    return {
      ...store,
      async write(ops, options) {
        if (writeMs > 0) await new Promise<void>((resolve) => void clock.after(writeMs, resolve))
        await store.write(ops, options)
      },
    }
  }
  const pipeline = await startPipeline({ clock, deps: { openStore } })
  writeMs = 5000
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.codes().includes('SPOOL_WRITE_SLOW'))
  const [slow] = pipeline.status().conditions
  expect(slow).toMatchObject({ severity: 'warning' })
  expect(slow?.what).toMatch(/^One write to the spool in 100 takes \d\d?(\.\d+)? s or longer/)
  expect((await readiness(pipeline))[0]).toBe(200)
  writeMs = 0
  await pipeline.until(() => pipeline.codes().length === 0)
})

test('a single slow write is no condition', async () => {
  const store = createHeldStore()
  const pipeline = await startPipeline({
    clock: createFastClock(factor),
    deps: { openStore: store.openStore },
    baseUrl: 'http://127.0.0.1:9',
  })
  onTestFinished(() => store.release())
  const device = await pipeline.device('truck-1')
  store.hold()
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
  await pipeline.until(() => store.waiting() > 0)
  await passed(4)
  store.release()
  await device.acked(1)
  await passed(3)
  expect(pipeline.codes()).not.toContain('SPOOL_WRITE_SLOW')
})
