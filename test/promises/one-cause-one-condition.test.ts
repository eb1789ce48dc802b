// A cause is one condition: what follows from it is none of its own, or a person at night mends the wrong thing.

import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { checkInThread } from '../../src/storage/storage.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { get, send } from '../support/ops-world.ts'
import { pagePassword, usersText } from '../support/page-world.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'
import { failAll, startScriptedService } from '../support/scripted-service.ts'
import { testKernel } from '../support/our-time.ts'

const hourMs = 3_600_000

const alice = { authorization: `Basic ${Buffer.from(`alice:${pagePassword}`).toString('base64')}` }

/** Codes that were raised so far, in order, without those of the start. */
function raised({ events }: Pipeline): string[] {
  return events.flatMap((event) => (event.kind === 'condition_raised' ? [event.code] : []))
}

test('a spool that is away is one condition: its control socket and its audit log are none', async () => {
  const folder = await newFolder()
  const receiver = await startHttpReceiver()
  const pipeline = await startPipeline({
    folder,
    clock: createFastClock(20),
    deps: { checkStore: checkInThread },
    config: configText({
      ops: `users: ${await usersText(folder)}`,
      more: `alerts: { gateway: depot, receivers: [{ name: chat, type: webhook, url: "${receiver.url}/x" }] }`,
    }),
  })
  await pipeline.until(() => pipeline.events.some(({ kind }) => kind === 'ledger_opened'))
  await pipeline.until(() => pipeline.codes().includes('SPOOL_NEW'))
  const before = raised(pipeline).length
  const spool = join(folder, 'spool')
  await rename(spool, `${spool}.away`)
  await pipeline.until(() => pipeline.codes().includes('SPOOL_UNUSABLE'))
  // The socket is looked for every ten seconds, and the audit log is written with each change.
  const done = await send(pipeline.gateway.addresses.ops, '/control/alerts/test', {
    method: 'POST',
    headers: alice,
  })
  expect(done.status).toBe(200)
  const untilMs = systemClock.monotonic() + 2000
  await pipeline.until(() => systemClock.monotonic() > untilMs)
  expect(pipeline.codes().filter((code) => code !== 'SPOOL_NEW')).toEqual(['SPOOL_UNUSABLE'])
  expect(new Set(raised(pipeline).slice(before))).toEqual(new Set(['STORE_LOST', 'SPOOL_UNUSABLE']))

  await rename(`${spool}.away`, spool)
  await pipeline.until(() => pipeline.status().ready)
  // What is counted and remembered begins anew, and both say since when.
  const { sentence, totals, startedAt } = pipeline.status()
  expect(sentence).toContain('No message came and nothing was accepted since the spool was lost ')
  expect(totals.sinceAt > startedAt).toBe(true)
  const page = await get(pipeline.gateway.addresses.ops, '/', { headers: { ...alice, accept: 'text/html' } })
  expect(page.text).toContain('Since the spool was lost, ')
  expect(page.text).toContain('none since the spool was lost, ')
  const shown = await runCli(['status', '--url', pipeline.gateway.addresses.control])
  expect(shown.stdout).toMatch(/^counted +since the spool was lost, /m)
  await pipeline.until(() => !pipeline.codes().includes('AUDIT_LOG_FAILED'))
  expect(pipeline.codes()).toEqual([])
  // Its end is sent at once, with the time of the end.
  type Changes = { createdAt: string; changes: { kind: string; code: string; clearedAt: string }[] }
  const bodies = () => receiver.requests.map(({ body }) => JSON.parse(body) as Changes)
  const end = () =>
    bodies()
      .flatMap(({ createdAt, changes }) => changes.map((one) => ({ ...one, createdAt })))
      .find(({ kind, code }) => kind === 'cleared' && code === 'SPOOL_UNUSABLE')
  await pipeline.until(() => end() !== undefined)
  const lateMs = Date.parse(end()!.createdAt) - Date.parse(end()!.clearedAt)
  expect(lateMs).toBeGreaterThanOrEqual(10_000)
  expect(lateMs).toBeLessThan(60_000)
  const { stdout } = await runCli(['audit', '--url', pipeline.gateway.addresses.control])
  expect(stdout).toContain('alerts/test')
})

test('an outage in the answers of a 200 is one condition', async () => {
  const service = await startScriptedService(failAll('InternalError'))
  onTestFinished(() => service.close())
  const pipeline = await startPipeline({
    baseUrl: service.url,
    clock: createFastClock(20),
    deps: { checkStore: checkInThread },
    config: configText({ delivery: 'batch: { max_payloads: 2, linger: 20ms }' }),
  })
  for (let n = 1; n <= 12; n += 1) await pipeline.publish(`truck-${n}`, messageOf(n))
  await pipeline.until(() => pipeline.codes().includes('ENDPOINT_UNAVAILABLE'))
  expect(pipeline.codes()).not.toContain('NOTHING_ACCEPTED')
  expect(pipeline.condition('ENDPOINT_UNAVAILABLE')?.what).toContain('Data is kept.')
})

/** Twenty times as fast, and its wall clock is ahead. */
function aheadClock(aheadMs: number): { clock: Clock; deps: { clock: Clock } } {
  const clock = createFastClock(20)
  return { clock, deps: { clock: { ...clock, now: () => clock.now() + aheadMs } } }
}

/** Messages with the true time. */
async function sendTrue(pipeline: Pipeline, clock: Clock): Promise<void> {
  for (let index = 1; index <= 6; index += 1) {
    const name = `truck-${index}`
    const device = await pipeline.device(name)
    for (let n = 1; n <= 16; n += 1)
      device.publish({ topic: topicOf(name), payload: messageOf(n, { ts: clock.now() + n }), messageId: n })
    await device.acked(16)
  }
}

const ofClocks = (pipeline: Pipeline) => pipeline.codes().filter((code) => /CLOCK|HOURS/.test(code))

/** By then the devices were looked at again, and it is reported that the time is not known. */
async function pastLooks(pipeline: Pipeline, clock: Clock): Promise<void> {
  const untilMs = clock.monotonic() + 150_000
  await pipeline.until(() => clock.monotonic() > untilMs)
}

test('a clock of this machine that is hours off is one condition, where nobody knows the time', async () => {
  const { clock, deps } = aheadClock(2 * hourMs)
  const pipeline = await startPipeline({ clock, baseUrl: 'http://127.0.0.1:9', config: configText(), deps })
  await sendTrue(pipeline, clock)
  await pipeline.until(() => ofClocks(pipeline).includes('CLOCK_SUSPECT'))
  await pastLooks(pipeline, clock)
  expect(ofClocks(pipeline)).toEqual(['CLOCK_SUSPECT'])
})

test('the same where the service and the devices agree, and the kernel says that the clock is right', async () => {
  const { clock, deps } = aheadClock(2 * hourMs)
  const kernel = testKernel(() => true)
  const pipeline = await startPipeline({ clock, config: configText(), deps: { ...deps, kernel } })
  await sendTrue(pipeline, clock)
  await pipeline.until(() => ofClocks(pipeline).includes('CLOCK_OFF'))
  await pastLooks(pipeline, clock)
  expect(ofClocks(pipeline)).toEqual(['CLOCK_OFF'])
})
