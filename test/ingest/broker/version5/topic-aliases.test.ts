import { expect, test } from 'vitest'
import { createTopicAliases } from '../../../../src/ingest/broker/version5/topic-aliases.ts'

test('an alias stands for the last topic that set it', () => {
  const aliases = createTopicAliases(2)
  expect(aliases.get(1)).toBe(undefined)
  aliases.set(1, 'a')
  aliases.set(2, 'b')
  aliases.set(1, 'c')
  expect([aliases.get(1), aliases.get(2), aliases.get(3)]).toEqual(['c', 'b', undefined])
})

test('a topic beyond the bound is not kept, and the earlier one neither', () => {
  const aliases = createTopicAliases(10, 8)
  aliases.set(1, 'aaaa')
  aliases.set(2, 'bbbb')
  aliases.set(3, 'c')
  expect(aliases.get(3)).toBe(null)
  aliases.set(1, 'aaaaa')
  expect(aliases.get(1)).toBe(null)
  // The bytes of the earlier topic are free again.
  aliases.set(4, 'd\u00e4d')
  expect([aliases.get(2), aliases.get(4)]).toEqual(['bbbb', 'd\u00e4d'])
  aliases.set(5, 'e')
  expect(aliases.get(5)).toBe(null)
})

test('setting an alias to the same topic again takes no room', () => {
  const aliases = createTopicAliases(10, 4)
  for (let count = 0; count < 100; count += 1) aliases.set(1, 'aaaa')
  expect(aliases.get(1)).toBe('aaaa')
  for (let count = 0; count < 100; count += 1) aliases.set(1, `b${count}`)
  expect(aliases.get(1)).toBe('b99')
})
