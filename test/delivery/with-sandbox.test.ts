// Delivery from a spool in LevelDB to the sandbox, which verifies every signature and every repeated body with code of its
// own. Real time and real sockets.

import { describe, expect, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { openSandboxPipeline } from '../support/sandbox-pipeline.ts'

const basePath = '/depot'

describe('delivery to a service that verifies', () => {
  test('every signature is accepted and every payload arrives once', async () => {
    const { sandbox, delivery, ...pipeline } = await openSandboxPipeline({
      sandbox: { basePath },
      // A busy machine is no reason to send a batch again.
      providers: [{ timeoutMs: 60_000 }],
    })
    await pipeline.publish(500)
    await pipeline.until(() => pipeline.spool.totals().delivered === 500)
    expect(sandbox.stats()).toMatchObject({
      distinctPayloadIds: 500,
      payloadsAccepted: 500,
      repeats: 0,
      refusedSignatures: {},
    })
    const [provider] = delivery.providers()
    expect(provider).toMatchObject({ endpoint: 'available', clockOffsetMs: expect.any(Number) })
    expect(Math.abs(provider?.clockOffsetMs ?? Infinity)).toBeLessThan(1000)
  })

  test('compressed requests are accepted, and their batches are those of the uncompressed body', async () => {
    const { sandbox, spool, ...pipeline } = await openSandboxPipeline({
      sandbox: { basePath },
      providers: [{ timeoutMs: 60_000, compress: 'gzip' }],
    })
    sandbox.setFaults({ after_commit: { cut: 0.3 } })
    await pipeline.publish(500)
    await pipeline.until(() => spool.totals().delivered === 500)
    expect(sandbox.stats()).toMatchObject({
      distinctPayloadIds: 500,
      repeatsWithOtherBytes: 0,
      duplicatesAcrossBatches: 0,
      refusedSignatures: {},
      refusedRequests: {},
    })
    const sent = pipeline.ofKind('submission_ended').reduce((sum, { bytes }) => sum + bytes, 0)
    expect(sandbox.stats().bytes).toBeLessThan(sent / 2)
  })

  test('through faults of every kind nothing arrives under two batchIds and no byte differs', async () => {
    const { sandbox, spool, ...pipeline } = await openSandboxPipeline({
      sandbox: { basePath },
      providers: [{ timeoutMs: 400 }],
    })
    sandbox.setFaults({
      status: { 500: 0.1, 503: 0.1, 429: 0.05 },
      after_commit: { cut: 0.1, error: 0.1, hang: 0.02 },
      body: { truncated: 0.05, html: 0.05 },
      hang: 0.02,
    })
    for (let from = 0; from < 600; from += 20) await pipeline.publish(20, { from })
    await pipeline.until(() => sandbox.stats().distinctPayloadIds === 600)
    sandbox.setFaults([])
    await pipeline.until(() => spool.totals().delivered === 600)
    expect(sandbox.stats()).toMatchObject({
      duplicatesAcrossBatches: 0,
      repeatsWithOtherBytes: 0,
      distinctPayloadIds: 600,
      refusedSignatures: {},
    })
  })

  test('a wrong secret is reported as unauthorized, and nothing is lost', async () => {
    const { accessKeyId } = sandboxAccount
    const secretAccessKey = new Secret('another secret')
    const credentials = { source: 'keys' as const, accessKeyId, secretAccessKey, sessionToken: null }
    const pipeline = await openSandboxPipeline({ sandbox: { basePath }, providers: [{ credentials }] })
    await pipeline.publish(10)
    await pipeline.until(() => pipeline.ofKind('endpoint_unauthorized').length > 0)
    expect(pipeline.sandbox.stats().distinctPayloadIds).toBe(0)
    expect(pipeline.spool.lanes()[0]?.open).toBe(10)
  })
})
