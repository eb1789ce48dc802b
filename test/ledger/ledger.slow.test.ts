// The ledger over a real spool and real records: copying, limits, failures.

import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { encodeReceipt, receiptKeys } from '../../src/receipts/receipts.ts'
import type { State } from '../../src/domain/condition-state.ts'
import {
  createLedger,
  createRecords,
  type Ledger,
  type LedgerOptions,
  type LedgerQuery,
} from '../../src/ledger/ledger.ts'
import { recordsPath } from '../../src/ledger/records-supervisor.ts'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { openLevelStore, type OpenStore } from '../../src/storage/storage.ts'
import { encodeEntries, startAt } from '../support/ledger-world.ts'
import { openSpoolWorld, type SpoolWorld } from '../support/open-spool.ts'
import { payloadNamed } from '../support/spool-world.ts'

const day = 86_400_000

type LedgerWorld = {
  ledger: Ledger
  events: GatewayEvent[]
  states(): State[]
  /** payloadIds of an answer, newest first. */
  ids(query?: Partial<LedgerQuery>): Promise<string[]>
}

/** A ledger that copies receipts only before a query, unless the test sets `followEveryMs`. */
function openLedger(
  { spool, path }: SpoolWorld,
  options: Partial<LedgerOptions> & {
    openStore?: OpenStore
    clock?: Clock
    offsetMs?: () => number | null
  } = {},
): LedgerWorld {
  const { openStore = openLevelStore, clock = systemClock, offsetMs = () => 0, ...changes } = options
  const events: GatewayEvent[] = []
  const deps = { clock, emit: (event: GatewayEvent) => void events.push(event), openStore }
  const ledgerOptions = {
    path,
    retentionMs: 7 * day,
    bytesMax: 1024 ** 3,
    followEveryMs: 3_600_000,
    sliceReceipts: 4,
    sliceRestMs: 0,
    reopen: { firstMs: 0, mostMs: 0 },
    ...changes,
  }
  const records = createRecords(deps, ledgerOptions)
  const made = createLedger({ ...deps, records, source: spool, clockOffsetMs: offsetMs }, ledgerOptions)
  const ledger: Ledger = {
    ...made,
    async stop(deadline) {
      await made.stop(deadline)
      await records.close()
    },
  }
  onTestFinished(() => ledger.stop(AbortSignal.abort()))
  return {
    ledger,
    events,
    states: () => [...records.states()],
    async ids(query = {}) {
      const reply = await ledger.query({ limit: 10_000, ...query }, new AbortController().signal)
      if (reply.kind !== 'answer') throw new Error(JSON.stringify(reply))
      return reply.answer.entries.map(({ payloadId }) => payloadId)
    },
  }
}

/** Settles one payload of `name` as delivered, with its receipt. */
async function settle({ spool, publish }: SpoolWorld, name: string, at = startAt): Promise<string> {
  await publish(name)
  const lane = spool.lanes().find(({ role, pending }) => role.kind === 'live' && pending > 0)
  const batch = lane && (await spool.seal(lane.id, { payloadsMax: 100, bodyBytesMax: 1e6 }))
  if (!batch) throw new Error('nothing to seal')
  await spool.load(batch)
  const { payloadId } = payloadNamed(name)
  const entries = encodeEntries([{ payloadId, deviceTime: at, device: name }], receiptKeys)
  const { provider, lane: laneId, batchId } = batch
  const settlement = { payloads: 'all delivered' as const, requestId: `request of ${name}` }
  const { requestId, payloads: fates } = settlement
  const receipt = encodeReceipt({
    provider,
    lane: laneId,
    batchId,
    requestId,
    at,
    entries,
    settlements: fates,
  })
  await spool.settle(batch, settlement, receipt)
  return payloadId
}

describe('the ledger', () => {
  test('lists recently settled payloads, and the spool keeps no receipt of them', async () => {
    const world = await openSpoolWorld()
    const { ledger, ids } = openLedger(world)
    const settled: string[] = []
    for (let n = 0; n < 10; n += 1) settled.unshift(await settle(world, `truck-${n}`))
    expect(ledger.view()).toMatchObject({ open: false, records: 0, behind: 10 })
    expect(await ids()).toEqual(settled)
    expect(await ids({ device: 'truck-7' })).toEqual([settled[2]])
    expect(ledger.view()).toMatchObject({ open: true, records: 10, behind: 0, behindBytes: 0 })
    expect(await world.spool.receipts({ limit: 10 })).toEqual([])
  })

  test('copies the remaining receipts when it stops, and those left after a restart', async () => {
    const world = await openSpoolWorld()
    const first = openLedger(world)
    const a = await settle(world, 'a')
    await first.ledger.stop(new AbortController().signal)
    expect(await world.spool.receipts({ limit: 10 })).toEqual([])
    const second = openLedger(world)
    const b = await settle(world, 'b')
    await second.ledger.stop(AbortSignal.abort())
    const reopened = await world.reopen()
    expect(reopened.spool.totals().receipts).toBe(1)
    expect(await openLedger(reopened).ids()).toEqual([b, a])
  })

  test('refuses a fifth query at once', async () => {
    const { ledger } = openLedger(await openSpoolWorld())
    const { signal } = new AbortController()
    const replies = await Promise.all(Array.from({ length: 6 }, () => ledger.query({ limit: 100 }, signal)))
    expect(replies.map(({ kind }) => kind).sort()).toEqual([
      ...Array<string>(4).fill('answer'),
      ...Array<string>(2).fill('unavailable'),
    ])
  })
})

