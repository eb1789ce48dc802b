// A box without a battery for its clock starts at a time of before. When the time is known, what its list of devices
// says of them is right, and no parked truck is silent since a day on which the gateway did not run.

import { expect, test } from 'vitest'
import type { DeviceView } from '../../src/ops/ops.ts'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { testBootId, testKernel } from '../support/our-time.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const dayMs = 86_400_000
const toleranceMs = 60_000

/** A wall clock that the test sets; the monotonic clock is right. */
function settableClock(offMs: number): Clock & { set(offMs: number): void } {
  let off = offMs
  return { ...systemClock, now: () => systemClock.now() + off, set: (next) => void (off = next) }
}

const unreachable = 'http://127.0.0.1:9'
const configOf = (service?: string) => (baseUrl: string) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, topic: "telemetry/v1/{device}", map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } } }]
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${service ?? baseUrl}", batch: { linger: 20ms } }
ops: { listen: "127.0.0.1:0", silence: { device_after: 1d } }
`

async function publish(pipeline: Pipeline, name: string): Promise<void> {
  const device = await pipeline.device(name)
  device.publish({ topic: topicOf(name), payload: messageOf(1, { ts: systemClock.now() }), messageId: 1 })
  await device.acked(1)
}

async function view(pipeline: Pipeline, name: string): Promise<DeviceView> {
  return (await (await fetch(`${pipeline.gateway.addresses.ops}/devices/${name}`)).json()) as DeviceView
}

/** How far the last message is from the present, in truth. */
async function agoMs(pipeline: Pipeline, name: string): Promise<number> {
  return systemClock.now() - Date.parse((await view(pipeline, name)).lastSeen ?? '1970-01-01')
}

test.each([-20, 20])('of a clock that is off by %i days until it is set', async (days) => {
  const clock = settableClock(days * dayMs)
  let isSynchronised = false
  const kernel = testKernel(() => isSynchronised)
  const pipeline = await startPipeline({ config: configOf(unreachable), deps: { clock, kernel } })
  await publish(pipeline, 'truck-1')
  expect(Math.abs(await agoMs(pipeline, 'truck-1'))).toBeGreaterThan(dayMs)
  isSynchronised = true
  clock.set(0)
  await pipeline.until(() => pipeline.status().clock.known)
  await publish(pipeline, 'truck-2')
  for (const name of ['truck-1', 'truck-2']) {
    expect(Math.abs(await agoMs(pipeline, name))).toBeLessThan(toleranceMs)
    expect(Date.parse((await view(pipeline, name)).firstSeen ?? '')).toBeGreaterThan(
      systemClock.now() - dayMs,
    )
  }
  expect(pipeline.status().conditions.map(({ code }) => code)).not.toContain('DEVICE_SILENT')
})

test.each([-20, 20])('of a clock that is off by %i days, corrected by the service', async (days) => {
  const pipeline = await startPipeline({ config: configOf(), deps: { clock: settableClock(days * dayMs) } })
  await publish(pipeline, 'truck-1')
  await pipeline.until(() => pipeline.status().clock.known)
  expect(Math.abs(await agoMs(pipeline, 'truck-1'))).toBeLessThan(toleranceMs)
  expect(pipeline.status().devices).toMatchObject({ silent: 0 })
})

test.each([
  { boot: 'the same boot', bootId: testBootId },
  { boot: 'another boot', bootId: '22222222-2222-4222-8222-222222222222' },
])('of a process that ended before the time was known, and the next one in $boot', async ({ bootId }) => {
  const folder = await newFolder()
  const before = { clock: settableClock(-20 * dayMs), kernel: testKernel() }
  const first = await startPipeline({ folder, config: configOf(unreachable), deps: before })
  await publish(first, 'truck-1')
  await first.gateway.stop('its power goes')
  const kernel = { ...testKernel(() => true), bootId }
  const second = await startPipeline({ folder, config: configOf(unreachable), deps: { kernel } })
  await second.until(() => second.status().clock.known)
  await publish(second, 'truck-2')
  await eventually(async () => 'lastSeen' in (await view(second, 'truck-1')))
  expect(Math.abs(await agoMs(second, 'truck-1'))).toBeLessThan(toleranceMs)
  expect(second.status().devices).toMatchObject({ silent: 0 })
})

test('of a clock that nobody knows to be right, over a restart', async () => {
  const folder = await newFolder()
  const first = await startPipeline({ folder, config: configOf(unreachable) })
  await publish(first, 'truck-1')
  const { lastSeen } = await view(first, 'truck-1')
  await first.gateway.stop('an update')
  const second = await startPipeline({ folder, config: configOf(unreachable) })
  await eventually(async () => 'lastSeen' in (await view(second, 'truck-1')))
  const after = await view(second, 'truck-1')
  expect(Math.abs(Date.parse(after.lastSeen ?? '') - Date.parse(lastSeen ?? ''))).toBeLessThan(10)
})

test('of a clock that is known to be right only after the record was written', async () => {
  const folder = await newFolder()
  const first = await startPipeline({ folder, config: configOf(unreachable) })
  await publish(first, 'truck-1')
  const { lastSeen } = await view(first, 'truck-1')
  await first.gateway.stop('an update')
  // The record is on the disk by now; the next process reads it and learns that the time is right.
  const second = await startPipeline({
    folder,
    config: configOf(unreachable),
    deps: { kernel: testKernel(() => true) },
  })
  await second.until(() => second.status().clock.known)
  await eventually(async () => 'lastSeen' in (await view(second, 'truck-1')))
  await second.gateway.stop('its power goes')
  const kernel = { ...testKernel(() => true), bootId: '22222222-2222-4222-8222-222222222222' }
  // A day later.
  const clock = settableClock(dayMs)
  const third = await startPipeline({ folder, config: configOf(unreachable), deps: { clock, kernel } })
  await eventually(async () => 'lastSeen' in (await view(third, 'truck-1')))
  expect((await view(third, 'truck-1')).lastSeen).toBe(lastSeen)
})
