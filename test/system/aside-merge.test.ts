// `spool repair` beside a store that was set aside: its content comes into the running one, once.

import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openRestingSpool } from '../../src/spool/spool.ts'
import { stateKey } from '../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore } from '../../src/storage/storage.ts'
import {
  addDeadLetters,
  deadLettersIn,
  ended,
  flipLastByte,
  keptIn,
  namesIn,
  openSpoolWorld,
  sealAll,
  statesIn,
  type SpoolWorld,
} from '../support/open-spool.ts'
import { copied, killBehindEachStep, repair } from '../support/repaired-spool.ts'
import { keptNamed } from '../support/spool-world.ts'

const changes = { bytesMax: 256 * 1024 ** 2, quarantineBytesMax: 64 * 1024 ** 2 }
const asideName = 'store.damaged-2026-01-01T00-00-00'

async function fill(world: SpoolWorld, name: string, states: Record<string, string>): Promise<void> {
  const { spool, publish } = world
  for (let n = 0; n < 6; n += 1) await publish(`${name} sealed ${n}`)
  await sealAll(spool)
  for (let n = 0; n < 6; n += 1) await publish(`${name} pending ${n}`, { padding: 3000 })
  await addDeadLetters(spool, [`${name} letter`, `${name} other letter`])
  for (const message of [`${name} message 1`, `${name} message 2`])
    spool.keepMessage(keptNamed(message, { device: name }).message)
  for (const [key, value] of Object.entries(states)) spool.putState(key, Buffer.from(value))
  await ended(spool)
}

/** A running store with content, and one that was set aside with its mark. */
async function withAside(): Promise<{ path: string; batchIds: string[] }> {
  const old = await openSpoolWorld({ changes })
  await fill(old, 'old', { both: 'old', gone: 'old' })
  const batchIds = old.spool.batches().map(({ batchId }) => String(batchId))
  await old.spool.close()
  const { path } = old
  await rename(join(path, 'mark'), join(path, 'store/mark'))
  await rename(join(path, 'store'), join(path, asideName))
  const running = await openSpoolWorld({ path, changes, clock: old.clock })
  await fill(running, 'new', { both: 'new' })
  batchIds.push(...running.spool.batches().map(({ batchId }) => String(batchId)))
  await running.spool.close()
  return { path, batchIds: batchIds.toSorted() }
}

async function damageRecord(path: string, key: Buffer): Promise<void> {
  const store = await openLevelStore(join(path, 'store'))
  const value = flipLastByte((await store.get(key)) ?? Buffer.alloc(0))
  await store.write([{ type: 'put', key, value }], { sync: true })
  await store.close()
}

async function contentOf(path: string) {
  const resting = await openRestingSpool(path)
  const check = await resting.check(new AbortController().signal)
  await resting.close()
  const { spool } = await openSpoolWorld({ path, changes })
  const batchIds = spool.batches().map(({ batchId }) => String(batchId))
  await sealAll(spool)
  const names: string[] = []
  for (const batch of spool.batches()) names.push(...(await namesIn(spool, batch)))
  const letters = await deadLettersIn(spool)
  const content = {
    problems: check.problems,
    batchIds: batchIds.toSorted(),
    names: names.toSorted(),
    letters: letters.map(({ deadLetter }) => deadLetter.detail).toSorted(),
    messages: await keptIn(spool, 'quarantine:default'),
    ofDevice: await keptIn(spool, 'quarantine:default', 'old'),
    state: await statesIn(spool),
  }
  await spool.close()
  return content
}

const namesOf = (name: string) =>
  ['pending', 'sealed'].flatMap((kind) => Array.from({ length: 6 }, (_, n) => `${name} ${kind} ${n}`))

const merged = (batchIds: string[]) => ({
  problems: [],
  batchIds,
  names: [...namesOf('new'), ...namesOf('old')],
  letters: ['new letter', 'new other letter', 'old letter', 'old other letter'],
  messages: ['new message 1', 'new message 2', 'old message 1', 'old message 2'],
  ofDevice: ['old message 1', 'old message 2'],
  state: { both: 'new', gone: 'old' },
})

