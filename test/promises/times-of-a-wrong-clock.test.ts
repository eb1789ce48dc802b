// A box without a battery for its clock starts at a time of before. When the time is known, what its list of devices
// says of them is right, and no parked truck is silent since a day on which the gateway did not run.

import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { DeviceView } from '../../src/ops/ops.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { systemClock, zonedTime, type Clock } from '../../src/std/clock.ts'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { testBootId, testKernel } from '../support/our-time.ts'
import { createDevice, type Device } from '../support/mqtt-device.ts'
import { get } from '../support/ops-world.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const dayMs = 86_400_000
const toleranceMs = 60_000

/** A wall clock that the test sets; the monotonic clock is right. */
function settableClock(offMs: number): Clock & { set(offMs: number): void } {
  let off = offMs
  return { ...systemClock, now: () => systemClock.now() + off, set: (next) => void (off = next) }
}

const accountEnv = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
}

const unreachable = 'http://127.0.0.1:9'
const configOf =
  (service?: string, silence = 'device_after: 1d') =>
  (baseUrl: string) =>
    configText({ ops: `silence: { ${silence} }` })(service ?? baseUrl)

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

describe('a device is mapped where its last message is, whatever the clock was when the others came', () => {
  const config = () => configText({ more: 'clocks: { trust_local: true }' })(unreachable)
  /** Its messages have the time of the gateway, as far as it can be read. */
  async function send(pipeline: Pipeline, clock: Clock, ...bodies: ('good' | 'bad')[]): Promise<void> {
    const messages = bodies.map((body, n) =>
      body === 'bad' ? 'no JSON' : messageOf(n, { ts: clock.now() + n }),
    )
    await pipeline.publish('truck-1', ...messages)
  }
  const stateIn = async (pipeline: Pipeline) => (await view(pipeline, 'truck-1')).state

  test('set back, nearly right, and right: what was kept for the clock is released', async () => {
    const clock = settableClock(0)
    const pipeline = await startPipeline({ config, deps: { clock } })
    clock.set(-2 * 3_600_000)
    await send(pipeline, systemClock, 'good', 'good')
    await pipeline.until(() => pipeline.status().spool.quarantined === 2)
    expect(await stateIn(pipeline)).toBe('not_mapped')
    clock.set(-4 * 60_000)
    await eventually(async () => (await stateIn(pipeline)) === 'sending')
    clock.set(0)
    expect(await stateIn(pipeline)).toBe('sending')
  })

  test.each([
    { what: 'was ahead until a restart', first: 20 * dayMs, second: 0, last: 'good', state: 'sending' },
    { what: 'was ahead until a restart', first: 20 * dayMs, second: 0, last: 'bad', state: 'not_mapped' },
    { what: 'is set back after a restart', first: 0, second: -20 * dayMs, last: 'good', state: 'sending' },
    { what: 'is set back after a restart', first: 0, second: -20 * dayMs, last: 'bad', state: 'not_mapped' },
  ] as const)('a clock that $what: $state', async ({ first, second, last, state }) => {
    const clock = settableClock(first)
    const folder = await newFolder()
    const deps = { clock }
    const before = await startPipeline({ folder, config, deps })
    await send(before, clock, 'bad', 'good')
    expect(await stateIn(before)).toBe('sending')
    await before.gateway.stop('an update')
    clock.set(0)
    const pipeline = await startPipeline({ folder, config, deps })
    await eventually(async () => (await view(pipeline, 'truck-1')).messages === 2)
    clock.set(second)
    await send(pipeline, clock, last)
    expect(await stateIn(pipeline)).toBe(state)
  })

  test('a message that was lost is still the last one after a restart', async () => {
    const folder = await newFolder()
    const before = await startPipeline({ folder, config })
    await send(before, systemClock, 'good', 'bad')
    await before.gateway.stop('an update')
    const pipeline = await startPipeline({ folder, config })
    await eventually(async () => (await view(pipeline, 'truck-1')).messages === 2)
    expect(await stateIn(pipeline)).toBe('not_mapped')
  })
})

