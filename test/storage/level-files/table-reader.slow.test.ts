import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BlockPlace, FileDamage } from '../../../src/storage/level-files/types.ts'
import {
  kindOf,
  readPlace,
  sequenceOf,
  userKeyOf,
  type BlockEntry,
} from '../../../src/storage/level-files/table-reader/block.ts'
import {
  openTable,
  type KnownTable,
  type TableBlock,
} from '../../../src/storage/level-files/table-reader/table-reader.ts'
import {
  damaged,
  keyOf,
  tableOf,
  valueOf,
  type Damage,
  type WrittenByLevel,
} from '../../support/level-tables.ts'

const trailerBytes = 5
const footerBytes = 48

/** What the reader finds in these bytes. */
async function readAll(
  bytes: Buffer,
  table: KnownTable,
): Promise<{
  entries: BlockEntry[]
  damage: FileDamage[]
  checked: FileDamage[]
  blocks: readonly TableBlock[]
}> {
  await writeFile(join(path, table.name), bytes)
  const reader = await openTable(path, table)
  const entries: BlockEntry[] = []
  const damage = [...reader.damage]
  for (const index of reader.blocks.keys()) {
    const found = await reader.entries(index)
    if (Array.isArray(found)) entries.push(...found)
    else damage.push(found)
  }
  const checked = await reader.check()
  await reader.close()
  return { entries, damage, checked, blocks: reader.blocks }
}

const namesOf = (entries: readonly BlockEntry[]) => entries.map(({ key }) => userKeyOf(key).toString())

/** The places in the footer. */
function endOf(bytes: Buffer): { filters: BlockPlace; index: BlockPlace } {
  const head = { at: bytes.length - footerBytes }
  return { filters: readPlace(bytes, head, bytes.length)!, index: readPlace(bytes, head, bytes.length)! }
}

/** Bytes of a block with its trailer. */
const isHit = ({ offset, bytes }: TableBlock, { kind, from, until }: Damage) =>
  kind === 'cut'
    ? offset + bytes + trailerBytes > from
    : offset < (kind === 'flip' ? from + 1 : until) && from < offset + bytes + trailerBytes

/** Each kind of table: blocks that Snappy compresses, plain blocks, both, and blocks larger than a search step. */
const kinds = {
  compressed: () => Array.from({ length: 3000 }, (_, n) => valueOf(n, 300, true)),
  plain: () => Array.from({ length: 1000 }, (_, n) => valueOf(n, 300, false)),
  mixed: () => Array.from({ length: 1000 }, (_, n) => valueOf(n, 40 + ((n * 37) % 2000), n % 100 < 50)),
  'of large blocks': () => Array.from({ length: 6 }, (_, n) => valueOf(n, 400_000, n % 2 === 0)),
  'of one block': () => [valueOf(0, 100, true)],
}

const written = new Map<string, WrittenByLevel & { blocks: readonly TableBlock[] }>()
const tableNamed = (kind: string) => written.get(kind)!

let path = ''

afterAll(() => rm(path, { recursive: true }))

beforeAll(async () => {
  path = await mkdtemp(join(tmpdir(), 'gateway-test-'))
  for (const [kind, values] of Object.entries(kinds)) {
    const one = await tableOf(values())
    const { blocks } = await readAll(one.bytes, one.table)
    written.set(kind, { ...one, blocks })
  }
})

