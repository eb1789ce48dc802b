import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { addUnreleased, isUnreleased } from '../../../src/ingest/intake/unreleased-messages.ts'
import type { ReceivedMessage } from '../../../src/ingest/types.ts'
import { messageOf } from '../../support/mapping-world.ts'

/** Remembers one checksum by packet identifier. */
function sentBy(sums: Map<number, number>, rest: Partial<ReceivedMessage> = {}): ReceivedMessage {
  const session = {
    holds: (messageId: number, sum: number) => sums.get(messageId) === sum,
    add: (messageId: number, sum: number) => void sums.set(messageId, sum),
  }
  const link = { session } as unknown as NonNullable<ReceivedMessage['link']>
  return { ...messageOf('10', { topic: 't' }), qos: 2, messageId: 1, link, ...rest }
}

test('a QoS 2 message is sent again only if its properties are equal, too', () => {
  const sums = new Map<number, number>()
  const seq = (value: string) => sentBy(sums, { userProperties: { seq: value } })
  addUnreleased(seq('1'))
  expect(isUnreleased(seq('1'))).toBe(true)
  expect(isUnreleased(seq('2'))).toBe(false)
  expect(isUnreleased(sentBy(sums))).toBe(false)
  expect(isUnreleased(sentBy(sums, { userProperties: { seq: '1' }, properties: { contentType: 'a' } }))).toBe(
    false,
  )
  expect(isUnreleased(sentBy(sums, { userProperties: { seq: '1' }, properties: { expiryS: 5 } }))).toBe(true)
})

test('the checksum of a message without properties is that of its topic and bytes', () => {
  const sums = new Map([[1, crc32(Buffer.from('10'), crc32('t'))]])
  expect(isUnreleased(sentBy(sums))).toBe(true)
  expect(isUnreleased(sentBy(sums, { userProperties: null, properties: null }))).toBe(true)
})