test('no truck is silent since another one was heard by a clock that was ahead, before a restart', async () => {
  const clock = settableClock(20 * dayMs)
  const folder = await newFolder()
  const config = () =>
    configText({ ops: 'silence: { device_after: 1d }', more: 'clocks: { trust_local: true }' })(unreachable)
  const before = await startPipeline({ folder, config, deps: { clock } })
  for (const name of ['truck-1', 'truck-2']) await before.publish(name, messageOf(1, { ts: clock.now() }))
  await before.gateway.stop('an update')
  clock.set(0)
  const pipeline = await startPipeline({ folder, config, deps: { clock } })
  await pipeline.publish('truck-1', messageOf(2, { ts: clock.now() }))
  await eventually(async () => 'lastSeen' in (await view(pipeline, 'truck-2')))
  expect(pipeline.codes()).not.toContain('DEVICE_SILENT')
  expect(pipeline.status().devices).toMatchObject({ sending: 2 })
  for (const name of ['truck-1', 'truck-2'])
    expect(
      Math.abs(Date.parse((await view(pipeline, name)).lastSeen ?? '') - systemClock.now()),
    ).toBeLessThan(toleranceMs)
})

describe('a client is refused until a message of it is taken, whatever the clock', () => {
  const broker = `{
    listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true },
    rules: { publish: [{ topics: ["telemetry/v1/+"] }] } }`

  async function send(device: Device, topic: string): Promise<void> {
    const messageId = device.acks.length + 1
    device.publish({ topic, payload: messageOf(messageId, { ts: systemClock.now() }), messageId })
    await device.acked(messageId)
  }
  const stateIn = async (pipeline: Pipeline) => (await view(pipeline, 'truck-1')).state

  test.each([-20, 20])('off by %i days, and the service says so', async (days) => {
    const clock = settableClock(days * dayMs)
    const pipeline = await startPipeline({ config: configText({ broker }), deps: { clock } })
    const device = await pipeline.device('truck-1')
    await send(device, topicOf('truck-1'))
    await pipeline.until(() => pipeline.status().clock.known)
    await send(device, 'of/others')
    expect(await stateIn(pipeline)).toBe('refused')
    await send(device, topicOf('truck-1'))
    expect(await stateIn(pipeline)).not.toBe('refused')
  })

  test.each([-20, 20])('off by %i days, and set afterwards', async (days) => {
    const clock = settableClock(days * dayMs)
    const config = () => configText({ broker })(unreachable)
    const pipeline = await startPipeline({ config, deps: { clock } })
    const device = await pipeline.device('truck-1')
    await send(device, topicOf('truck-1'))
    await send(device, 'of/others')
    expect(await stateIn(pipeline)).toBe('refused')
    clock.set(0)
    expect(await stateIn(pipeline)).toBe('refused')
    await send(device, topicOf('truck-1'))
    expect(await stateIn(pipeline)).not.toBe('refused')
  })
})

describe('a muted device stays muted for as long as a person said', () => {
  async function mute(pipeline: Pipeline, ...end: string[]): Promise<void> {
    const socket = join(pipeline.folder, 'spool.sock')
    expect((await runCli(['devices', 'mute', 'truck-1', ...end, '--socket', socket])).stderr).toBe('')
  }

  /** How long it is muted from now on, in truth; NaN where it is not. */
  async function mutedMs(pipeline: Pipeline): Promise<number> {
    return Date.parse((await view(pipeline, 'truck-1')).mutedUntil ?? '') - systemClock.now()
  }

  const isoDay = (days: number) => new Date(systemClock.now() + days * dayMs).toISOString()

  test.each([-20, 20])('where the clock is off by %i days, and the service says so', async (days) => {
    const pipeline = await startPipeline({ config: configOf(), deps: { clock: settableClock(days * dayMs) } })
    await publish(pipeline, 'truck-1')
    await pipeline.until(() => pipeline.status().clock.known)
    await mute(pipeline, '--for', '7d')
    expect(Math.abs((await mutedMs(pipeline)) - 7 * dayMs)).toBeLessThan(toleranceMs)
    await mute(pipeline, '--until', isoDay(3))
    expect(Math.abs((await mutedMs(pipeline)) - 3 * dayMs)).toBeLessThan(toleranceMs)
  })

  test.each([-20, 20])('where the clock is off by %i days and is set afterwards', async (days) => {
    const clock = settableClock(days * dayMs)
    const pipeline = await startPipeline({ config: configOf(unreachable), deps: { clock } })
    await publish(pipeline, 'truck-1')
    await mute(pipeline, '--for', '7d')
    clock.set(0)
    await eventually(async () => Math.abs(await agoMs(pipeline, 'truck-1')) < toleranceMs)
    expect(Math.abs((await mutedMs(pipeline)) - 7 * dayMs)).toBeLessThan(toleranceMs)
  })

  test('until a date, also where the clock is set afterwards', async () => {
    const clock = settableClock(-20 * dayMs)
    const pipeline = await startPipeline({ config: configOf(unreachable), deps: { clock } })
    await publish(pipeline, 'truck-1')
    await mute(pipeline, '--until', isoDay(3))
    clock.set(0)
    await eventually(async () => Math.abs(await agoMs(pipeline, 'truck-1')) < toleranceMs)
    expect(Math.abs((await mutedMs(pipeline)) - 3 * dayMs)).toBeLessThan(toleranceMs)
  })
})

