// batch-views.ts: sealed batches as delivery shows them to an operator.

import type { HeldReason } from '../../src/domain/held.ts'
import type { BatchId, ProviderName } from '../../src/domain/ids.ts'
import type { BatchView } from '../../src/delivery/types.ts'

export function batchView(
  id: string,
  { provider = 'default', ...more }: Partial<Omit<BatchView, 'provider'>> & { provider?: string } = {},
): BatchView {
  return {
    batchId: id as BatchId,
    provider: provider as ProviderName,
    role: 'live',
    payloads: 10,
    bytes: 4000,
    sealedAt: 1_000_000,
    state: 'waiting',
    held: null,
    submissions: 1,
    mayBeProcessed: true,
    lastRequestId: null,
    nextTryAt: null,
    ...more,
  }
}

export function heldView(
  id: string,
  reason: HeldReason,
  { since, ...more }: Parameters<typeof batchView>[1] & { since: number },
): BatchView {
  const held = { reason, since, requestId: `request of ${id}`, why: 'The service answers 409.' }
  return batchView(id, { state: 'held', held, lastRequestId: held.requestId, ...more })
}
