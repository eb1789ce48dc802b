import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId, PayloadId } from '../../../src/domain/ids.ts'
import type { Envelope } from '../../../src/domain/message.ts'
import {
  deadLetterKey,
  laneKey,
  deadLetterTotalsLane,
  seqKey,
  table,
  tableRange,
} from '../../../src/spool/chunk-log/key-layout.ts'
import { openRestingSpool, openSalvage, type Salvage, type Salvaged } from '../../../src/spool/spool.ts'
import { openLevelStore, type StoreEntry } from '../../../src/storage/storage.ts'
import {
  collect,
  ended,
  flipLastByte,
  openSpoolWorld,
  sealAll,
  type SpoolWorld,
} from '../../support/open-spool.ts'
import { compacted } from '../../support/damaged-spool.ts'
import { checkOf, writeIn } from '../../support/resting-spool.ts'
import { exchangeOf, keptNamed, deadLetterNamed, payloadNamed } from '../../support/spool-world.ts'

const never = new AbortController().signal
const lane1 = 1 as LaneId

/** A spool with something in every table. */
async function filled(payloads = 12): Promise<SpoolWorld> {
  const world = await openSpoolWorld({
    changes: { bytesMax: 256 * 1024 ** 2, quarantineBytesMax: 64 * 1024 ** 2 },
  })
  const { spool, publish } = world
  for (let n = 0; n < payloads; n += 1) await publish(`payload ${n}`, { padding: 200 })
  const { deadLetter } = deadLetterNamed('a letter')
  spool.addDeadLetter(deadLetter)
  const kept = keptNamed('a message')
  spool.keepMessage(kept.message)
  spool.putState('state', Buffer.from('remembered'))
  await ended(spool)
  const [batch] = await sealAll(spool)
  await spool.load(batch!)
  return world
}

async function salvaged(path: string): Promise<Pick<Salvage, 'check' | 'notes'> & { found: Salvaged[] }> {
  const salvage = await openSalvage(path, never)
  const found = await collect(salvage.entries(never))
  await salvage.close()
  return { found, check: salvage.check, notes: salvage.notes }
}

async function chunksOf(path: string): Promise<readonly StoreEntry[]> {
  const store = await openLevelStore(join(path, 'store'))
  const chunks = (await collect(store.pages(tableRange(table.chunks)))).flat()
  await store.close()
  return chunks
}

async function put(path: string, entries: readonly StoreEntry[]): Promise<void> {
  const store = await openLevelStore(join(path, 'store'))
  await store.write(
    entries.map(([key, value]) => ({ type: 'put', key, value })),
    { sync: true },
  )
  await store.close()
}

/** Changes bytes of a file of the database. */
async function damage(path: string, name: string, change: (bytes: Buffer) => Buffer): Promise<void> {
  const file = join(path, 'store', name)
  await writeFile(file, change(await readFile(file)))
}

async function tablesOf(path: string): Promise<string[]> {
  return (await readdir(join(path, 'store'))).filter((name) => name.endsWith('.ldb')).sort()
}

const devicesIn = (found: readonly Salvaged[], suspect = false) =>
  found.flatMap((one) =>
    one.kind === 'payload' && (one.suspect !== null) === suspect
      ? [(JSON.parse(one.json) as { deviceIdentifier: { id: string } }).deviceIdentifier.id]
      : [],
  )

/** The bytes of every file of the database, to show that none was touched. */
async function bytesOf(path: string): Promise<Record<string, string>> {
  const folder = join(path, 'store')
  const entries = (await readdir(folder)).sort().map(async (name) => {
    return [name, (await readFile(join(folder, name))).toString('base64')] as const
  })
  return Object.fromEntries(await Promise.all(entries))
}

