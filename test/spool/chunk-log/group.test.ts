import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import { openExistingStore, type StoreEntry } from '../../../src/storage/storage.ts'
import { openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'

/** Closes the spool and reads one of its tables. */
async function recordsOf(
  { spool, path }: SpoolWorld,
  kind: Parameters<typeof tableRange>[0],
): Promise<StoreEntry[]> {
  await spool.close()
  const store = await openExistingStore(join(path, 'store'))
  const records: StoreEntry[] = []
  for await (const page of store.pages(tableRange(kind))) records.push(...page)
  await store.close()
  return records
}

describe('the window keys of one commit', () => {
  test('expire with later commits, at most 64 records a write', async () => {
    const world = await openSpoolWorld({ changes: { window: { windowMs: 1000, keysMax: 1000 } } })
    for (let n = 0; n < 70; n += 1) await world.publish(`${n}`)
    expect(world.spool.totals().windowIds).toBe(70)
    await world.clock.advance(2000)
    await world.publish('later')
    expect(world.spool.totals().windowIds).toBe(7)
    await world.publish('last')
    expect(world.spool.totals().windowIds).toBe(2)
    expect(await recordsOf(world, table.windowKeys)).toHaveLength(2)
  })
})
