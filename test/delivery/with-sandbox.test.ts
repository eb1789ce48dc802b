// Delivery from a spool in LevelDB to the sandbox, which verifies every signature and every repeated body with code of its
// own. Real time and real sockets.

import { describe, expect, test } from 'vitest'
import { openSandboxPipeline } from '../support/sandbox-pipeline.ts'

const basePath = '/depot'

describe('delivery to a service that verifies', () => {
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
})
