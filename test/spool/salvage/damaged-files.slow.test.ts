// Seeded damage to every kind of file of a spool that a kill left behind. Whatever is damaged, verify and
// salvage end, report what is missing, and lose nothing where only the list of the files is damaged.

import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openRestingSpool, openSalvage, type Salvaged } from '../../../src/spool/spool.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import { collect, ended, openSpoolWorld, sealLane } from '../../support/open-spool.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { deadLetterNamed } from '../../support/spool-world.ts'
import { allKeys } from '../../support/level-tables.ts'

const never = new AbortController().signal
const changes = { bytesMax: 256 * 1024 ** 2 }
const settled = (n: number) => n < 400 || (n >= 500 && n < 600)
const count = 1600
const deadLetters = 20

/** A copy of the files of a spool in use: 1600 payloads, 500 of them settled, 100 in a batch. */
async function killedSpool(): Promise<string> {
  const first = await openSpoolWorld({ changes })
  const { path } = first
  const limits = { payloadsMax: 100, bodyBytesMax: 1e9 }
  const publish = async (world: typeof first, from: number, until: number) => {
    const all = []
    for (let n = from; n < until; n += 1) all.push(world.publish(`payload ${n}`, { padding: 150 }))
    await Promise.all(all)
  }
  await publish(first, 0, 1000)
  for (let n = 0; n < deadLetters; n += 1)
    first.spool.addDeadLetter(deadLetterNamed(`letter ${n}`).deadLetter)
  await ended(first.spool)
  const [lane] = first.spool.lanes()
  for (let n = 0; n < 6; n += 1) await first.spool.seal(lane!.id, limits)
  const batches = first.spool.batches()
  const settle = async (world: typeof first, index: number) => {
    const batch = world.spool.batches().find(({ firstSeq }) => firstSeq === batches[index]!.firstSeq)!
    await world.spool.load(batch)
    await world.spool.settle(batch, { payloads: 'all delivered', requestId: null }, Buffer.from('receipt'))
  }
  for (const index of [0, 1, 2]) await settle(first, index)
  await first.spool.close()
  const store = await openLevelStore(join(path, 'store'))
  await store.compact(allKeys)
  await store.close()
  const second = await openSpoolWorld({ path, changes })
  await publish(second, 1000, count)
  for (const index of [3, 5]) await settle(second, index)
  const copy = join(await newFolder(), 'spool')
  await cp(path, copy, { recursive: true })
  await sealLane(second.spool, lane!.id)
  return copy
}

type Harm = 'missing' | 'cut' | 'zeroed page' | 'flipped bit'

async function harm(file: string, kind: Harm, { below }: Random): Promise<void> {
  if (kind === 'missing') return rm(file)
  const bytes = await readFile(file)
  const at = below(bytes.length)
  const page = at - (at % 4096)
  if (kind === 'flipped bit') bytes[at]! ^= 1 << below(8)
  if (kind === 'zeroed page') bytes.fill(0, page, Math.min(page + 4096, bytes.length))
  await writeFile(file, kind === 'cut' ? bytes.subarray(0, at) : bytes)
}

const nameIn = (json: string) =>
  (JSON.parse(json) as { deviceIdentifier: { id: string } }).deviceIdentifier.id

const payloadsIn = (found: readonly Salvaged[]) =>
  found.flatMap((one) => (one.kind === 'payload' && one.suspect === null ? [one] : []))

async function outcomeOf(path: string) {
  const resting = await openRestingSpool(path)
  const verified = await resting.check(never)
  await resting.close()
  const salvage = await openSalvage(path, never)
  const found = await collect(salvage.entries(never))
  await salvage.close()
  expect(salvage.check).toEqual(verified)
  const payloads = payloadsIn(found)
  return {
    check: verified,
    notes: salvage.notes,
    open: new Set(payloads.filter(({ isSettled }) => !isSettled).map(({ json }) => nameIn(json))),
    settledBefore: payloads.filter(({ isSettled }) => isSettled).map(({ json }) => nameIn(json)),
    deadLetters: found.filter(({ kind }) => kind === 'deadLetter').length,
  }
}

const names = Array.from({ length: count }, (_, n) => ({ name: `payload ${n}`, isSettled: settled(n) }))
const openNames = names.filter(({ isSettled }) => !isSettled).map(({ name }) => name)
const settledNames = new Set(names.filter(({ isSettled }) => isSettled).map(({ name }) => name))

const kinds: [file: string, pattern: RegExp, losesNothing: boolean][] = [
  ['a table', /\.ldb$/, false],
  ['the log', /\.log$/, false],
  ['the manifest', /^MANIFEST/, true],
  ['CURRENT', /^CURRENT$/, true],
  ['the mark', /^mark$/, true],
]

describe('a spool that a kill left behind', () => {
  test('is whole without damage', async () => {
    const outcome = await outcomeOf(await killedSpool())
    expect(outcome.check.problems).toEqual([])
    expect([...outcome.open]).toEqual(openNames)
    expect(outcome.settledBefore).toEqual([])
    expect(outcome.deadLetters).toBe(deadLetters)
  })

  test.each(kinds)(
    'is read and its loss reported, whatever happens to %s',
    async (_, pattern, losesNothing) => {
      const path = await killedSpool()
      const files = [...(await readdir(join(path, 'store'))).map((name) => join('store', name)), 'mark']
      const file = files.find((name) => pattern.test(name.replace('store/', '')))!
      const intact = await readFile(join(path, file))
      for (const [index, kind] of (['missing', 'cut', 'zeroed page', 'flipped bit'] as const).entries()) {
        for (let seed = 0; seed < (kind === 'missing' ? 1 : 8); seed += 1) {
          const cell = `${kind} ${seed}`
          await harm(join(path, file), kind, createRandom(index * 1000 + seed))
          const { check, notes, open, deadLetters: letters } = await outcomeOf(path)
          const lost = openNames.filter((name) => !open.has(name))
          const surplus = [...open].filter((name) => settledNames.has(name))
          expect(check.ok && (lost.length > 0 || letters < deadLetters), `${cell} is reported`).toBe(false)
          expect(losesNothing && lost.length > 0, `${cell} loses nothing`).toBe(false)
          expect(surplus.length > 0 && notes.length === 0, `${cell} says what came back`).toBe(false)
          expect(open.size - surplus.length + lost.length, cell).toBe(openNames.length)
          await writeFile(join(path, file), intact)
        }
      }
    },
  )
})
