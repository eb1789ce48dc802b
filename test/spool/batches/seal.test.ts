import { expect, test } from 'vitest'
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
