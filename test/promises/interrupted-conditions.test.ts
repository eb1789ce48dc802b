// A stop interrupts what is open. What was lost stays lost, what holds goes on, and the rest is over since the stop.

import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AlertBody } from '../../src/alerts/alert-body.ts'
import { checkInThread } from '../../src/storage/storage.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

/** One folder for all starts. `start`: with so many bytes free, else DISK_LOW is open. */
async function depotWithReceiver() {
  const folder = await newFolder()
  const clock = createFastClock(20)
  const receiver = await startHttpReceiver()
  const alerts = `alerts: { wait: 1s, receivers: [{ name: chat, type: webhook, url: "${receiver.url}" }] }`
  const start = (freeMin: string) =>
    startPipeline({
      folder,
      clock,
      config: configText({
        spool: `{ path: ./spool, max_bytes: 32MiB, min_free_bytes: ${freeMin} }`,
        more: alerts,
      }),
    })
  return { folder, clock, receiver, start }
}

test('conditions go on over a restart with their first `since`, and those that do not are over since the stop', async () => {
  const { folder, clock, receiver, start } = await depotWithReceiver()
  const first = await start('1MiB')
  await first.publish('truck-1', 'no JSON')
  await first.until(() => first.codes().includes('DEAD_LETTERS'))
  const deadSince = first.condition('DEAD_LETTERS')!.since
  await first.gateway.stop('a restart')

  const second = await start('60TiB')
  await second.until(() => second.condition('DEAD_LETTERS_WAITING')?.since === deadSince)
  await second.until(() => second.codes().includes('DISK_LOW'))
  const truck = await second.device('truck-1')
  truck.publish({ topic: topicOf('truck-1'), payload: '{}', qos: 0 })
  await second.until(() => second.codes().includes('MESSAGES_DROPPED'))
  const { since: droppedSince, what } = second.condition('MESSAGES_DROPPED')!
  await second.until(() => second.events.filter(({ kind }) => kind === 'alert_sent').length > 0)
  await second.gateway.stop('a restart')
  const stoppedAt = clock.now()

  const third = await start('1MiB')
  await third.until(() => third.codes().includes('MESSAGES_DROPPED'))
  expect(third.condition('MESSAGES_DROPPED')).toMatchObject({ since: droppedSince, what, severity: 'error' })
  expect(third.condition('DEAD_LETTERS_WAITING')?.since).toBe(deadSince)
  const { stdout } = await runCli(['conditions', 'list', '--socket', join(folder, 'spool.sock')])
  expect(stdout).toMatch(/critical DISK_LOW, for .*, until the gateway stopped/)
  expect(stdout).toMatch(/error DEAD_LETTERS, for .*, until the gateway stopped/)

  const changes = () => receiver.requests.flatMap(({ body }) => (JSON.parse(body) as AlertBody).changes)
  const cleared = () => changes().filter(({ kind }) => kind === 'cleared')
  await third.until(() => cleared().some(({ code }) => code === 'DISK_LOW'))
  expect(cleared().map(({ code }) => code)).not.toContain('MESSAGES_DROPPED')
  expect(cleared().map(({ code }) => code)).not.toContain('DEAD_LETTERS')
  const { clearedAt, since } = cleared().find(({ code }) => code === 'DISK_LOW')!
  expect(Date.parse(clearedAt!)).toBeGreaterThanOrEqual(Date.parse(since))
  expect(Date.parse(clearedAt!)).toBeLessThanOrEqual(stoppedAt)
}, 60_000)

test('a loss of the spool is no stop: what was open goes on, and what was lost with it is over when it is refused', async () => {
  const folder = await newFolder()
  const spool = join(folder, 'spool')
  const pipeline = await startPipeline({
    folder,
    clock: createFastClock(20),
    deps: { checkStore: checkInThread },
    config: configText({ spool: '{ path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }' }),
  })
  await pipeline.publish('truck-1', 'no JSON', messageOf(1))
  await pipeline.until(() => pipeline.codes().includes('DEAD_LETTERS'))
  const { since } = pipeline.condition('DEAD_LETTERS')!
  // As a file system that is unmounted, with the empty directory below it.
  await rename(spool, join(folder, 'away'))
  await mkdir(spool)
  const truck = await pipeline.device('truck-2')
  let n = 1
  // What is delivered is noticed by the ledger.
  await pipeline.until(() => {
    truck.publish({ topic: topicOf('truck-2'), payload: messageOf((n += 1)), messageId: n })
    return pipeline.codes().includes('SPOOL_UNUSABLE')
  })
  // The stages are closed, and write there no more.
  await pipeline.until(() => pipeline.status().totals.sinceAt > pipeline.status().startedAt)
  await rm(spool, { recursive: true })
  await rename(join(folder, 'away'), spool)
  await pipeline.until(() => pipeline.status().ready)
  expect(pipeline.condition('DEAD_LETTERS')).toMatchObject({ since, what: '1 new dead letter.' })
  expect(pipeline.codes()).not.toContain('DEAD_LETTERS_WAITING')
  let text = ''
  while (!text.includes('SPOOL_UNUSABLE'))
    text = (await runCli(['conditions', 'list', '--socket', join(folder, 'spool.sock')])).stdout
  expect(text).toMatch(/critical STORE_LOST, for [^,]*\n/)
  expect(text).not.toContain('until the gateway stopped')
}, 60_000)

test('what was over in between two restarts begins anew, and is sent again', async () => {
  const { folder, clock, receiver, start } = await depotWithReceiver()
  const raised = () =>
    receiver.requests
      .flatMap(({ body }) => (JSON.parse(body) as AlertBody).changes)
      .filter(({ kind, code }) => kind === 'raised' && code === 'DISK_LOW')
  const first = await start('60TiB')
  await first.until(() => first.events.some(({ kind }) => kind === 'alert_sent'))
  expect(raised()).toHaveLength(1)
  await first.gateway.stop('a restart')
  const second = await start('1MiB')
  // Its records are read, in which the condition waits to go on.
  await second.until(() => second.events.some(({ kind }) => kind === 'ledger_opened'))
  await second.gateway.stop('a restart')
  const stoppedAt = clock.now()
  const third = await start('60TiB')
  await third.until(() => third.codes().includes('DISK_LOW'))
  expect(Date.parse(third.condition('DISK_LOW')!.since)).toBeGreaterThanOrEqual(stoppedAt)
  await third.until(() => raised().length === 2)
  const { stdout } = await runCli(['conditions', 'list', '--socket', join(folder, 'spool.sock')])
  expect(stdout.match(/critical DISK_LOW, for .*, until the gateway stopped/g)).toHaveLength(1)
}, 60_000)