describe('a store that was set aside', () => {
  test('is shown in the plan with its content', async () => {
    const { path } = await withAside()
    const report = await repair(path, { apply: false })
    expect(report).toMatchObject({
      state: 'planned',
      damage: [],
      merges: [{ payloads: 12, batches: 1, deadLetters: 2, messages: 2, stateEntries: 2, problems: [] }],
    })
    expect(await readdir(path)).toContain(asideName)
  })

  test('comes into the running store with its batchIds, and is moved to damaged/', async () => {
    const { path, batchIds } = await withAside()
    expect(await repair(path)).toMatchObject({ state: 'repaired', merges: [{ payloads: 12 }] })
    expect(await readdir(path)).not.toContain(asideName)
    expect(await readdir(join(path, 'damaged/2026-01-01T00-00-00-000'))).toContain(asideName)
    expect(await contentOf(path)).toEqual(merged(batchIds))
    expect(await repair(path)).toMatchObject({ state: 'whole', merges: [] })
  })

  test.each([
    { damaged: false, gone: 'late' },
    // Behind the damaged record, the entry under its own key may be newer.
    { damaged: true, gone: 'at once' },
  ])(
    'brings state from records of several entries after a kill (one damaged: $damaged)',
    async ({ damaged, gone }) => {
      const lateRecords = { recordsMax: 10, bytesMax: 100_000 }
      const old = await openSpoolWorld({ changes: { ...changes, lateRecords } })
      const putLate = (key: string) =>
        old.spool.putLateState({ key, value: Buffer.from('late'), isWaiting: false })
      for (const key of ['both', 'gone', 'zone']) putLate(key)
      old.spool.putState('bare', Buffer.from('old'))
      await ended(old.spool)
      old.spool.putState('gone', Buffer.from('at once'))
      await ended(old.spool)
      if (!damaged) putLate('gone')
      await ended(old.spool)
      const path = await copied(old.path)
      if (damaged) await damageRecord(path, stateKey('memory "" 1'))
      await rename(join(path, 'mark'), join(path, 'store/mark'))
      await rename(join(path, 'store'), join(path, asideName))
      const running = await openSpoolWorld({ path, changes, clock: old.clock })
      running.spool.putLateState({ key: 'both', value: Buffer.from('new'), isWaiting: false })
      await ended(running.spool)
      await running.spool.close()
      expect(await repair(path)).toMatchObject({ state: 'repaired' })
      const after = await openSpoolWorld({ path, changes })
      const report = { kind: 'record_damaged', table: 'state', name: 'memory "" 1' }
      expect(after.eventsOf('record_damaged')).toMatchObject(damaged ? [report] : [])
      expect(await statesIn(after.spool)).toEqual({ bare: 'old', both: 'new', gone, zone: 'late' })
    },
  )

  test('comes into the running store once, wherever the repair is killed', async () => {
    const { path: base, batchIds } = await withAside()
    await killBehindEachStep(base, async (path, step) => {
      // The gateway can start in between.
      if (step % 2 === 0) await (await openLevelStore(join(path, 'store'))).close()
      await repair(path)
      expect(await contentOf(path), `killed behind step ${step}`).toEqual(merged(batchIds))
    })
  })

  test('comes with everything outside of a damaged block', async () => {
    const { path } = await withAside()
    const folder = join(path, asideName)
    await (await openLevelStore(folder)).close()
    const [name = ''] = (await readdir(folder)).filter((file) => file.endsWith('.ldb'))
    const bytes = await readFile(join(folder, name))
    bytes[20] = (bytes[20] ?? 0) ^ 1
    await writeFile(join(folder, name), bytes)
    const report = await repair(path)
    expect(report.merges[0]?.problems).toHaveLength(1)
    const { payloads, losses } = report.merges[0] ?? { payloads: 0, losses: { payloads: 0 } }
    expect(payloads + losses.payloads).toBe(12)
    expect(losses.payloads).toBeGreaterThan(0)
    const { spool } = await openSpoolWorld({ path, changes })
    expect(await deadLettersIn(spool)).toHaveLength(4)
    expect(await keptIn(spool, 'quarantine:default')).toHaveLength(4)
  })
})