describe.each(Object.keys(kinds))('a table, %s,', (kind) => {
  test('gives the entries that LevelDB reads', async () => {
    const { entries, bytes, table } = tableNamed(kind)
    const found = await readAll(bytes, table)
    expect(found.damage).toEqual([])
    expect(found.checked).toEqual([])
    expect(
      found.entries.map(({ key, value }) => [userKeyOf(key).toString(), value.toString('base64')]),
    ).toEqual(entries.map(([key, value]) => [key.toString(), value.toString('base64')]))
    for (const [index, { key }] of found.entries.entries())
      expect([kindOf(key), sequenceOf(key)]).toEqual([1, index + 1])
  })

  test('gives all entries without its footer and without its index', async () => {
    const { entries, bytes, table, blocks } = tableNamed(kind)
    const dataEnd = blocks[blocks.length - 1]!.offset + blocks[blocks.length - 1]!.bytes + trailerBytes
    const { index } = endOf(bytes)
    const harms: [string, Damage[]][] = [
      ['footer', [{ kind: 'flip', from: bytes.length - 1, until: 0, bit: 3 }]],
      ['index', [{ kind: 'flip', from: index.offset + 20, until: 0, bit: 3 }]],
      ['footer', [{ kind: 'zero', from: dataEnd, until: bytes.length, bit: 0 }]],
      ['table', [{ kind: 'cut', from: dataEnd, until: 0, bit: 0 }]],
      ['table', [{ kind: 'cut', from: bytes.length - footerBytes, until: 0, bit: 0 }]],
    ]
    for (const [unit, harm] of harms) {
      const found = await readAll(damaged(bytes, harm), table)
      expect(namesOf(found.entries)).toEqual(entries.map(([key]) => key.toString()))
      expect(found.damage).toMatchObject([{ unit, keys: null }])
      expect(found.checked).toEqual(found.damage)
    }
  })

  test('loses only the blocks that were hit, and reports exactly their keys, whatever the damage', async () => {
    const { entries, bytes, table, blocks } = tableNamed(kind)
    const intact = await readAll(bytes, table)
    const blockOf = (key: string) =>
      blocks.find(({ lastKey }) => userKeyOf(lastKey).compare(Buffer.from(key)) >= 0) as TableBlock
    const place = fc.oneof(
      fc.integer({ min: 0, max: bytes.length - 1 }),
      fc.integer({ min: Math.max(0, bytes.length - 4000), max: bytes.length - 1 }),
    )
    const damage = fc.record({
      kind: fc.constantFrom('flip' as const, 'flip' as const, 'zero' as const, 'cut' as const),
      from: place,
      bit: fc.integer({ min: 0, max: 7 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (harm) => {
        const damages = harm.map((one) => {
          const from = one.kind === 'zero' ? one.from - (one.from % 4096) : one.from
          return { ...one, from, until: from + 4096 }
        })
        const changed = damaged(bytes, damages)
        const found = await readAll(changed, table)
        const hit = blocks.filter(({ offset, bytes: length }) => {
          const stored = bytes.subarray(offset, offset + length + trailerBytes)
          return !stored.equals(changed.subarray(offset, offset + stored.length))
        })
        for (const block of hit) expect(damages.some((one) => isHit(block, one))).toBe(true)
        const kept = entries.map(([key]) => key.toString()).filter((key) => !hit.includes(blockOf(key)))
        expect(namesOf(found.entries)).toEqual(kept)
        const lost = namesOf(intact.entries).filter((key) => !kept.includes(key))
        const canBeLost = (key: string) =>
          found.damage.some(
            ({ keys }) =>
              keys !== null &&
              (keys.after === null || keys.after.compare(Buffer.from(key)) < 0) &&
              (keys.until === null || keys.until.compare(Buffer.from(key)) >= 0),
          )
        expect(lost.filter((key) => !canBeLost(key))).toEqual([])
        // The keys of found blocks end the report of a gap, so the first one behind it is named, too.
        const surplus = kept.filter(canBeLost).length
        expect(surplus).toBeLessThanOrEqual(found.damage.length)
        expect(found.checked.filter(({ unit }) => unit !== 'filter')).toEqual(found.damage)
        const named = found.damage.filter(({ keys }) => keys !== null)
        expect(named.length > 0).toBe(lost.length > 0)
      }),
      { numRuns: 30 },
    )
  })
})

describe('without the manifest, so that the size and the keys of the table are unknown,', () => {
  const unknown = (bytes: Buffer): KnownTable => ({
    name: '000005.ldb',
    bytes: bytes.length,
    smallest: null,
    largest: null,
  })

  test('a table with a damaged index gives all entries, and reports no key', async () => {
    const { entries, bytes } = tableNamed('compressed')
    const from = endOf(bytes).index.offset + 40
    const changed = damaged(bytes, [{ kind: 'flip', from, until: 0, bit: 1 }])
    const found = await readAll(changed, unknown(changed))
    expect(found.entries.length).toBe(entries.length)
    expect(found.damage).toMatchObject([{ unit: 'index', keys: null }])
  })

  test('a cut table reports that anything behind its last whole block can be lost', async () => {
    const { bytes, blocks } = tableNamed('compressed')
    const cut = blocks[10]!.offset + 100
    const changed = bytes.subarray(0, cut)
    const found = await readAll(changed, unknown(changed))
    expect(namesOf(found.entries).at(-1)).toBe(userKeyOf(found.blocks[9]!.lastKey).toString())
    expect(found.damage).toMatchObject([
      {
        unit: 'block',
        offset: blocks[10]!.offset,
        keys: { after: userKeyOf(found.blocks[9]!.lastKey), until: null },
      },
      { unit: 'footer', keys: null },
    ])
  })

  test.each([0, 1, 4, 47, 48, 60])('a file of %i bytes gives nothing and does not fail', async (size) => {
    for (const byte of [0, 1, 0xff]) {
      const bytes = Buffer.alloc(size, byte)
      expect((await readAll(bytes, unknown(bytes))).entries).toEqual([])
    }
  })
})

test('damage of the filter is found by a check: LevelDB would miss keys without a word', async () => {
  const { bytes, blocks, table } = tableNamed('compressed')
  const last = blocks[blocks.length - 1]!
  const filter = last.offset + last.bytes + trailerBytes
  for (const from of [filter, endOf(bytes).filters.offset + 3, endOf(bytes).filters.offset - 1]) {
    const found = await readAll(damaged(bytes, [{ kind: 'flip', from, until: 0, bit: 1 }]), table)
    expect(found.damage).toEqual([])
    expect(found.checked).toMatchObject([{ unit: 'filter', keys: null }])
  }
})

test('a file of zeros, or of one block start after the other, is searched within seconds', async () => {
  const size = 1024 * 1024
  const table = { name: '000005.ldb', bytes: size, smallest: null, largest: null }
  for (const unit of [
    Buffer.from([0]),
    Buffer.from([0, 9]),
    Buffer.from([0, 9, 1]),
    Buffer.from([0, 0, 9, 9]),
  ]) {
    const started = performance.now()
    expect((await readAll(Buffer.alloc(size, unit), table)).entries).toEqual([])
    expect(performance.now() - started).toBeLessThan(8000)
  }
})

test('a block inside of a value is no block of the table, also without an index', async () => {
  const inner = tableNamed('compressed')
  const block = inner.bytes.subarray(0, inner.blocks[0]!.bytes + trailerBytes)
  const values = Array.from({ length: 100 }, (_, n) => (n === 50 ? block : valueOf(n, 700, false)))
  const { bytes, table } = await tableOf(values)
  const changed = damaged(bytes, [{ kind: 'flip', from: bytes.length - 1, until: 0, bit: 0 }])
  changed.fill(0, bytes.length - 400)
  const found = await readAll(changed, table)
  expect(namesOf(found.entries)).toEqual(values.map((_, n) => keyOf(n).toString()))
})
