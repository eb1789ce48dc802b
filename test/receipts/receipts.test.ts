import {
  type Arbitrary,
  array,
  assert,
  constant,
  constantFrom,
  integer,
  maxSafeInteger,
  nat,
  oneof,
  option,
  property,
  record,
  string,
  stringMatching,
  tuple,
  uint8Array,
  uuid,
} from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeEntries, hashOfDevice, hashOfId, type Entries } from '../../src/receipts/receipt-entries.ts'
import { mayHold } from '../../src/receipts/bloom-filter.ts'
import {
  decodeReceipt,
  encodeReceipt,
  hashOfKey,
  receiptHead,
  receiptKeys,
} from '../../src/receipts/receipts.ts'
import type { BatchId, LaneId, ProviderName } from '../../src/domain/ids.ts'
import type { PayloadSettlement } from '../../src/domain/settlement.ts'
import { encodeEntries, receiptOf, startAt, uuidNamed } from '../support/ledger-world.ts'

const anyText = string({ unit: 'binary', maxLength: 256 })
const entry = record({
  payloadId: oneof({ weight: 9, arbitrary: uuid() }, { weight: 1, arbitrary: stringMatching(/^[ -~]{36}$/) }),
  deviceTime: oneof(integer({ min: startAt - 1000, max: startAt + 1000 }), maxSafeInteger(), constant(null)),
  device: oneof(anyText, constantFrom('truck-1', 'truck-2'), constant(null)),
})
const entryLists = array(entry, { maxLength: 40 })

const listed = (entries: Entries) => Array.from({ length: entries.count }, (_, index) => entries.at(index))

describe('entries', () => {
  test('are read as they were written, with any names, times and ids', () => {
    assert(
      property(entryLists, (entries) => {
        const decoded = decodeEntries(encodeEntries(entries))
        expect(decoded && listed(decoded)).toEqual(entries)
      }),
    )
  })

  test('find every payload and every device, by the index and by the filter', () => {
    assert(
      property(entryLists, (entries) => {
        const bytes = encodeEntries(entries)
        const decoded = decodeEntries(bytes)
        const filterBytes = new DataView(bytes.buffer).getUint32(28, true)
        for (const [index, { payloadId, device }] of entries.entries()) {
          expect(decoded?.ofPayload(payloadId)).toContain(index)
          expect(mayHold(bytes, 32, filterBytes, hashOfId(payloadId))).toBe(true)
          if (device === null) continue
          expect(decoded?.ofDevice(device)).toContain(index)
          expect(mayHold(bytes, 32, filterBytes, hashOfDevice(device))).toBe(true)
        }
      }),
    )
  })

  test('exclude nearly every device and payload that is not among them', () => {
    const entries = Array.from({ length: 500 }, (_, index) => ({
      payloadId: uuidNamed(`payload ${index}`),
      deviceTime: startAt + index,
      device: `truck-${index}`,
    }))
    const bytes = encodeEntries(entries)
    const filterBytes = new DataView(bytes.buffer).getUint32(28, true)
    let wrong = 0
    for (let other = 0; other < 10_000; other += 1) {
      if (mayHold(bytes, 32, filterBytes, hashOfId(uuidNamed(`other ${other}`)))) wrong += 1
      if (mayHold(bytes, 32, filterBytes, hashOfDevice(`van-${other}`))) wrong += 1
    }
    expect(wrong / 20_000).toBeLessThan(0.04)
  })

  test('cut a name above the bound between two characters, and still find it', () => {
    const device = 'ü'.repeat(5000)
    const decoded = decodeEntries(encodeEntries([{ payloadId: uuidNamed('1'), deviceTime: 1, device }]))
    expect(decoded?.at(0).device).toBe('ü'.repeat(2048))
    expect(decoded?.ofDevice(device)).toEqual([0])
  })

  test('are not read from other bytes', () => {
    assert(
      property(uint8Array({ maxLength: 31 }), (bytes) => {
        expect(decodeEntries(bytes)).toBeNull()
      }),
    )
  })
})

