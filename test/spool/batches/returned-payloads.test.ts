import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { PayloadSettlement } from '../../../src/domain/settlement.ts'
import type { Batch, PendingRun, Spool } from '../../../src/spool/spool.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { flipLastByte, namesIn, openSpoolWorld, reopenTampered, sealAll } from '../../support/open-spool.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { exchangeOf, payloadNamed } from '../../support/spool-world.ts'
import type { SpoolWorld } from '../../support/open-spool.ts'

const all = { payloadsMax: 1000, bytesMax: 1024 ** 2 }
const wide = { payloadsMax: 1000, bodyBytesMax: 1024 ** 2 }
const failure = { payloadId: 'p', errorType: 'Timeout', errorMessage: 'busy', validationErrorDetails: [] }
const retried: PayloadSettlement = { kind: 'retry', schedule: 'Timeout', step: 2, failure }

const laneOf = (spool: Spool, kind = 'live') => spool.lanes().find(({ role }) => role.kind === kind)!
const countsOf = ({ spool }: SpoolWorld) =>
  spool.lanes().map(({ role, appended, settled, open }) => `${role.kind}: ${appended} = ${settled} + ${open}`)
const namesOf = (run: PendingRun | null) =>
  run?.contents.map(({ json }) => /"id":"([^"]+)"/.exec(json.toString())?.[1])

async function publishAll(world: SpoolWorld, ...names: string[]): Promise<void> {
  for (const name of names) await world.publish(name)
}

async function readAll(spool: Spool, lane: LaneId): Promise<PendingRun> {
  const run = await spool.readPending(lane, all)
  if (run === null) throw new Error('there is something to read')
  return run
}

async function rest(spool: Spool): Promise<string[]> {
  const names: string[] = []
  for (const batch of await sealAll(spool)) names.push(...(await namesIn(spool, batch)))
  return names
}

describe('pending payloads', () => {
  test('are read in whole chunks, and until a time of arrival', async () => {
    const world = await openSpoolWorld()
    const { spool, clock } = world
    await publishAll(world, 'a', 'b')
    const at = clock.now()
    await clock.advance(1000)
    await publishAll(world, 'c')
    const { id } = laneOf(spool)
    expect(namesOf(await spool.readPending(id, { ...all, payloadsMax: 1 }))).toEqual(['a'])
    expect(namesOf(await spool.readPending(id, { ...all, committedUntil: at }))).toEqual(['a', 'b'])
    expect(await spool.readPending(99 as LaneId, all)).toBeNull()
  })

  test('end before a chunk that cannot be read', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'a', 'b', 'c')
    const { id } = laneOf(before.spool)
    const { spool } = await reopenTampered(before, seqKey(table.chunks, id, 1), flipLastByte)
    expect(namesOf(await spool.readPending(id, all))).toEqual(['a'])
  })
})

