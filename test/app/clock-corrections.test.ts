// The whole gateway with a clock that is wrong for a while, and devices whose clocks are right.

import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { configText, positionMap } from '../support/config-text.ts'
import { createFastClock } from '../support/fast-clock.ts'
import type { Device } from '../support/mqtt-device.ts'
import { testKernel } from '../support/our-time.ts'
import { messageOf, topicOf, startPipeline, startSandbox, type Pipeline } from '../support/pipeline-world.ts'

const hourMs = 3_600_000
const messages = 200

/** A wall clock that the test sets; the monotonic clock is right, or faster. */
function settableClock(offMs: number, base: Clock = systemClock): Clock & { set(offMs: number): void } {
  let off = offMs
  return { ...base, now: () => base.now() + off, set: (next) => void (off = next) }
}

async function publishPresent(pipeline: Pipeline, name: string, aheadMs = 0): Promise<void> {
  const payloads = Array.from({ length: messages }, (_, n) =>
    messageOf(n, { ts: systemClock.now() + aheadMs }),
  )
  await pipeline.publish(name, ...payloads)
}

const quarantined = (pipeline: Pipeline) => pipeline.status().spool.quarantined

describe('a service whose Date is wrong', () => {
  const yearMs = 365 * 24 * hourMs
  /** What the service says is looked at every second. */
  const clock = createFastClock(20)
  const kernel = testKernel(() => false)

  /** A server in front of the sandbox at `url`, which sends other dates: by how much, for each answer. */
  async function withDates(url: string, aheadMs: (answer: number) => number): Promise<string> {
    let answers = 0
    const server = createServer((incoming, outgoing) => {
      const { method, headers, url: path } = incoming
      const forwarded = request(new URL(path ?? '', url), { method, headers }, (answer) => {
        answers += 1
        const date = new Date(clock.now() + aheadMs(answers)).toUTCString()
        outgoing.writeHead(answer.statusCode ?? 500, { ...answer.headers, date })
        answer.pipe(outgoing)
      })
      incoming.pipe(forwarded)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const publish = async (device: Device, topic: string, n: number) => {
    const payload = JSON.stringify({ ts: clock.now(), lat: 52 + n / 100, lon: 13 })
    device.publish({ topic, payload, messageId: n })
    await device.acked(n)
    await new Promise<void>((resolve) => void clock.after(2500, resolve))
  }

  test.each([yearMs, -2 * hourMs])(
    'once, by %d ms, sends nothing to quarantine: no answer would come that corrects it',
    async (offMs) => {
      const { url } = await startSandbox({}, clock)
      const baseUrl = await withDates(url, (answer) => (answer === 1 ? offMs : 0))
      const pipeline = await startPipeline({ clock, config: () => configText()(baseUrl), deps: { kernel } })
      const device = await pipeline.device('truck-1')
      for (let n = 1; n <= 5; n += 1) await publish(device, topicOf('truck-1'), n)
      await pipeline.until(() => pipeline.status().totals.delivered === 5 || quarantined(pipeline) > 0)
      expect(pipeline.status()).toMatchObject({ totals: { quarantined: 0 }, clock: { by: 'service' } })
    },
  )

  test('always, beside one of another provider, sends nothing of the other to quarantine', async () => {
    const { url } = await startSandbox({}, clock)
    const wrongUrl = await withDates(url, () => yearMs)
    const pipeline = await startPipeline({
      clock,
      config: () =>
        configText({
          sources: `
  - { name: right, topic: "right/{device}", provider: right, map: ${positionMap} }
  - { name: wrong, topic: "wrong/{device}", provider: wrong, map: ${positionMap} }`,
          delivery: `batch: { linger: 20ms }, providers: [{ name: wrong, provider_key: W, base_url: "${wrongUrl}" }, { name: right, provider_key: R }]`,
        })(url),
      deps: { kernel },
    })
    const device = await pipeline.device('truck-1')
    // Signed with the wrong time, further payloads of the other are refused.
    for (let n = 1; n <= 8; n += 2) {
      await publish(device, 'wrong/truck-2', n)
      await publish(device, 'right/truck-1', n + 1)
    }
    expect(pipeline.status().totals.quarantined).toBe(0)
  })
})

describe('a gateway whose clock falls behind by an hour', () => {
  test('judges no device by it, from the first message on, and delivers everything', async () => {
    const clock = settableClock(0)
    const pipeline = await startPipeline({ deps: { clock } })
    await publishPresent(pipeline, 'truck-1')
    await pipeline.until(() => pipeline.status().clock.known)
    clock.set(-hourMs)
    await publishPresent(pipeline, 'truck-2')
    await pipeline.until(() => pipeline.status().totals.delivered === 2 * messages)
    await pipeline.until(() => pipeline.status().clock.known)
    expect(pipeline.status().totals.quarantined).toBe(0)
    expect(pipeline.status().clock).toMatchObject({ by: 'service', isDisputed: false })
    await publishPresent(pipeline, 'truck-3')
    await pipeline.until(() => pipeline.status().totals.delivered === 3 * messages)
    expect(pipeline.status().totals.quarantined).toBe(0)
    expect(pipeline.codes()).toEqual(expect.arrayContaining(['CLOCK_OFF', 'CLOCK_STEPPED']))
  })

  test('releases what it took for the future as soon as the clock is set, without a command', async () => {
    const clock = settableClock(-hourMs)
    // The system says that the clock is right, and nothing is delivered that the service could answer.
    const pipeline = await startPipeline({ deps: { clock, kernel: testKernel(() => true) } })
    await pipeline.until(() => pipeline.status().clock.known)
    for (const name of ['truck-1', 'truck-2']) await publishPresent(pipeline, name)
    expect(quarantined(pipeline)).toBe(2 * messages)
    clock.set(0)
    await pipeline.until(() => pipeline.status().totals.delivered === 2 * messages)
    expect(quarantined(pipeline)).toBe(0)
    expect(pipeline.status().totals.released).toBe(2 * messages)
    expect(pipeline.codes()).toContain('CLOCK_STEPPED')
  })

  test('says of no device any more that it is hours off, once its own clock is set', async () => {
    const clock = settableClock(5 * hourMs)
    const pipeline = await startPipeline({ deps: { clock, kernel: testKernel(() => true) } })
    await pipeline.until(() => pipeline.status().clock.known)
    await publishPresent(pipeline, 'truck-1')
    await pipeline.until(() => pipeline.codes().includes('DEVICES_HOURS_OFF'))
    clock.set(0)
    await pipeline.until(() => !pipeline.codes().includes('DEVICES_HOURS_OFF'))
    expect(pipeline.codes()).toContain('CLOCK_STEPPED')
  }, 30_000)
})

describe('a service whose clock is a day behind, and a system that does not know the time', () => {
  test('the clock counts as right where five devices agree with it, and what was kept is released', async () => {
    const clock = settableClock(24 * hourMs, createFastClock(10))
    const pipeline = await startPipeline({ deps: { clock } })
    await publishPresent(pipeline, 'truck-0', 24 * hourMs)
    await pipeline.until(() => pipeline.status().clock.by === 'service')
    const names = ['truck-1', 'truck-2', 'truck-3', 'truck-4', 'truck-5']
    for (const name of names) await publishPresent(pipeline, name, 24 * hourMs)
    await pipeline.until(() => pipeline.status().clock.by === 'devices')
    await pipeline.until(() => pipeline.status().totals.delivered === 6 * messages)
    expect(pipeline.status().clock).toMatchObject({ known: true, isDisputed: true })
    expect(quarantined(pipeline)).toBe(0)
    expect(pipeline.codes()).not.toContain('CLOCK_SUSPECT')
  })

  test('the time of the service is used where the devices do not agree with the clock', async () => {
    const pipeline = await startPipeline({ deps: { clock: settableClock(24 * hourMs) } })
    const names = ['truck-1', 'truck-2', 'truck-3', 'truck-4', 'truck-5', 'truck-6']
    for (const name of names) await publishPresent(pipeline, name)
    await pipeline.until(() => pipeline.status().clock.by === 'service')
    for (const name of names) await publishPresent(pipeline, name)
    await pipeline.until(() => pipeline.status().totals.delivered === 12 * messages)
    expect(pipeline.status().clock).toMatchObject({ by: 'service', isDisputed: false })
    expect(pipeline.status().totals.quarantined).toBe(0)
  })
})

const trusting = (trustLocal: boolean) => configText({ more: `clocks: { trust_local: ${trustLocal} }` })

test('clocks.trust_local makes our time known without system and service, until a reload', async () => {
  const pipeline = await startPipeline({ config: trusting(true) })
  expect(pipeline.status().clock).toMatchObject({ known: true, by: 'config' })
  await pipeline.publish('truck-1', messageOf(1, { ts: systemClock.now() + hourMs }))
  expect(quarantined(pipeline)).toBe(1)
  const path = join(pipeline.folder, 'gateway.yaml')
  await writeFile(path, trusting(false)(pipeline.baseUrl))
  await pipeline.gateway.reload('the test')
  expect(pipeline.status().clock).toMatchObject({ known: false, by: null })
})