const fate: Arbitrary<PayloadSettlement> = oneof(
  constant({ kind: 'delivered' as const }),
  record({
    kind: constant('retry' as const),
    schedule: anyText,
    step: nat(32),
    failure: record({
      payloadId: uuid(),
      errorType: string({ unit: 'binary', maxLength: 100 }),
      errorMessage: string({ unit: 'binary', maxLength: 100 }),
      validationErrorDetails: constant([]),
    }),
  }),
  record({
    kind: constant('dead' as const),
    reason: string({ unit: 'binary', maxLength: 100 }),
    detail: string({ unit: 'binary', maxLength: 100 }),
    failure: constant(null),
  }),
  record({
    kind: constant('returned' as const),
    reason: string({ unit: 'binary', maxLength: 100 }),
    detail: string({ unit: 'binary', maxLength: 100 }),
  }),
)

const kept = (one: PayloadSettlement) => {
  const nothing = { schedule: null, step: null, reason: null, detail: null }
  if (one.kind === 'delivered') return { outcome: 'delivered', ...nothing }
  if (one.kind !== 'retry') return { outcome: one.kind, ...nothing, reason: one.reason, detail: one.detail }
  const { schedule, step } = one
  const { errorType: reason, errorMessage: detail } = one.failure
  return { outcome: 'retried', schedule, step, reason, detail }
}

describe('a receipt', () => {
  test('holds the batch, the request, the time, and what became of each payload', () => {
    assert(
      property(
        array(tuple(entry, fate), { minLength: 1, maxLength: 40 }),
        anyText,
        uuid(),
        option(anyText),
        nat(2 ** 32 - 1),
        maxSafeInteger(),
        (payloads, provider, batchId, requestId, lane, at) => {
          const entries = payloads.map(([one]) => one)
          const decoded = decodeReceipt(
            encodeReceipt({
              provider: provider as ProviderName,
              lane: lane as LaneId,
              batchId: batchId as BatchId,
              requestId,
              at,
              entries: encodeEntries(entries, receiptKeys),
              settlements: payloads.map(([, one]) => one),
            }),
          )
          expect(decoded).toMatchObject({ provider, lane, batchId, requestId, at })
          expect(decoded && listed(decoded.entries)).toEqual(entries)
          expect(payloads.map((_, index) => decoded?.settlement(index))).toEqual(
            payloads.map(([, one]) => kept(one)),
          )
        },
      ),
    )
  })

  test('says who marked a payload as delivered', () => {
    const note = { reason: 'MARKED_BY_OPERATOR', detail: 'alice marked the batch as delivered.' }
    const value = receiptOf([{ payloadId: uuidNamed('1'), deviceTime: 1, device: 'a' }], {
      fates: [{ kind: 'delivered', note }],
    })
    expect(decodeReceipt(value)?.settlement(0)).toMatchObject({ outcome: 'delivered', ...note })
  })

  test('is found by its batchId and its requestId in upper or lower case', () => {
    const value = receiptOf([{ payloadId: uuidNamed('1'), deviceTime: 1, device: 'a' }], {
      batch: uuidNamed('b'),
      request: 'Request-7',
    })
    const head = receiptHead(value)
    if (head === null) throw new Error('no receipt')
    const may = (id: string) => mayHold(value, head.filterStart, head.entries.filterBytes, hashOfKey(id))
    expect([may(uuidNamed('b').toUpperCase()), may('REQUEST-7')]).toEqual([true, true])
  })

  test('stays small when the service gives each of ten thousand payloads another reason', () => {
    const entries = Array.from({ length: 10_000 }, (_, n) => ({
      payloadId: uuidNamed(`${n}`),
      deviceTime: n,
      device: null,
    }))
    const fates = entries.map(({ payloadId }): PayloadSettlement => ({
      kind: 'dead',
      reason: `Odd-${payloadId}`,
      detail: `${'x'.repeat(150)}${payloadId}`,
      failure: null,
    }))
    const value = receiptOf(entries, { fates })
    expect(value.length / 10_000).toBeLessThan(50)
    expect(decodeReceipt(value)?.settlement(0)).toMatchObject({
      reason: fates[0]?.kind === 'dead' && fates[0].reason,
    })
    expect(decodeReceipt(value)?.settlement(9999)).toMatchObject({ outcome: 'dead', reason: null })
  })

  test('is not read if any byte changed', () => {
    const value = receiptOf([{ payloadId: uuidNamed('1'), deviceTime: startAt, device: 'truck-7' }])
    for (let at = 0; at < value.length; at += 1) {
      const damaged = Buffer.from(value)
      damaged[at] = (damaged[at] ?? 0) ^ 0x40
      expect([receiptHead(damaged), decodeReceipt(damaged)]).toEqual([null, null])
    }
    expect(decodeReceipt(value.subarray(0, 10))).toBeNull()
  })
})
