import { expect, test } from 'vitest'
import { createPagePool, type Page } from '../../../../../src/ingest/broker/gate/partial-packet/page-pool.ts'

const take = (pool: ReturnType<typeof createPagePool>, count: number): Page[] =>
  Array.from({ length: count }, () => pool.take())

test('no two pages share memory', () => {
  const pool = createPagePool()
  const pages = take(pool, 200)
  for (const [index, { bytes }] of pages.entries()) bytes.fill(index)
  expect(
    pages.every(({ bytes }, index) => bytes.length === 4096 && bytes.every((byte) => byte === index)),
  ).toBe(true)
  expect(pool.slabs()).toBe(4)
})

test('pages are used again, and slabs without a page in use are left, except one', () => {
  const pool = createPagePool()
  for (let turn = 0; turn < 20; turn += 1) {
    const pages = take(pool, 100)
    expect(pool.slabs()).toBe(2)
    for (const page of pages) pool.giveBack(page)
    expect(pool.slabs()).toBe(1)
  }
})

test('a slab stays as long as one of its pages is in use', () => {
  const pool = createPagePool()
  const [first, ...others] = take(pool, 64)
  const next = take(pool, 64)
  for (const page of [...others, ...next]) pool.giveBack(page)
  const again = take(pool, 63 + 64)
  expect(again.some(({ bytes }) => bytes === first!.bytes)).toBe(false)
})
