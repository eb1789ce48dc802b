// Queries against a ledger of some hundred receipts.

import { describe, expect, test } from 'vitest'
import { openRecordsWorld, receiptNumbered, receiptOf, startAt, uuidNamed } from '../support/ledger-world.ts'

const numbered = (from: number, until: number, payloads = 3) =>
  Array.from({ length: until - from }, (_, index) => receiptNumbered(from + index, payloads))

describe('a ledger query', () => {
  async function threeDays() {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 20_000 })
    const failure = {
      payloadId: '',
      errorType: 'Validation',
      errorMessage: 'no latitude',
      validationErrorDetails: [],
    }
    await world.records.append(numbered(1, 200), startAt)
    const entries = ['truck-7', 'van-1', 'bus-1'].map((device) => ({
      payloadId: uuidNamed(device),
      deviceTime: startAt + 999_000,
      device,
    }))
    const fates = [
      { kind: 'retry' as const, schedule: 'Validation', step: 1, failure },
      { kind: 'dead' as const, reason: 'Validation', detail: 'no latitude', failure },
      { kind: 'delivered' as const },
    ]
    const value = receiptOf(entries, { fates, batch: uuidNamed('odd'), request: 'Odd-Request', at: startAt })
    await world.records.append([{ n: 200, value }], startAt)
    await world.records.append(numbered(201, 400), startAt)
    return world
  }

  test('by device and time finds the requestId of the answer', async () => {
    const world = await threeDays()
    const { entries, next } = await world.ask({ device: 'truck-2', at: String(startAt + 150 * 60_000) })
    expect(entries).toEqual([
      {
        at: startAt + 150 * 60_000 + 30_000,
        payloadId: uuidNamed('150 2'),
        device: 'truck-2',
        deviceTime: startAt + 150 * 60_000 + 2000,
        outcome: 'delivered',
        schedule: null,
        step: null,
        reason: null,
        detail: null,
        provider: 'default',
        lane: 1,
        batchId: uuidNamed('batch 150'),
        requestId: 'request-150',
      },
      expect.objectContaining({ payloadId: uuidNamed('149 2'), requestId: 'request-149' }),
    ])
    expect(next).toBeNull()
  })

  test('by payload, batch and request ignores case', async () => {
    const world = await threeDays()
    const ids = async (params: Record<string, string>) =>
      (await world.ask(params)).entries.map((one) => one.device)
    expect(await ids({ payload: uuidNamed('van-1').toUpperCase() })).toEqual(['van-1'])
    expect(await ids({ batch: uuidNamed('odd').toUpperCase() })).toEqual(['bus-1', 'van-1', 'truck-7'])
    expect(await ids({ request: 'odd-request' })).toEqual(['bus-1', 'van-1', 'truck-7'])
    expect(await ids({ request: 'odd-request', device: 'truck-7' })).toEqual(['truck-7'])
    expect(await ids({ payload: uuidNamed('van-1'), device: 'truck-7' })).toEqual([])
    expect(await ids({ payload: uuidNamed('nothing') })).toEqual([])
    expect(await ids({ device: 'truck-70' })).toEqual([])
  })

  test('by outcome finds retried and dead payloads with their reasons', async () => {
    const world = await threeDays()
    const dead = await world.ask({ outcome: 'dead' })
    expect(dead.entries).toMatchObject([{ device: 'van-1', reason: 'Validation', detail: 'no latitude' }])
    const retried = await world.ask({ outcome: 'retried' })
    expect(retried.entries).toMatchObject([{ device: 'truck-7', schedule: 'Validation', step: 1 }])
    expect((await world.ask({ outcome: 'delivered', limit: '10000' })).entries).toHaveLength(398 * 3 + 1)
  })

  test('by time includes both ends', async () => {
    const world = await threeDays()
    const from = String(startAt + 10 * 60_000)
    const to = String(startAt + 11 * 60_000)
    const { entries } = await world.ask({ from, to })
    expect(entries.map(({ requestId }) => requestId)).toEqual([
      'request-11',
      'request-10',
      'request-10',
      'request-10',
    ])
  })

  test('continues where an answer ended, while entries are added and dropped', async () => {
    const world = await threeDays()
    const first = await world.ask({ device: 'truck-1', limit: '50' })
    expect(first.entries[0]?.requestId).toBe('request-399')
    await world.records.append(numbered(400, 500), startAt)
    await world.records.dropOldest()
    const second = await world.ask({ device: 'truck-1', limit: '50', after: first.next ?? '' })
    expect(second.entries[0]?.requestId).toBe('request-349')
    expect(second.entries).toHaveLength(50)
  })
})