describe('returned payloads', () => {
  test('leave their lane in one write, with their receipt, and are counted', async () => {
    const world = await openSpoolWorld()
    const { spool } = world
    await publishAll(world, 'a', 'b')
    spool.append(payloadNamed('c', { provider: 'other' }))
    await world.publish('d')
    const runs = await Promise.all(spool.lanes().map(({ id }) => readAll(spool, id)))
    const { groups } = spool.totals()
    expect(await spool.returnPending(runs[0]!, Buffer.from('one'))).toBe(true)
    expect(spool.totals()).toMatchObject({ groups: groups + 1, returned: 3 })
    expect(await spool.returnPending(runs[1]!, Buffer.from('two'))).toBe(true)
    expect(spool.totals()).toMatchObject({ groups: groups + 2, returned: 4, delivered: 0, openBytes: 0 })
    expect(countsOf(world)).toEqual(['live: 3 = 3 + 0', 'live: 1 = 1 + 0'])
    expect((await spool.receipts({ limit: 9 })).map(({ value }) => value.toString())).toEqual(['one', 'two'])
    await publishAll(world, 'e')
    expect(laneOf(spool)).toMatchObject({ pending: 1, pendingBytes: payloadNamed('e').json.length })
    const { spool: again, ...after } = await world.reopen()
    expect(await rest(again)).toEqual(['e'])
    expect(countsOf({ ...after, spool: again })).toEqual(['live: 4 = 3 + 1', 'live: 1 = 1 + 0'])
    expect(await again.check(new AbortController().signal)).toMatchObject({ ok: true, problems: [] })
  })

  test('stay where something of their lane was sealed since they were read', async () => {
    const world = await openSpoolWorld()
    const { spool } = world
    await publishAll(world, 'a', 'b', 'c')
    const run = await readAll(spool, laneOf(spool).id)
    await spool.seal(run.lane, { ...wide, payloadsMax: 1 })
    expect(await spool.returnPending(run, null)).toBe(false)
    expect(spool.totals()).toMatchObject({ returned: 0 })
    expect(countsOf(world)).toEqual(['live: 3 = 0 + 3'])
  })

  test('of a tail leave what is before it, when that is sealed', async () => {
    const world = await openSpoolWorld()
    const { spool } = world
    await publishAll(world, 'a', 'b', 'c', 'd')
    const { id } = laneOf(spool)
    const first = await spool.seal(id, { ...wide, untilSeq: 2 })
    expect(first).toMatchObject({ firstSeq: 0, endSeq: 2 })
    expect(await spool.seal(id, { ...wide, untilSeq: 2 })).toBeNull()
    expect(await spool.returnPending(await readAll(spool, id), null)).toBe(true)
    expect(laneOf(spool)).toMatchObject({ pending: 0, pendingBytes: 0, sealed: 2, open: 2 })
    await publishAll(world, 'e')
    const after = await world.reopen()
    expect(await rest(after.spool)).toEqual(['e'])
    expect(await namesIn(after.spool, after.spool.batches()[0] as Batch)).toEqual(['a', 'b'])
  })
})

describe('the numbers of a lane', () => {
  test('say what is settled, sealed and durable', async () => {
    const world = await openSpoolWorld()
    const { spool } = world
    await publishAll(world, 'a', 'b', 'c', 'd')
    const { id } = laneOf(spool)
    const one = await spool.seal(id, { ...wide, payloadsMax: 1 })
    const two = await spool.seal(id, { ...wide, payloadsMax: 1 })
    expect(laneOf(spool)).toMatchObject({ lowSeq: 0, sealSeq: 2, committedSeq: 4 })
    await spool.load(two!)
    await spool.settle(two!, { payloads: 'all delivered', requestId: null })
    expect(laneOf(spool)).toMatchObject({ lowSeq: 0, sealSeq: 2, committedSeq: 4 })
    await spool.load(one!)
    await spool.settle(one!, { payloads: 'all delivered', requestId: null })
    expect(laneOf(spool)).toMatchObject({ lowSeq: 2, sealSeq: 2, committedSeq: 4 })
  })

  test('count nothing as settled before that is durable, when its retry is in its lane, too', async () => {
    const held = createHeldStore()
    const world = await openSpoolWorld({ openStore: held.openStore })
    const { spool } = world
    await publishAll(world, 'a')
    const [batch] = await sealAll(spool)
    await spool.load(batch!)
    held.hold()
    const settled = spool.settle(batch!, { payloads: [retried], requestId: null })
    while (held.waiting() === 0) await world.clock.advance(0)
    expect(laneOf(spool)).toMatchObject({ lowSeq: 0 })
    held.release()
    await settled
    expect(laneOf(spool)).toMatchObject({ lowSeq: 1 })
    expect(laneOf(spool, 'retry')).toMatchObject({ lowSeq: 0, committedSeq: 1 })
  })
})

describe('an exchange', () => {
  test('appends payloads with the attempts that they had', async () => {
    const { spool } = await openSpoolWorld()
    const payloads = [{ ...payloadNamed('a'), attempts: 3 }, payloadNamed('b')]
    await spool.exchange(exchangeOf({ payloads }))
    const [batch] = await sealAll(spool)
    const loaded = await spool.load(batch!)
    expect(loaded.kind === 'content' && loaded.content.attempts()).toEqual([3, 0])
  })
})
