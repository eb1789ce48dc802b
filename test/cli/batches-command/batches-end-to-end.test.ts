// Devices, the real gateway, and a sandbox that loses its answer after the commit and then answers 409.

import { describe, expect, test } from 'vitest'
import type { BatchList } from '../../../src/delivery/types.ts'
import { runCli } from '../../support/cli-world.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../../support/pipeline-world.ts'

/** One batch of three payloads that the service has processed, held because of 409. */
async function oneHeld(): Promise<Pipeline & { url: string; batchId: string }> {
  const pipeline = await startPipeline({
    sections: { delivery: 'batch: { max_payloads: 3, linger: 5s }, timeout: 1s' },
    sandbox: {
      repeat: 'conflict',
      faults: { count: 1, after_commit: { cut: 1 } },
    },
  })
  const device = await pipeline.device('truck-1')
  for (const n of [1, 2, 3])
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
  await device.acked(3)
  const codes = () => pipeline.status().conditions.map(({ code }) => code)
  await pipeline.until(() => codes().includes('BATCHES_HELD'))
  const url = pipeline.gateway.addresses.control
  const { stdout } = await runCli(['batches', '--json', '--url', url])
  const { batches } = JSON.parse(stdout) as BatchList
  expect(batches).toMatchObject([{ state: 'held', held: { reason: 'repeated' }, payloads: 3 }])
  return { ...pipeline, url, batchId: batches[0]?.batchId ?? '' }
}

describe('a batch that the service processed and answers 409 for', () => {
  test('is shown, and settled with mark-delivered; the condition ends and the ledger says by whom', async () => {
    const { url, batchId, ...pipeline } = await oneHeld()
    const shown = await runCli(['batches', 'show', batchId, '--url', url])
    expect(shown.stdout).toMatch(/^processed +perhaps$/m)
    expect(shown.stdout).toContain('The service answers 409')
    expect(shown.stdout.match(/ truck-1$/gm)).toHaveLength(3)
    const dry = await runCli(['batches', 'mark-delivered', batchId, '--url', url])
    expect(dry.stdout).toContain('Nothing was changed. Add --yes to do it.')
    const done = await runCli(['batches', 'mark-delivered', batchId, '--yes', '--url', url])
    expect([done.status, done.stdout]).toEqual([
      0,
      expect.stringContaining('1 batch with 3 payloads is settled as delivered'),
    ])
    await pipeline.until(() => pipeline.status().conditions.every(({ code }) => code !== 'BATCHES_HELD'))
    expect(pipeline.status().totals.delivered).toBe(3)
    expect(pipeline.status().internals.conservation.payloads.difference).toBe(0)
    expect(pipeline.log()).toMatch(/"event":"operator_action".*"action":"mark-delivered"/)
    const ledger = await runCli(['ledger', '--batch', batchId, '--url', url])
    expect(ledger.stdout).toContain('MARKED_BY_OPERATOR')
    expect((await runCli(['batches', '--url', url])).stdout).toBe('There are no sealed batches.\n')
    const again = await runCli(['batches', 'retry', batchId, '--url', url])
    expect([again.status, again.stdout]).toEqual([1, expect.stringContaining('BATCH_GONE')])
  })

  test('is processed twice when it is reissued, as the command says before', async () => {
    const { url, ...pipeline } = await oneHeld()
    const said = await runCli(['batches', 'reissue', '--all', '--url', url])
    expect(said.stdout).toContain('it processes 3 payloads twice, under two batchIds')
    await runCli(['batches', 'reissue', '--reason', 'repeated', '--yes', '--url', url])
    await pipeline.until(() => pipeline.status().totals.delivered === 3)
    expect(pipeline.sandbox.stats()).toMatchObject({ duplicatesAcrossBatches: 3 })
  })

  test('becomes dead letters when it is dropped', async () => {
    const { url, ...pipeline } = await oneHeld()
    await runCli(['batches', 'drop', '--older-than', '0s', '--yes', '--url', url])
    expect(pipeline.status().spool.deadLetters).toBe(3)
    const listed = await runCli(['dead-letters', '--reason', 'DROPPED_BY_OPERATOR', '--url', url])
    expect(listed.stdout).toMatch(/^3 payloads +DROPPED_BY_OPERATOR +delivery/m)
  })
})