test.each([-20, 20])('a condition is known until a date of the true time, %i days off', async (days) => {
  const pipeline = await startPipeline({ config: configOf(), deps: { clock: settableClock(days * dayMs) } })
  const truck = await pipeline.device('truck-1')
  truck.publish({ topic: topicOf('truck-1'), payload: 'no JSON', messageId: 1 })
  await publish(pipeline, 'truck-2')
  await pipeline.until(() => pipeline.status().clock.known && pipeline.codes().includes('DEAD_LETTERS'))
  const until = new Date(systemClock.now() + 3 * dayMs).toISOString()
  const words = ['conditions', 'acknowledge', 'DEAD_LETTERS', '--until', until]
  expect((await runCli([...words, '--url', pipeline.gateway.addresses.control])).stderr).toBe('')
  expect(pipeline.status().conditions.find(({ code }) => code === 'DEAD_LETTERS')?.known).toMatchObject({
    untilAt: until,
  })
})

test.each([
  { end: '--for', leftDays: 3 },
  { end: '--until', leftDays: 23 },
])('a condition is known $end what a person said, where the clock is set back', async ({ end, leftDays }) => {
  const clock = settableClock(20 * dayMs)
  const config = () => configText({ more: 'clocks: { trust_local: true }' })(unreachable)
  const pipeline = await startPipeline({ config, deps: { clock } })
  await pipeline.publish('truck-1', 'no JSON')
  await pipeline.until(() => pipeline.codes().includes('DEAD_LETTERS'))
  const until = end === '--for' ? '3d' : new Date(clock.now() + 3 * dayMs).toISOString()
  const words = ['conditions', 'acknowledge', 'DEAD_LETTERS', end, until]
  expect((await runCli([...words, '--url', pipeline.gateway.addresses.control])).stderr).toBe('')
  const leftMs = () => Date.parse(pipeline.condition('DEAD_LETTERS')?.known?.untilAt ?? '') - clock.now()
  expect(Math.abs(leftMs() - 3 * dayMs)).toBeLessThan(toleranceMs)
  clock.set(0)
  expect(Math.abs(leftMs() - leftDays * dayMs)).toBeLessThan(toleranceMs)
  clock.set(2 * dayMs)
  expect(Math.abs(leftMs() - (leftDays - 2) * dayMs)).toBeLessThan(toleranceMs)
})

test('quiet days are those of the true time, where the service says that the clock is off by days', async () => {
  const clock = createFastClock(30)
  const nameOf = (at: number) => new Date(at).toLocaleDateString('en', { weekday: 'long' }).toLowerCase()
  const quietDays = [0, 3_600_000].map((laterMs) => nameOf(systemClock.now() + laterMs))
  const pipeline = await startPipeline({
    clock,
    config: configOf(undefined, `after: 30s, quiet_hours: "", quiet_days: [${quietDays.join(', ')}]`),
    deps: { clock: { ...clock, now: () => clock.now() - 3 * dayMs } },
  })
  await publish(pipeline, 'truck-1')
  await pipeline.until(() => pipeline.status().clock.known)
  await pipeline.until(() => pipeline.codes().includes('DEVICES_SILENT'))
  expect(pipeline.condition('DEVICES_SILENT')).toMatchObject({ severity: 'info' })
})

