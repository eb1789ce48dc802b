// spool-steps.ts: what happens to a spool on real LevelDB, and what it must hold then, as the steps of step-cases.ts.
// Batches and runs of pending payloads are named by their index, in the order in which they were sealed or read.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { Held } from '../../src/domain/held.ts'
import type { LaneId } from '../../src/domain/ids.ts'
import type { ShelfName } from '../../src/domain/kept-store.ts'
import { attemptsIn, type PayloadSettlement } from '../../src/domain/settlement.ts'
import {
  formatKey,
  keptKey,
  laneKey,
  numberOf,
  receiptKey,
  receiptTotalsLane,
  seqKey,
  setAsideKey,
  shelfKey,
  stateKey,
  table,
  tableRange,
  windowRecordKey,
} from '../../src/spool/chunk-log/key-layout.ts'
import type { Batch, PendingRun, SealLimits, Spool, SpoolOptions } from '../../src/spool/spool.ts'
import { openExistingStore, openLevelStore, type Store, type StoreOp } from '../../src/storage/storage.ts'
import { eventually } from './eventually.ts'
import {
  addDeadLetters,
  collect,
  deadLettersIn,
  deliverAll,
  ended,
  flipLastByte,
  keptIn,
  namesIn,
  openSpoolWorld,
  reopenTampered,
  rolesIn,
  sealAll,
  statesIn,
  type SpoolWorld,
} from './open-spool.ts'
import { deadLetterNamed, exchangeOf, keptNamed, payloadNamed, provider } from './spool-world.ts'

type One = {
  w: SpoolWorld
  /** While the spool is open. */
  store: Store
  batches: Batch[]
  runs: (PendingRun | null)[]
  /** What `remember` has read. */
  remembered: Map<string, Buffer>
}

/** While nobody has the spool open. A key is flipped as `[number of the chunk, byte, bit]`. */
type AtRest = {
  damage?: string[]
  remove?: string[]
  putBack?: string[]
  flipKeys?: [seq: number, byte: number, bit: number][]
  /** Of the dead letters, in their order. */
  removeLetters?: number[]
  loseMark?: boolean
}
type PayloadText = string | ({ name: string; attempts?: number } & Parameters<typeof payloadNamed>[1])
type KeptText = string | ({ name: string } & Parameters<typeof keptNamed>[1])
type Seal = Partial<SealLimits> & { lane?: number }
/** `retry`: schedule and step. */
type Fate = 'delivered' | { retry: [string, number]; uncounted?: 'no_room' } | { dead: string }
type ExchangeText = {
  take?: string[]
  payloads?: PayloadText[]
  deadLetters?: string[]
  state?: Record<string, string | null>
}

const failure = { payloadId: 'p', errorType: 'T', errorMessage: 'busy', validationErrorDetails: [] }

/** `lateBefore`: the device time below which a payload is late. */
export async function startSpool(
  given: { changes?: Partial<SpoolOptions>; lateBefore?: number } | undefined,
) {
  const { changes = {}, lateBefore = 0 } = given ?? {}
  const isLate = (_provider: string, deviceTime: number) => deviceTime < lateBefore
  const one = { batches: [], runs: [], remembered: new Map() } as unknown as One
  const openStore = async (path: string) => (one.store = await openLevelStore(path))
  one.w = await openSpoolWorld({ changes, isLate, openStore })
  return one
}

function payloadOf(text: PayloadText) {
  const { name, attempts, ...options } = typeof text === 'string' ? { name: text } : text
  return { ...payloadNamed(name, options), ...(attempts !== undefined && { attempts }) }
}

function fateOf(fate: Fate): PayloadSettlement {
  if (fate === 'delivered') return { kind: 'delivered' }
  if ('dead' in fate) return { kind: 'dead', reason: fate.dead, detail: 'no asset', failure }
  const { retry, ...more } = fate
  return { kind: 'retry', schedule: retry[0], step: retry[1], failure, ...more }
}

function exchangeIn({ take = [], payloads = [], deadLetters = [], state = {} }: ExchangeText) {
  return exchangeOf({
    take,
    payloads: payloads.map(payloadOf),
    deadLetters: deadLetters.map((name) => deadLetterNamed(name).deadLetter),
    stateChanges: Object.entries(state).map(([key, text]) => ({
      key,
      value: text === null ? null : Buffer.from(text),
    })),
  })
}