describe('a walk over every record', () => {
  test('is right while the spool is filled and settled', async () => {
    const { spool, publish } = await openSpoolWorld({ changes: { bytesMax: 256 * 1024 ** 2 } })
    const publishing = Promise.all(Array.from({ length: 300 }, (_, n) => publish(`payload ${n}`)))
    const checks = [spool.check(never)]
    for (let n = 0; n < 20; n += 1) {
      for (const batch of await sealAll(spool)) {
        await spool.load(batch)
        await spool.settle(batch, { payloads: 'all delivered', requestId: null }, Buffer.from('receipt'))
      }
      checks.push(spool.check(never))
    }
    await publishing
    for (const check of await Promise.all(checks)) expect(check.problems).toEqual([])
  })

  test('says how far it is: bytes of the tables, then records', async () => {
    const { spool, path } = await filled()
    await spool.close()
    // An open turns the log into a table.
    await (await openLevelStore(join(path, 'store'))).close()
    const resting = await openRestingSpool(path)
    const last = { bytes: { done: 0, total: -1 }, records: { done: 0, total: -1 } }
    const check = await resting.check(
      never,
      ({ unit, done, total = 0 }) => void (last[unit] = { done, total }),
    )
    await resting.close()
    expect(last.bytes.total).toBeGreaterThan(0)
    expect(last.bytes.done / last.bytes.total).toBeCloseTo(1, 1)
    const records = check.tables.reduce((sum, table) => sum + table.records, 0)
    expect(last.records.done).toBeGreaterThanOrEqual(records)
    expect(records).toBeGreaterThan(0)
  })

  test.each([
    ['a chunk', seqKey(table.chunks, lane1, 0), /^chunks, record .*checksum/],
    ['a batch', seqKey(table.batches, lane1, 0), /^batches, record .*checksum/],
    ['the record of a lane', laneKey(table.lanes, lane1), /^lanes, record .*checksum/],
    ['the totals of the letters', laneKey(table.totals, deadLetterTotalsLane), /^totals, record .*checksum/],
  ])('finds a flipped bit in %s', async (_, key, problem) => {
    const { spool, path } = await filled()
    await spool.close()
    const store = await openLevelStore(join(path, 'store'))
    const value = await store.get(key)
    await store.write([{ type: 'put', key, value: flipLastByte(value!) }], { sync: true })
    await store.close()
    const check = await checkOf(path)
    expect(check.ok).toBe(false)
    expect(check.problems[0]).toMatch(problem)
  })

  test('finds a missing chunk by the totals, and the batch that claims it', async () => {
    const { spool, path } = await filled()
    await spool.close()
    await writeIn(path, [{ type: 'del', key: seqKey(table.chunks, lane1, 0) }])
    const { problems } = await checkOf(path)
    expect(problems.join('\n')).toMatch(/lane 1 do not hold the whole batch from 0/)
    expect(problems.join('\n')).toMatch(/Lane 1 does not add up: 12 appended, 0 settled, \d+ open/)
  })

  test('names a damaged block of a table, and the payloads that it can have held', async () => {
    const { spool, path } = await filled(2000)
    await spool.close()
    await compacted(path)
    const [name = ''] = await tablesOf(path)
    await damage(path, name, (bytes) => bytes.fill(0, 8192, 12288))
    const check = await checkOf(path)
    expect(check.damage.length).toBeGreaterThan(0)
    expect(check.damage[0]).toMatchObject({ file: name, unit: 'block' })
    expect(check.damage[0]?.records.join()).toMatch(
      /^payloads of lane 1, the chunks that start at numbers \d+ to \d+/,
    )
    expect(check.problems[0]).toMatch(
      /^\d+\.ldb, block at byte \d+ .* cannot be read: its checksum is wrong\. It can/,
    )
    expect(check.problems.join('\n')).toMatch(/^Lane 1: payloads \d+ to \d+ are missing\.$/m)
    const [lane] = check.lanes
    expect(lane!.open).toBeGreaterThan(1500)
    expect(lane!.open).toBeLessThan(2000)
  })

  test('names a table that is missing or cut off', async () => {
    const { spool, path } = await filled(2000)
    await spool.close()
    await compacted(path)
    const [name = ''] = await tablesOf(path)
    await damage(path, name, (bytes) => bytes.subarray(0, bytes.length / 2))
    expect((await checkOf(path)).damage).toMatchObject([{ file: name, unit: 'table' }])
    await rm(join(path, 'store', name))
    const { damage: missing, ok } = await checkOf(path)
    expect(ok).toBe(false)
    expect(missing).toMatchObject([{ file: name, unit: 'table', what: 'the file is missing' }])
    expect(missing[0]?.records.join()).toMatch(/payloads/)
  })

  test('does not walk over damaged tables in a spool in use: LevelDB can end the process on them', async () => {
    const first = await filled(2000)
    await first.spool.close()
    await compacted(first.path)
    const { spool } = await openSpoolWorld({ path: first.path, changes: { bytesMax: 256 * 1024 ** 2 } })
    expect(await spool.check(never)).toMatchObject({ ok: true, damage: [] })
    const [name = ''] = await tablesOf(first.path)
    await damage(first.path, name, (bytes) => bytes.fill(0, 8192, 12288))
    const check = await spool.check(never)
    expect(check).toMatchObject({ ok: false, tables: [], lanes: [{ lane: 1, appended: 2000, open: 2000 }] })
    expect(check.problems[0]).toMatch(/block at byte .* cannot be read/)
    expect(check.problems.at(-1)).toMatch(/were not read and compared/)
  })
})