const views = [
  '/',
  '/page/devices',
  '/page/device?key=truck-2',
  '/page/refused',
  '/page/batches',
  '/page/dead-letters',
]
const lists = [
  ['devices'],
  ['devices', 'show', 'truck-2'],
  ['batches', 'list'],
  ['dead-letters', 'list', '--each'],
]

test.each([-3, 3])(
  'no age is hours off where the clock is, by %i hours, and the service says so',
  async (hours) => {
    const trueNow = Date.now.bind(Date)
    // The gateway and its commands have the clock of one machine; the service has the right one.
    vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + hours * 3_600_000)
    onTestFinished(() => void vi.restoreAllMocks())
    const pipeline = await startPipeline({
      clock: { ...systemClock, now: trueNow },
      config: configText({
        broker:
          '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [{ name: fleet, password: "${env:PASSWORD}" }] } }',
      }),
      deps: { clock: systemClock, env: { ...accountEnv, PASSWORD: 'right' } },
    })
    const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
    async function send(name: string, ...payloads: string[]) {
      const device = await createDevice({ port, clientId: name })
      onTestFinished(() => device.destroy())
      await device.connect({ username: 'fleet', password: Buffer.from('right') })
      for (const [index, payload] of payloads.entries())
        device.publish({ topic: topicOf(name), payload, messageId: index + 1 })
      await device.acked(payloads.length)
      return device
    }
    const position = (n: number) => messageOf(n, { ts: trueNow() + n })
    await send('truck-1', position(1))
    await pipeline.until(() => pipeline.status().clock.known)
    const truck = await send('truck-2', position(1), 'no JSON')
    truck.destroy()
    await send('truck-4', messageOf(1, { ts: trueNow() + dayMs }))
    const refused = await createDevice({ port, clientId: 'truck-2' })
    onTestFinished(() => refused.destroy())
    await refused.connect({ username: 'fleet', password: Buffer.from('wrong') })
    await pipeline.until(() => pipeline.status().totals.delivered === 2)
    pipeline.sandbox.setFaults({ always: 500 })
    await send('truck-3', position(1))
    await pipeline.until(() => pipeline.status().lanes.some(({ sealed }) => sealed > 0))

    const { ops, control } = pipeline.gateway.addresses
    const pages = views.map(async (path) => (await get(ops, path, { headers: { accept: 'text/html' } })).text)
    const texts = lists.map(async (words) => (await runCli([...words, '--url', control])).stdout)
    for (const [index, text] of (await Promise.all([...texts, ...pages])).entries()) {
      const ages =
        text.replaceAll(/<[^>]*>/g, ' ').match(/.*\b(in \d+ h|\d h( \d+ min| \d+ s)? ago).*/g) ?? []
      expect([[...lists, ...views][index], ages]).toEqual([[...lists, ...views][index], []])
    }
    // What is kept, and what people did, is noted in the time of the gateway, and looked for by it.
    expect((await runCli(['devices', 'mute', 'truck-2', '--for', '1h', '--url', control])).stderr).toBe('')
    const kept = ['/dead-letters?since=1h', '/quarantine?device=truck-4', '/audit?since=1h']
    for (const path of [...kept, '/batches', '/status']) {
      const found = (await get(ops, path)).text.matchAll(/"(?:now|since|\w*[aA]t)":"(\d{4}-[^"]+)"/g)
      const offMs = [...found].map(([, time = '']) => Math.abs(Date.parse(time) - trueNow()))
      expect([path, offMs.length > 0, Math.max(...offMs) < toleranceMs]).toEqual([path, true, true])
    }
    const [batch] = JSON.parse((await get(ops, '/batches')).text).batches as { batchId: string }[]
    const shown = await runCli(['batches', 'show', batch!.batchId, '--url', control])
    expect(shown.stdout).toContain(zonedTime(trueNow()).slice(0, 13))
    // The refusal came after the last message.
    const { state, why } = await view(pipeline, 'truck-2')
    expect([state, why]).toEqual(['refused', expect.stringMatching(/the last time (just now|\d+ s ago)/)])
  },
)
