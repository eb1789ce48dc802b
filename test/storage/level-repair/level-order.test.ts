// In which levels tables go without a manifest: tables that are made for the case, not those of a database.

import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { tableName } from '../../../src/storage/level-files/manifest.ts'
import { internalKeyOf } from '../../../src/storage/level-files/table-reader/block.ts'
import { createTable } from '../../../src/storage/level-files/table-writer.ts'
import { orderTables, overlap, type LevelOrder } from '../../../src/storage/level-repair/level-order.ts'
import type { BoundedTable } from '../../../src/storage/level-repair/table-versions.ts'
import { newFolder } from '../../support/folders.ts'

/** Sequences by key. */
type Content = Record<string, number>

const keys = ['a', 'b', 'c', 'd', 'e', 'f']

const { signal } = new AbortController()

async function tablesWith(contents: readonly Content[]): Promise<{ path: string; tables: BoundedTable[] }> {
  const path = await newFolder()
  const tables: BoundedTable[] = []
  for (const [index, content] of contents.entries()) {
    const number = index + 10
    const name = tableName(number)
    const writer = await createTable(join(path, name))
    for (const key of Object.keys(content).toSorted())
      await writer.add(internalKeyOf(Buffer.from(key), content[key] ?? 0, 1), Buffer.from(`${content[key]}`))
    const written = await writer.finish()
    if (written === null) throw new Error('an empty table')
    const { bytes, smallest: firstKey, largest: lastKey } = written
    const table = { number, name, bytes, level: null, smallest: null, largest: null }
    tables.push({ table, firstKey, lastKey })
  }
  return { path, tables }
}

async function orderOf(contents: readonly Content[]): Promise<LevelOrder> {
  const { path, tables } = await tablesWith(contents)
  return orderTables(path, tables, signal)
}

/** The place of each table from the top: LevelDB reads level 0 from the newest down, then level 1 and so on. */
function depthOf({ levels, top }: LevelOrder, index: number): number {
  const level = levels[index]
  if (level === 'merged') return 1000
  return level === 0 ? 100 - top.indexOf(index) : 1000 + (level ?? 0)
}

function problemsIn(
  contents: readonly Content[],
  tables: readonly BoundedTable[],
  order: LevelOrder,
): string[] {
  const problems: string[] = []
  for (const [one, first] of contents.entries()) {
    for (const [other, second] of contents.entries()) {
      const [level, otherLevel] = [order.levels[one], order.levels[other]]
      const isNewer = keys.some((key) => (first[key] ?? 0) > (second[key] ?? Infinity))
      const areMerged = level === 'merged' && otherLevel === 'merged'
      if (isNewer && !areMerged && depthOf(order, one) >= depthOf(order, other))
        problems.push(`${one} is not above ${other}`)
      const areBeside = one !== other && level === otherLevel && Number(level) > 0
      if (areBeside && overlap(tables[one]!, tables[other]!)) problems.push(`${one} overlaps ${other}`)
    }
  }
  return problems
}

describe('the order of tables without a manifest', () => {
  test('puts the newer version of a key above the older one, whatever the other sequences are', async () => {
    // The first table has the greatest sequence of all and the oldest version of `b`.
    const order = await orderOf([
      { a: 900, b: 5 },
      { b: 6, c: 7 },
    ])
    expect(order.levels).toEqual([6, 5])
    expect(order.lastSequence).toBe(900)
  })

  test('puts tables that do not overlap into one level', async () => {
    const order = await orderOf([{ a: 1, b: 2 }, { c: 9, d: 3 }, { e: 4 }])
    expect(order.levels).toEqual([6, 6, 6])
  })

  test('fills level 0 with a few tables in the order of their age', async () => {
    const order = await orderOf(Array.from({ length: 9 }, (_, n) => ({ a: n + 1 })).toReversed())
    expect(order.levels).toEqual([0, 0, 0, 1, 2, 3, 4, 5, 6])
    expect(order.top).toEqual([2, 1, 0])
  })

  test('merges what would be too much for level 0', async () => {
    const order = await orderOf(Array.from({ length: 12 }, (_, n) => ({ a: n + 1 })))
    expect(order.levels).toEqual([6, 5, 4, 3, 2, ...Array.from({ length: 7 }, () => 'merged')])
    expect(order.mergedBytes).toBeGreaterThan(0)
  })

  test('merges tables of which each has a newer version than the other, and those above them', async () => {
    const order = await orderOf([{ a: 1, b: 9 }, { a: 2, b: 8 }, { b: 10 }, { c: 1 }])
    expect(order.levels).toEqual(['merged', 'merged', 'merged', 6])
  })

  test('never puts a newer version below an older one, and no overlapping tables into one level', async () => {
    const content = fc.dictionary(fc.constantFrom(...keys), fc.integer({ min: 1, max: 60 }), { minKeys: 1 })
    await fc.assert(
      fc.asyncProperty(fc.array(content, { minLength: 1, maxLength: 9 }), async (contents) => {
        const { path, tables } = await tablesWith(contents)
        const order = await orderTables(path, tables, signal)
        expect(problemsIn(contents, tables, order)).toEqual([])
      }),
      { numRuns: 100 },
    )
  })
})