describe('stored payloads are found', () => {
  test('by their payloadId, in a lane or in a dead letter', async () => {
    const { spool, publish } = await openSpoolWorld()
    await publish('in a lane')
    const dead = payloadNamed('dead')
    const { deadLetter } = deadLetterNamed('letter')
    await spool.exchange(exchangeOf({ deadLetters: [{ ...deadLetter, payloadId: dead.payloadId }] }))
    const found: PayloadId[] = []
    await spool.eachStored({ payload: (id) => void found.push(id), message: null }, never)
    expect(found).toEqual([payloadNamed('in a lane').payloadId, dead.payloadId])
  })

  test('and messages by their content, in a dead letter or on a shelf', async () => {
    const { spool } = await openSpoolWorld()
    const { message } = keptNamed('on a shelf')
    const { deadLetter } = deadLetterNamed('letter')
    const envelope = { ...message.envelope, topic: 'in a dead letter' }
    const deadLetters = [{ ...deadLetter, envelope }]
    await spool.exchange(exchangeOf({ deadLetters, keptMessages: [message] }))
    const found: string[] = []
    const visitor = { payload: () => undefined, message: ({ topic }: Envelope) => void found.push(topic) }
    await spool.eachStored(visitor, never)
    expect(found).toEqual(['in a dead letter', 'on a shelf'])
  })
})

