import { describe, expect, test } from 'vitest'
import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import { withoutPayloads } from '../../src/receipts/receipt-edit.ts'
import { decodeReceipt } from '../../src/receipts/receipts.ts'
import { receiptOf, uuidNamed } from '../support/ledger-world.ts'

const failure = { payloadId: 'x', errorType: 'Timeout', errorMessage: 'm', validationErrorDetails: [] }
const fates: readonly PayloadSettlement[] = [
  { kind: 'delivered' },
  { kind: 'retry', schedule: 'other', step: 2, failure },
  { kind: 'dead', reason: 'Validation', detail: 'no asset', failure: null },
  { kind: 'delivered', note: { reason: 'by hand', detail: 'depot' } },
]
const entries = fates.map((_, index) => ({
  payloadId: uuidNamed(`${index}`),
  deviceTime: index === 1 ? null : 1000 + index,
  device: index === 3 ? null : `truck-${index}`,
}))

describe('a receipt without some payloads', () => {
  test.each([[0], [1], [2], [3]])('keeps everything else: without number %i', (gone) => {
    const before = decodeReceipt(receiptOf(entries, { fates }))!
    const after = decodeReceipt(withoutPayloads(before, new Set([gone]))!)!
    const kept = [0, 1, 2, 3].filter((index) => index !== gone)
    expect(kept.map((_, index) => after.entries.at(index))).toEqual(
      kept.map((index) => before.entries.at(index)),
    )
    expect(kept.map((_, index) => after.settlement(index))).toEqual(
      kept.map((index) => before.settlement(index)),
    )
    const { provider, lane, batchId, requestId, at } = before
    expect(after).toMatchObject({ provider, lane, batchId, requestId, at })
    expect(after.entries.ofDevice(`truck-${gone}`)).toEqual([])
  })

  test('is none without any', () => {
    const before = decodeReceipt(receiptOf(entries, { fates }))!
    expect(withoutPayloads(before, new Set([0, 1, 2, 3]))).toBeNull()
  })

  test('of which all are delivered says so', () => {
    const whole = decodeReceipt(receiptOf(entries.slice(0, 2)))!
    const after = decodeReceipt(withoutPayloads(whole, new Set([1]))!)!
    expect([after.entries.count, after.settlement(0).outcome]).toEqual([1, 'delivered'])
  })
})
