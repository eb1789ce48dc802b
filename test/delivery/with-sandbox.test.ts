// Delivery from a spool in LevelDB to the sandbox, which verifies every signature and every repeated body with code of its
// own. Real time and real sockets.

import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { openSandboxPipeline } from '../support/sandbox-pipeline.ts'

describe('delivery to a service that verifies', () => {
  test('compressed requests are accepted, and their batches are those of the uncompressed body', async () => {
    const { sandbox, spool, ...pipeline } = await openSandboxPipeline({
      sandbox: { basePath: '/depot' },
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
})

describe('several providers', () => {
  test('each is sent to its own address, with its own credentials and operation', async () => {
    const second = { accessKeyId: 'SECONDACCOUNT', secret: new Secret('second secret') }
    const pipeline = await openSandboxPipeline({
      sandbox: { accounts: [sandboxAccount, second] },
      providers: [
        { name: 'north' },
        {
          name: 'south',
          mode: 'single',
          credentials: {
            source: 'keys',
            accessKeyId: 'SECONDACCOUNT',
            secretAccessKey: second.secret,
            sessionToken: null,
          },
        },
      ],
    })
    await pipeline.publish(30, { provider: 'north' })
    await pipeline.publish(5, { provider: 'south' })
    await pipeline.until(() => pipeline.spool.totals().delivered === 35)
    expect(pipeline.sandbox.stats()).toMatchObject({ singles: 5, payloadsAccepted: 35 })
    expect(new Set(pipeline.arrived().values())).toEqual(new Set([null]))
  })
})

describe('a provider that left the config', () => {
  test('keeps its payloads, and their number is reported', async () => {
    const pipeline = await openSandboxPipeline({ providers: [{ name: 'south' }] })
    await pipeline.publish(7, { provider: 'north' })
    await pipeline.publish(5, { provider: 'south' })
    await pipeline.until(() => pipeline.spool.totals().delivered === 5)
    expect([...pipeline.delivery.states()]).toEqual([
      { code: 'PROVIDER_UNKNOWN', provider: 'north', payloads: 7 },
    ])
    expect(pipeline.spool.lanes().find(({ provider }) => provider === 'north')?.open).toBe(7)
  })
})