describe('salvage', () => {
  const devices = (count: number) => Array.from({ length: count }, (_, n) => `payload ${n}`)

  test('finds everything in an intact spool, and changes none of its files', async () => {
    const { spool, path } = await filled()
    await spool.close()
    const before = await bytesOf(path)
    const { found, check, notes } = await salvaged(path)
    expect([check.ok, notes]).toEqual([true, []])
    expect(devicesIn(found)).toEqual(devices(12))
    expect(found.filter(({ kind }) => kind !== 'payload')).toMatchObject([
      { kind: 'state', key: 'state' },
      { kind: 'deadLetter', deadLetter: { detail: 'a letter' } },
      { kind: 'message', message: { shelf: 'quarantine:default', envelope: { topic: 'a message' } } },
    ])
    expect(await bytesOf(path)).toEqual(before)
  })

  test('reads a spool on a directory that cannot be written', async () => {
    const { spool, path } = await filled(3)
    await spool.close()
    await rm(join(path, 'store', 'LOCK'))
    const before = await bytesOf(path)
    expect(devicesIn((await salvaged(path)).found)).toEqual(devices(3))
    expect(await bytesOf(path)).toEqual(before)
  })

  test('keeps payloads apart that were settled before and came back', async () => {
    const world = await filled(6)
    const { path } = world
    await world.spool.close()
    const chunks = await chunksOf(path)
    const again = await openSpoolWorld({ path })
    const [batch] = await sealAll(again.spool)
    expect(batch).toBeUndefined()
    for (const one of again.spool.batches()) {
      await again.spool.load(one)
      await again.spool.settle(one, { payloads: 'all delivered', requestId: null }, Buffer.from('receipt'))
    }
    await again.publish('pending')
    await again.spool.close()
    await put(path, chunks)
    const { found, notes } = await salvaged(path)
    const payloads = found.flatMap((one) => (one.kind === 'payload' ? [one] : []))
    expect(devicesIn(payloads.filter(({ isSettled }) => isSettled))).toEqual(devices(6))
    expect(devicesIn(payloads.filter(({ isSettled }) => !isSettled))).toEqual(['pending'])
    expect(notes).toEqual(['6 payloads of lane 1: settled before, in settled-before.ndjson.'])
  })

  test('takes payloads of a batch whose record is lost as pending', async () => {
    const { spool, path, publish } = await openSpoolWorld()
    for (const name of ['a', 'b', 'c', 'd']) await publish(name)
    const limits = { payloadsMax: 2, bodyBytesMax: 1e6 }
    const [first, second] = [await spool.seal(lane1, limits), await spool.seal(lane1, limits)]
    await spool.load(first!)
    await spool.settle(first!, { payloads: 'all delivered', requestId: null }, Buffer.from('receipt'))
    await spool.close()
    await writeIn(path, [{ type: 'del', key: seqKey(table.batches, lane1, second!.firstSeq) }])
    const { found, notes } = await salvaged(path)
    expect(found.filter((one) => one.kind === 'payload' && one.isSettled)).toEqual([])
    expect(devicesIn(found)).toEqual(['c', 'd'])
    expect(notes).toEqual([])
  })

  test('knows the provider of a lane without its record by the high-water mark', async () => {
    const { spool, path } = await filled(3)
    await spool.close()
    await writeIn(path, [{ type: 'del', key: laneKey(table.lanes, lane1) }])
    const { found } = await salvaged(path)
    const providers = found.flatMap((one) => (one.kind === 'payload' ? [one.provider] : []))
    expect(providers).toEqual(['default', 'default', 'default'])
  })

  test('says which payloads belong to a held batch', async () => {
    const { spool, path, publish } = await openSpoolWorld()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await publish(name)
    const limits = { payloadsMax: 2, bodyBytesMax: 1e6 }
    await spool.seal(lane1, { ...limits, payloadsMax: 1 })
    const batch = await spool.seal(lane1, limits)
    const held = { reason: 'repeated', since: 1, requestId: 'r-1', why: 'HTTP 409' } as const
    await spool.setHeld(batch!, held)
    await spool.close()
    const { found } = await salvaged(path)
    const batches = found.flatMap((one) => (one.kind === 'payload' ? [one.batch] : []))
    const known = { batchId: batch?.batchId, reason: 'repeated', requestId: 'r-1' }
    expect(batches).toEqual([null, known, known, null, null])
  })

  test('reports the key of a damaged dead letter', async () => {
    const { spool, path } = await filled(1)
    const [entry] = await collect(spool.deadLetters({ limit: 1 }))
    await spool.close()
    const store = await openLevelStore(join(path, 'store'))
    const key = Buffer.concat([deadLetterKey(0, 0).subarray(0, 1), Buffer.from(entry!.id, 'hex')])
    await store.write([{ type: 'put', key, value: flipLastByte((await store.get(key))!) }], { sync: true })
    await store.close()
    const { found } = await salvaged(path)
    expect(found.filter(({ kind }) => kind === 'deadLetter')).toEqual([])
    expect(found.filter(({ kind }) => kind === 'unreadable')).toMatchObject([{ key: key.toString('hex') }])
  })
})