describe('old and excess entries', () => {
  test('are dropped and counted at max_bytes, oldest first', async () => {
    const world = await openSpoolWorld()
    const { ledger, ids } = openLedger(world, { bytesMax: 20_000 })
    const settled: string[] = []
    for (let n = 0; n < 120; n += 1) settled.unshift(await settle(world, `truck-${n}`))
    const listed = await ids()
    const { records, bytes, dropped, expired } = ledger.view()
    expect(bytes).toBeLessThanOrEqual(20_000)
    expect(bytes).toBeGreaterThan(15_000)
    expect(listed).toEqual(settled.slice(0, records))
    expect([dropped, expired]).toEqual([120 - records, 0])
  })

  test('expire by retention only while the time is known', async () => {
    const world = await openSpoolWorld()
    const { clock } = world
    let offsetMs: number | null = null
    const { ledger, ids } = openLedger(world, { clock, retentionMs: 7 * day, offsetMs: () => offsetMs })
    const a = await settle(world, 'a')
    expect(await ids()).toEqual([a])
    await clock.advance(8 * day)
    const b = await settle(world, 'b')
    expect(await ids()).toEqual([b, a])
    offsetMs = 0
    await ids()
    // An index block expires with its newest entry.
    expect(ledger.view()).toMatchObject({ expired: 0 })
    await clock.advance(8 * day)
    await ids()
    expect(await ids()).toEqual([])
    expect(ledger.view()).toMatchObject({ expired: 2, dropped: 0, records: 0 })
  })

  test('stay after a jump of the clock until the service has answered again', async () => {
    const world = await openSpoolWorld()
    let ahead = 0
    let offsetMs = 10
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + ahead }
    const { ids } = openLedger(world, { clock, offsetMs: () => offsetMs })
    const a = await settle(world, 'a')
    await ids()
    ahead = 365 * day
    expect(await ids()).toEqual([a])
    expect(await ids()).toEqual([a])
    // An answer of the service: our clock is wrong.
    offsetMs = -365 * day
    const b = await settle(world, 'b')
    expect(await ids()).toEqual([b, a])
    ahead = -365 * day
    const c = await settle(world, 'c', 0)
    expect(await ids()).toEqual([c, b, a])
  })
})

