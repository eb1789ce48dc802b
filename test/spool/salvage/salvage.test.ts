import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LaneId, PayloadId } from '../../../src/domain/ids.ts'
import type { Envelope } from '../../../src/domain/message.ts'
import {
  deadLetterKey,
  laneKey,
  deadLetterTotalsLane,
  seqKey,
  table,
} from '../../../src/spool/chunk-log/key-layout.ts'
import { openRestingSpool, openSalvage, type Salvage, type Salvaged } from '../../../src/spool/spool.ts'
import { openExistingStore, openLevelStore } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import {
  collect,
  ended,
  flipLastByte,
  openSpoolWorld,
  reopenTampered,
  sealAll,
  type SpoolWorld,
} from '../../support/open-spool.ts'
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

async function salvaged(path: string): Promise<Pick<Salvage, 'steps' | 'problems'> & { found: Salvaged[] }> {
  const salvage = await openSalvage(path, join(await newFolder(), 'work'))
  const found = await collect(salvage.entries(never))
  await salvage.close()
  return { found, steps: salvage.steps, problems: salvage.problems }
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

/** Writes everything to tables: what is in LevelDB's log is lost without a trace where the log is damaged. */
async function compacted(path: string): Promise<void> {
  const store = await openLevelStore(join(path, 'store'))
  await store.compact({ gte: Buffer.from([0]), lt: Buffer.from([255]) })
  await store.close()
}

describe('a walk over every record', () => {
  test('finds no problem in a spool in use, and lists its content', async () => {
    const { spool } = await filled()
    const check = await spool.check(never)
    expect(check).toMatchObject({ ok: true, problems: [] })
    const records = Object.fromEntries(check.tables.map(({ table, records }) => [table, records]))
    expect(records).toMatchObject({ format: 1, lanes: 1, batches: 1, 'dead letters': 1, 'kept messages': 1 })
    expect(check.lanes).toMatchObject([{ lane: 1, provider: 'default', appended: 12, settled: 0, open: 12 }])
    expect(check.shelves).toMatchObject([{ shelf: 'quarantine:default', kept: 1, messages: 1 }])
  })

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

  test('finds no problem in a spool at rest, and changes no record', async () => {
    const { spool, path } = await filled()
    await spool.close()
    const resting = await openRestingSpool(path)
    expect(await resting.check(never)).toMatchObject({ ok: true, problems: [] })
    expect(await collect(resting.deadLetters({ limit: 10 }))).toMatchObject([
      { deadLetter: { detail: 'a letter' } },
    ])
    await resting.close()
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
    const resting = await openRestingSpool(path)
    const check = await resting.check(never)
    await resting.close()
    expect(check.ok).toBe(false)
    expect(check.problems[0]).toMatch(problem)
  })

  test('finds a missing chunk by the totals, and the batch that claims it', async () => {
    const { spool, path } = await filled()
    await spool.close()
    const store = await openLevelStore(join(path, 'store'))
    await store.write([{ type: 'del', key: seqKey(table.chunks, lane1, 0) }], { sync: true })
    await store.close()
    const resting = await openRestingSpool(path)
    const { problems } = await resting.check(never)
    await resting.close()
    expect(problems.join('\n')).toMatch(/lane 1 do not hold the whole batch from 0/)
    expect(problems.join('\n')).toMatch(/Lane 1 does not add up: 12 appended, 0 settled, \d+ open/)
  })

  test('finds a chunk that became damaged while the spool is in use', async () => {
    const world = await filled()
    const tampered = await reopenTampered(world, seqKey(table.chunks, lane1, 0), flipLastByte)
    const check = await tampered.spool.check(never)
    expect(check.ok).toBe(false)
  })

  test('reports a spool that another process uses as locked, and one that does not exist as missing', async () => {
    const { path } = await filled()
    await expect(openRestingSpool(path)).rejects.toMatchObject({ code: 'SPOOL_LOCKED' })
    const nowhere = join(await newFolder(), 'nowhere')
    await expect(openRestingSpool(nowhere)).rejects.toMatchObject({ code: 'SPOOL_MISSING' })
    await expect(readdir(nowhere)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('is refused for a salvage while another process uses the spool', async () => {
    const { spool, path } = await filled(1)
    await spool.close()
    const storage = new URL('../../../src/storage/storage.ts', import.meta.url).href
    const script = `const { openLevelStore } = await import(${JSON.stringify(storage)})
      await openLevelStore(${JSON.stringify(join(path, 'store'))})
      process.stdout.write('open')
      setInterval(() => {}, 60_000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script])
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const work = join(await newFolder(), 'work')
    await expect(openSalvage(path, work)).rejects.toMatchObject({ code: 'SPOOL_LOCKED' })
    // The refusal changed nothing for the process that uses it.
    await expect(openRestingSpool(path)).rejects.toMatchObject({ code: 'SPOOL_LOCKED' })
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
    const { found, steps } = await salvaged(path)
    expect(steps).toEqual([])
    expect(devicesIn(found)).toEqual(devices(12))
    expect(found.filter(({ kind }) => kind !== 'payload')).toMatchObject([
      { kind: 'state', key: 'state' },
      { kind: 'deadLetter', deadLetter: { detail: 'a letter' } },
      { kind: 'message', message: { shelf: 'quarantine:default', envelope: { topic: 'a message' } } },
    ])
    expect(await bytesOf(path)).toEqual(before)
  })

  test.each(['CURRENT', 'MANIFEST'])('works without the file %s', async (name) => {
    const { spool, path } = await filled()
    await spool.close()
    await compacted(path)
    for (const file of await readdir(join(path, 'store')))
      if (file.startsWith(name)) await rm(join(path, 'store', file))
    await expect(openExistingStore(join(path, 'store'))).rejects.toThrow()
    const before = await bytesOf(path)
    const { found, steps } = await salvaged(path)
    expect(steps.join(' ')).toMatch(/could not be opened .* repaired/)
    expect(devicesIn(found)).toEqual(devices(12))
    const after = await bytesOf(path)
    delete after['LOCK']
    delete before['LOCK']
    expect(after).toEqual(before)
  })

  test('reads around flipped bytes all over a table, and reports what it could not read', async () => {
    const { spool, path } = await filled(2000)
    await spool.close()
    await compacted(path)
    const tables = (await readdir(join(path, 'store'))).filter((name) => name.endsWith('.ldb'))
    for (const name of tables) {
      const file = join(path, 'store', name)
      const bytes = await readFile(file)
      for (const share of [0.3, 0.6])
        for (let offset = 0; offset < 64; offset += 1)
          bytes[Math.floor(bytes.length * share) + offset]! ^= 0xff
      await writeFile(file, bytes)
    }
    const before = await bytesOf(path)
    const { found, problems } = await salvaged(path)
    const sound = new Set(devicesIn(found))
    expect(sound.size).toBeGreaterThan(500)
    expect(sound.size).toBeLessThan(2000)
    for (const device of sound) expect(devices(2000)).toContain(device)
    expect(problems.join('\n')).toMatch(/cannot be read/)
    expect(await bytesOf(path)).toEqual(before)
  })

  test('finds the rest if a table is missing', async () => {
    const { spool, path } = await filled(2000)
    await spool.close()
    await compacted(path)
    // What comes later lies in another table.
    const later = await openSpoolWorld({ path, changes: { bytesMax: 256 * 1024 ** 2 } })
    await later.publish('later')
    await later.spool.close()
    const folder = join(path, 'store')
    const [oldest = ''] = (await readdir(folder)).filter((name) => name.endsWith('.ldb')).sort()
    await rm(join(folder, oldest))
    const { found } = await salvaged(path)
    expect(devicesIn(found)).toContain('later')
  })

  test('marks payloads of a chunk with a wrong checksum, and keeps its bytes', async () => {
    const { spool, path } = await filled(3)
    await spool.close()
    const store = await openLevelStore(join(path, 'store'))
    const key = seqKey(table.chunks, lane1, 1)
    const value = Buffer.from((await store.get(key))!)
    value.write('y', value.indexOf('xxx') + 1)
    await store.write([{ type: 'put', key, value }], { sync: true })
    await store.close()
    const { found } = await salvaged(path)
    expect(devicesIn(found)).toEqual(['payload 0', 'payload 2'])
    expect(devicesIn(found, true)).toEqual(['payload 1'])
    expect(found.filter(({ kind }) => kind === 'unreadable')).toMatchObject([
      { key: key.toString('hex'), raw: value },
    ])
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

  test('accepts the database directory itself, or a copy of it elsewhere', async () => {
    const { spool, path } = await filled(3)
    await spool.close()
    const elsewhere = join(await newFolder(), 'copy')
    await mkdir(elsewhere)
    for (const name of await readdir(join(path, 'store')))
      await copyFile(join(path, 'store', name), join(elsewhere, name))
    expect(devicesIn((await salvaged(elsewhere)).found)).toEqual(devices(3))
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