/** A dead letter that is taken is named by its text: `dead letter old`. */
async function withIds({ w }: One, text: ExchangeText): Promise<ExchangeText> {
  const letters = await deadLettersIn(w.spool)
  const idOf = (id: string) =>
    letters.find(({ deadLetter }) => id === `dead letter ${deadLetter.detail}`)?.id ?? id
  return { ...text, take: text.take?.map(idOf) ?? [] }
}

/** Of the spool, which is closed then. */
async function storeOf({ w }: One): Promise<Store> {
  await w.spool.close()
  return openExistingStore(join(w.path, 'store'))
}

/** The record that a fault of the disk changes. */
function keyOf(record: string): Buffer {
  const [kind, name = ''] = record.split(' ')
  if (kind === 'format') return formatKey
  if (kind === 'chunk') return seqKey(table.chunks, 1 as LaneId, Number(name))
  if (kind === 'window') return windowRecordKey(Number(name))
  if (kind === 'receipt') return receiptKey(Number(name))
  if (kind === 'totals') return laneKey(table.totals, 1 as LaneId)
  if (kind === 'batch') return seqKey(table.batches, 1 as LaneId, Number(name))
  if (kind === 'kept') return keptKey('quarantine:default', Number(name))
  if (kind === 'receipts') return laneKey(table.totals, receiptTotalsLane)
  return kind === 'state' ? stateKey(name) : shelfKey(name as ShelfName)
}

async function changeAtRest(one: One, { loseMark = false, ...change }: AtRest): Promise<void> {
  const { damage = [], remove = [], putBack = [], flipKeys = [], removeLetters = [] } = change
  await one.w.spool.close()
  if (loseMark) await rm(join(one.w.path, 'mark'))
  const store = await openLevelStore(join(one.w.path, 'store'))
  const ops: StoreOp[] = remove.map((record) => ({ type: 'del', key: keyOf(record) }))
  for (const record of damage)
    ops.push({ type: 'put', key: keyOf(record), value: flipLastByte((await store.get(keyOf(record)))!) })
  for (const record of putBack)
    ops.push({ type: 'put', key: keyOf(record), value: one.remembered.get(record)! })
  for (const [seq, byte, bit] of flipKeys) {
    const key = keyOf(`chunk ${seq}`)
    const flipped = Buffer.from(key)
    flipped[byte]! ^= bit
    ops.push({ type: 'del', key }, { type: 'put', key: flipped, value: (await store.get(key))! })
  }
  const letters = await collect(store.pages(tableRange(table.deadLetters)))
  for (const [index, [key]] of letters.flat().entries())
    if (removeLetters.includes(index)) ops.push({ type: 'del', key })
  await store.write(ops, { sync: true })
  await store.close()
  one.w = await one.w.reopen()
}

/** As delivery does: a lane without pending payloads is not sealed. */
async function deliverPending(spool: Spool): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const pending = spool.lanes().find((view) => view.pending > 0)
    if (pending !== undefined) await spool.seal(pending.id, { payloadsMax: 1, bodyBytesMax: 1e9 })
    const [batch] = spool.batches()
    if (batch === undefined && pending === undefined) return names
    if (batch === undefined) continue
    const loaded = await spool.load(batch)
    if (loaded.kind !== 'content') continue
    names.push(...(await namesIn(spool, batch)))
    await spool.settle(batch, { payloads: 'all delivered', requestId: null })
  }
}

