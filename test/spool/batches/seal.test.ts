import { expect, test } from 'vitest'
import { openLevelStore, type OpenStore, type Store, type StoreEntry } from '../../../src/storage/storage.ts'
import { ended, namesIn, openSpoolWorld } from '../../support/open-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const names = 'a b c d e f g h i j k l'.split(' ')

test.each([
  ['batches are cut by bytes as well', 1000, ['ab', 'cd', 'ef', 'gh', 'ij', 'kl']],
  ['a payload that is larger gets a batch of its own', 100, names],
])('%s', async (_what, bodyBytesMax, batches) => {
  const { spool } = await openSpoolWorld()
  for (const name of names) spool.append(payloadNamed(name, { padding: 300 }))
  expect(await ended(spool)).toBeNull()
  const sealed: string[] = []
  const seal = () => spool.seal(spool.lanes()[0]!.id, { payloadsMax: 9, bodyBytesMax })
  for (let batch = await seal(); batch !== null; batch = await seal())
    sealed.push((await namesIn(spool, batch)).join(''))
  expect(sealed).toEqual(batches)
})

test('a start reads little of a long lane, and knows since when its oldest payload waits', async () => {
  let bytesRead = 0
  const openStore: OpenStore = async (...args) => {
    const store = await openLevelStore(...args)
    async function* pages(...of: Parameters<Store['pages']>): AsyncGenerator<readonly StoreEntry[]> {
      for await (const page of store.pages(...of)) {
        for (const [key, value] of page) bytesRead += key.length + value.length
        yield page
      }
    }
    return { ...store, pages }
  }
  const world = await openSpoolWorld({ openStore, changes: { bytesMax: 64 * 1024 ** 2 } })
  for (let n = 0; n < 100; n += 1) {
    for (const name of names) world.spool.append(payloadNamed(`${name}${n}`, { padding: 2000 }))
    expect(await ended(world.spool)).toBeNull()
  }
  const [before] = world.spool.lanes()
  bytesRead = 0
  const { spool } = await world.reopen()
  expect(bytesRead).toBeLessThan(200_000)
  expect(before?.pendingBytes).toBeGreaterThan(2_000_000)
  expect(spool.lanes()[0]).toMatchObject({ pending: 1200, oldestAt: before?.oldestAt })
})