describe('records that cannot be used', () => {
  test.each(['CURRENT', 'the manifest', 'the last block'])(
    'damaged in %s are set aside, and new ones are created',
    async (part) => {
      const world = await openSpoolWorld()
      const first = openLedger(world)
      await settle(world, 'a')
      await first.ids()
      await first.ledger.stop(AbortSignal.abort())
      const path = recordsPath(world.path)
      if (part === 'the last block') {
        const store = await openLevelStore(path)
        for await (const page of store.pages({ gte: Buffer.from([0x10]), lt: Buffer.from([0x11]) }))
          for (const [key] of page) await store.write([{ type: 'put', key, value: key }], { sync: false })
        await store.close()
      } else {
        const manifest = readdirSync(path).find((name) => name.startsWith('MANIFEST')) ?? ''
        writeFileSync(join(path, part === 'CURRENT' ? part : manifest), 'garbage')
      }
      const b = await settle(world, 'b')
      const second = openLedger(world)
      await second.ids().catch(() => undefined)
      expect(second.events.map(({ kind }) => kind)).toContain('ledger_set_aside')
      expect(existsSync(`${path}.damaged`)).toBe(true)
      expect(await second.ids()).toEqual([b])
    },
  )

  test('locked by another process are reported, tried again, and miss nothing afterwards', async () => {
    const world = await openSpoolWorld()
    const a = await settle(world, 'a')
    const other = await openLevelStore(recordsPath(world.path))
    const { ledger, events, ids, states } = openLedger(world)
    await expect(ids()).rejects.toThrow(/not open/)
    expect(states()).toMatchObject([{ code: 'LEDGER_UNAVAILABLE', fault: { code: 'LEDGER_LOCKED' } }])
    expect(ledger.view()).toMatchObject({ open: false, behind: 1 })
    await other.close()
    expect(await ids()).toEqual([a])
    expect(events.at(-1)).toMatchObject({ kind: 'ledger_opened' })
    expect(states()).toEqual([])
  })

  test('are reopened after a failed write, and nothing is missing or listed twice', async () => {
    const world = await openSpoolWorld()
    let failures = 0
    const openStore: OpenStore = async (path, options) => {
      const store = await openLevelStore(path, options)
      let writes = 0
      return {
        ...store,
        async write(ops, how) {
          writes += 1
          if (writes !== 3 || failures === 2) return store.write(ops, how)
          failures += 1
          // Once before the bytes are there, and once after.
          if (failures === 2) await store.write(ops, how)
          throw Object.assign(new Error('IO error: No space left on device'), { code: 'ENOSPC' })
        },
      }
    }
    const { ids } = openLedger(world, { openStore })
    const settled: string[] = []
    for (let n = 0; n < 30; n += 1) settled.unshift(await settle(world, `truck-${n}`))
    for (let round = 0; round < 3; round += 1) await ids().catch(() => undefined)
    expect(await ids()).toEqual(settled)
    expect(failures).toBe(2)
  })

  test('do not delay delivery: receipts wait in the spool up to a limit', async () => {
    const world = await openSpoolWorld({ changes: { receiptBytesMax: 1000 } })
    const openStore: OpenStore = () => Promise.reject(new Error('no such disk'))
    const { ledger, states, ids } = openLedger(world, { openStore })
    for (let n = 0; n < 10; n += 1) await settle(world, `truck-${n}`)
    await expect(ids()).rejects.toThrow()
    expect(states()).toMatchObject([{ code: 'LEDGER_UNAVAILABLE', fault: { code: 'LEDGER_UNUSABLE' } }])
    const { behind, missed } = ledger.view()
    expect(behind + missed).toBe(10)
    expect(missed).toBeGreaterThan(0)
    expect(world.spool.totals().delivered).toBe(10)
  })

  test('report and count a damaged receipt', async () => {
    const world = await openSpoolWorld()
    await world.publish('a')
    const [lane] = world.spool.lanes()
    const batch = lane && (await world.spool.seal(lane.id, { payloadsMax: 100, bodyBytesMax: 1e6 }))
    if (!batch) throw new Error('nothing to seal')
    await world.spool.load(batch)
    await world.spool.settle(batch, { payloads: 'all delivered', requestId: null }, Buffer.from('no receipt'))
    const b = await settle(world, 'b')
    const { ledger, events, ids } = openLedger(world)
    expect(await ids()).toEqual([b])
    expect(events).toContainEqual({ kind: 'ledger_receipts_damaged', receipts: 1 })
    expect(ledger.view()).toMatchObject({ damaged: 1, behind: 0 })
  })
})

describe('the delivered payloads for an import', () => {
  const never = new AbortController().signal
  const everything = { from: -Infinity, to: Infinity }

  test('are those of every delivery until now, also of receipts that are not copied yet', async () => {
    const world = await openSpoolWorld()
    const { ledger } = openLedger(world)
    const settled: string[] = []
    for (let n = 0; n < 10; n += 1) settled.unshift(await settle(world, `truck-${n}`))
    const found: string[] = []
    const asked = await ledger.visitDelivered(everything, (id) => void found.push(id), never)
    expect(asked).toEqual({ kind: 'asked', since: startAt })
    expect(found).toEqual(settled)
  })

  test('are read only where device times meet the range', async () => {
    const world = await openSpoolWorld()
    const { ledger } = openLedger(world)
    for (let n = 0; n < 5; n += 1) await settle(world, `truck-${n}`, startAt + n * 1000)
    const found: string[] = []
    const range = { from: startAt + 1000, to: startAt + 2500 }
    await ledger.visitDelivered(range, (id) => void found.push(id), never)
    expect(found).toEqual([payloadNamed('truck-2').payloadId, payloadNamed('truck-1').payloadId])
  })

  test('are not available while receipts cannot be copied', async () => {
    const world = await openSpoolWorld()
    await settle(world, 'a')
    const { ledger } = openLedger(world, { openStore: () => Promise.reject(new Error('the disk is gone')) })
    expect(await ledger.visitDelivered(everything, () => undefined, never)).toMatchObject({
      kind: 'unavailable',
    })
  })

  test('are not available after an interruption', async () => {
    const world = await openSpoolWorld()
    await settle(world, 'a')
    const { ledger } = openLedger(world)
    expect(await ledger.visitDelivered(everything, () => undefined, AbortSignal.abort())).toMatchObject({
      kind: 'unavailable',
    })
  })
})