export const spoolWords = {
  /** A message of each. */
  publish: async ({ w }: One, payloads: PayloadText[]) => {
    for (const one of payloads) {
      w.spool.append(payloadOf(one))
      expect(await ended(w.spool)).toBeNull()
    }
  },
  /** One message of all. */
  message: async ({ w }: One, payloads: PayloadText[]) => {
    for (const one of payloads) w.spool.append(payloadOf(one))
    expect(await ended(w.spool)).toBeNull()
  },
  /** With a padding of so many bytes; `{n}` counts up. */
  publishMany: async (
    { w }: One,
    { name, times, padding = 0 }: { name: string; times: number; padding?: number },
  ) => {
    for (let n = 0; n < times; n += 1)
      expect(await w.publish(name.replace('{n}', `${n}`), { padding })).toBeNull()
  },
  append: ({ w }: One, results: Record<string, string>) => {
    for (const [name, result] of Object.entries(results))
      expect([name, w.spool.append(payloadNamed(name))]).toEqual([name, result])
  },
  keep: async ({ w }: One, messages: KeptText[]) => {
    for (const one of messages) {
      const { name, ...options } = typeof one === 'string' ? { name: one } : one
      w.spool.keepMessage(keptNamed(name, options).message)
      expect(await ended(w.spool)).toBeNull()
    }
  },
  addDeadLetters: ({ w }: One, names: string[]) => addDeadLetters(w.spool, names),
  putState: async ({ w }: One, state: Record<string, string>) => {
    for (const [key, text] of Object.entries(state)) w.spool.putState(key, Buffer.from(text))
    await ended(w.spool)
  },
  note: async ({ w }: One, texts: string[]) => {
    for (const text of texts) w.spool.note(Buffer.from(text))
    await ended(w.spool)
  },
  exchange: async (one: One, exchange: ExchangeText) =>
    one.w.spool.exchange(exchangeIn(await withIds(one, exchange))),
  /** Each is asked for before the one before it has ended; `fails`: with this code. */
  atOnce: async ({ w }: One, calls: (ExchangeText & { fails?: string; put?: Record<string, string> })[]) => {
    const results = calls.map(async ({ fails, put, ...exchange }) => {
      if (put !== undefined) {
        for (const [key, text] of Object.entries(put)) w.spool.putState(key, Buffer.from(text))
        return ended(w.spool)
      }
      const exchanged = w.spool.exchange(exchangeIn(exchange))
      return fails === undefined ? exchanged : expect(exchanged).rejects.toMatchObject({ code: fails })
    })
    await Promise.all(results)
  },
  exchangeFails: ({ w }: One, [code, exchange]: [string, ExchangeText]) =>
    expect(w.spool.exchange(exchangeIn(exchange))).rejects.toMatchObject({ code }),
  seal: async (one: One, { lane = 1, ...limits }: Seal) => {
    const batch = await one.w.spool.seal(lane as LaneId, { payloadsMax: 1000, bodyBytesMax: 1e6, ...limits })
    expect(batch).not.toBeNull()
    one.batches.push(batch!)
  },
  /** Names of the batches of the first lane with these limits. */
  sealsAs: async ({ w }: One, { names, ...limits }: Seal & { names: string[] }) => {
    const found: string[] = []
    for (;;) {
      const all = { payloadsMax: 1000, bodyBytesMax: 1e6, ...limits }
      const batch = await w.spool.seal(w.spool.lanes()[0]!.id, all)
      if (batch === null) break
      found.push((await namesIn(w.spool, batch)).join(' '))
    }
    expect(found).toEqual(names)
  },
  sealsNothing: async ({ w }: One, { lane = 1, ...limits }: Seal) =>
    expect(
      await w.spool.seal(lane as LaneId, { payloadsMax: 1000, bodyBytesMax: 1e6, ...limits }),
    ).toBeNull(),
  sealAll: async (one: One) => void one.batches.push(...(await sealAll(one.w.spool))),
  load: ({ w, batches }: One, index: number) => w.spool.load(batches.at(index)!),
  settle: async (one: One, settled: [number, Fate[] | 'all delivered', string?]) => {
    await one.w.spool.load(one.batches.at(settled[0])!)
    await spoolWords.settleLoaded(one, settled)
  },
  settleLoaded: async (
    { w, batches }: One,
    [index, fates, receipt]: [number, Fate[] | 'all delivered', string?],
  ): Promise<void> => {
    const batch = batches.at(index)!
    const payloads = fates === 'all delivered' ? fates : fates.map(fateOf)
    await w.spool.settle(
      batch,
      { payloads, requestId: 'r' },
      receipt === undefined ? undefined : Buffer.from(receipt),
    )
  },
  hold: async (one: One, [index, held]: [number, Held | null]) => {
    const batch = await one.w.spool.setHeld(one.batches.at(index)!, held)
    one.batches[index] = batch
  },
  reseal: async (one: One, [index, parts]: [number, number[]]) => {
    const before = one.batches
    const made = await one.w.spool.reseal(one.w.spool.batches()[index]!, parts)
    expect(made.filter((batch) => before.some(({ batchId }) => batchId === batch.batchId))).toEqual([])
    one.batches = [...made]
  },
  read: async (
    one: One,
    { lane = 1, ...limits }: { lane?: number; payloadsMax?: number; afterMs?: number },
  ) => {
    const { afterMs, ...more } = limits
    const until = afterMs === undefined ? {} : { committedUntil: one.w.clock.now() - afterMs }
    const all = { payloadsMax: 1000, bytesMax: 1024 ** 2, ...more, ...until }
    one.runs.push(await one.w.spool.readPending(lane as LaneId, all))
  },
  /** What the last read gave. */
  readNames: ({ runs }: One, names: string[] | null) =>
    expect(
      runs.at(-1)?.contents.map(({ json }) => /"id":"([^"]+)"/.exec(json.toString())?.[1]) ?? null,
    ).toEqual(names),
  returnRun: async ({ w, runs }: One, [index, returned, receipt]: [number, boolean, string?]) =>
    expect(
      await w.spool.returnPending(runs[index]!, receipt === undefined ? null : Buffer.from(receipt)),
    ).toBe(returned),
  rotate: async ({ w }: One, rotated: boolean) =>
    expect(await w.spool.rotate(provider('default'))).toBe(rotated),
  forgetReceipts: ({ w }: One, until: number) => w.spool.forgetReceipts(until),
  pass: ({ w }: One, ms: number) => w.clock.advance(ms),
  reopen: async (one: One) => void (one.w = await one.w.reopen()),
  /** A bit of the record flips while nobody has the spool open. */
  damage: async (one: One, record: string) =>
    void (one.w = await reopenTampered(one.w, keyOf(record), flipLastByte)),
  atRest: changeAtRest,
  /** A record of the closed spool as it is now, for `putBack`. */
  remember: async (one: One, record: string) => {
    const store = await storeOf(one)
    one.remembered.set(record, (await store.get(keyOf(record)))!)
    await store.close()
    one.w = await one.w.reopen()
  },
  /** The audit reads the disk and rests between, and reports no end: so the disk gets time, too. */
  audited: async ({ w }: One) => {
    for (let n = 0; n < 20; n += 1) {
      await w.clock.advance(100)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  },
  /** While the spool is open. */
  damageNow: async ({ store }: One, record: string) => {
    const value = await store.get(keyOf(record))
    await store.write([{ type: 'put', key: keyOf(record), value: flipLastByte(value!) }], { sync: true })
  },
  /** What was set aside is there, and there are so many records of the table. Nobody has the spool open then. */
  setAside: async (one: One, record: string) => {
    const store = await storeOf(one)
    const [kind, name] = record.split(' ')
    const key =
      kind === 'damaged' ? seqKey(table.damaged, 1 as LaneId, Number(name)) : setAsideKey(keyOf(record))
    expect(await store.get(key)).toBeDefined()
    await store.close()
    one.w = await one.w.reopen()
  },
  windowRecords: async (one: One, numbers: number[]) => {
    const found: number[] = []
    const store = await storeOf(one)
    for await (const page of store.pages(tableRange(table.windowKeys)))
      for (const [key] of page) found.push(numberOf(key))
    await store.close()
    expect(found).toEqual(numbers)
  },
  loseMark: async (one: One) => {
    await one.w.spool.close()
    await rm(join(one.w.path, 'mark'))
  },
  roles: async ({ w }: One, expected: string[]) => expect(await rolesIn(w.spool)).toEqual(expected),
  lanes: ({ w }: One, expected: object[]) => expect(w.spool.lanes()).toMatchObject(expected),
  totals: ({ w }: One, expected: object) => expect(w.spool.totals()).toMatchObject(expected),
  batches: ({ w }: One, expected: object[]) => expect(w.spool.batches()).toMatchObject(expected),
  /** Those sealed last are still the batches of the spool, under their batchIds. */
  sameBatches: ({ w, batches }: One) =>
    expect(w.spool.batches().map(({ batchId }) => batchId)).toEqual(batches.map(({ batchId }) => batchId)),
  /** In each batch of the spool. */
  names: async ({ w }: One, expected: string[][]) => {
    const found: string[][] = []
    for (const batch of w.spool.batches()) found.push(await namesIn(w.spool, batch))
    expect(found).toEqual(expected)
  },
  /** None of those sealed last is a batch of the spool any more. */
  otherBatches: ({ w, batches }: One) => {
    const ids = new Set(batches.map(({ batchId }) => batchId))
    expect(w.spool.batches().filter(({ batchId }) => ids.has(batchId))).toEqual([])
  },
  loadReplaced: async ({ w }: One, index: number) =>
    expect((await w.spool.load(w.spool.batches()[index]!)).kind).toBe('replaced'),
  attempts: async ({ w, batches }: One, [index, expected]: [number, number[]]) => {
    const loaded = await w.spool.load(batches.at(index)!)
    expect(loaded.kind === 'content' && loaded.content.attempts()).toEqual(expected)
  },
  /** The lane of the batch, and its attempts by schedule. */
  role: ({ batches }: One, [index, role, attempts]: [number, object, object]) => {
    const batch = batches.at(index)!
    expect(batch.role).toMatchObject(role)
    expect(Object.fromEntries(attemptsIn(batch.role))).toEqual(attempts)
  },
  lanesAtMost: ({ w }: One, most: number) => expect(w.spool.lanes().length).toBeLessThanOrEqual(most),
  firstLane: ({ w }: One, expected: object) => expect(w.spool.lanes()[0]).toMatchObject(expected),
  lastLane: ({ w }: One, expected: object) => expect(w.spool.lanes().at(-1)).toMatchObject(expected),
  /** The next number of the first lane. */
  farBeyond: ({ w }: One, number: number) => expect(w.spool.lanes()[0]!.appended).toBeGreaterThan(number),
  deliver: async ({ w }: One, expected: string[]) => expect(await deliverAll(w.spool)).toEqual(expected),
  deliverPending: async ({ w }: One, expected: string[]) =>
    expect(await deliverPending(w.spool)).toEqual(expected),
  /** Nothing is open, and the head of each lane is behind all gaps: else the lane would never be deleted. */
  nothingLeft: ({ w }: One) => {
    expect(w.spool.totals()).toMatchObject({ openBytes: 0 })
    for (const view of w.spool.lanes()) {
      expect(view).toMatchObject({ pending: 0, pendingBytes: 0, sealed: 0, sealedBytes: 0, open: 0 })
      expect([view.sealSeq, view.settled]).toEqual([view.committedSeq, view.appended])
    }
  },
  /** Nobody has the spool open then. */
  noChunks: async (one: One) => {
    const store = await storeOf(one)
    expect((await collect(store.pages(tableRange(table.chunks)))).flat()).toEqual([])
    await store.close()
  },
  isDamaged: ({ w }: One, payloads: number) => eventually(() => w.spool.totals().damaged === payloads),
  /** Payloads in all events of these kinds. */
  reported: ({ w }: One, [payloads, ...kinds]: [number, 'chunk_damaged', 'writes_missing'?]) => {
    const events = kinds.flatMap((kind) => w.eventsOf(kind!))
    expect(events.reduce((sum, event) => sum + event.payloads, 0)).toBe(payloads)
  },
  deliverAll: ({ w }: One) => deliverAll(w.spool),
  kept: async ({ w }: One, expected: Record<string, string[]>) => {
    for (const [place, names] of Object.entries(expected)) {
      const [shelf, device = null] = place.split(' of ')
      expect([place, await keptIn(w.spool, shelf as ShelfName, device)]).toEqual([place, names])
    }
  },
  keptWhole: async ({ w }: One, [id, { name, ...options }]: [string, Exclude<KeptText, string>]) => {
    const [shelf] = id.split('#')
    const entries = await collect(w.spool.keptMessages(shelf as ShelfName, null, { limit: 1 }))
    expect(entries).toEqual([{ id, keptAt: w.clock.now(), message: keptNamed(name, options).message }])
  },
  noSuchId: async ({ w }: One, id: string) => {
    const [shelf] = id.split('#')
    const entries = await collect(w.spool.keptMessages(shelf as ShelfName, null, { limit: 100 }))
    expect(entries.map((one) => one.id)).not.toContain(id)
  },
  shelves: ({ w }: One, expected: object[]) => expect(w.spool.shelves()).toMatchObject(expected),
  keptIds: async ({ w }: One, [shelf, ids]: [ShelfName, string[]]) =>
    expect((await collect(w.spool.keptMessages(shelf, null, { limit: 100 }))).map(({ id }) => id)).toEqual(
      ids,
    ),
  deadLetters: async ({ w }: One, details: string[]) =>
    expect((await deadLettersIn(w.spool)).map(({ deadLetter }) => deadLetter.detail)).toEqual(details),
  state: async ({ w }: One, expected: object) => expect(await statesIn(w.spool)).toEqual(expected),
  journal: async ({ w }: One, expected: string[]) =>
    expect((await collect(w.spool.journal())).map(({ entries }) => entries.toString())).toEqual(expected),
  receipts: async ({ w }: One, expected: [number, string][]) =>
    expect((await w.spool.receipts({ limit: 100 })).map(({ n, value }) => [n, value.toString()])).toEqual(
      expected,
    ),
  events: ({ w }: One, expected: Partial<Record<GatewayEvent['kind'], object[]>>) => {
    for (const [kind, of] of Object.entries(expected))
      expect(w.eventsOf(kind as GatewayEvent['kind']), kind).toMatchObject(of)
  },
  check: async ({ w }: One) =>
    expect(await w.spool.check(new AbortController().signal)).toMatchObject({ ok: true, problems: [] }),
}
