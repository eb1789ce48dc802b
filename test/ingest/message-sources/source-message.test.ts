import { expect, test } from 'vitest'
import {
  boundProperties,
  emptyMessage,
  oversizedKeptMax,
  refuseOversized,
} from '../../../src/ingest/message-sources/source-message.ts'

test.each([
  [oversizedKeptMax, oversizedKeptMax, 'It is kept whole.'],
  [oversizedKeptMax + 1, 0, 'Its bytes are lost. It begins with "aaaa'],
])('of an oversized message of %i bytes %i are kept', (size, kept, words) => {
  const message = { ...emptyMessage(), topic: 't/1', bytes: Buffer.alloc(size, 'a') }
  refuseOversized(message, { size, option: 'max_message_bytes', bytesMax: 1024 })
  expect(message.bytes.length).toBe(kept)
  expect(message.refusal?.reason).toBe('OVERSIZED')
  expect(message.refusal?.detail).toContain('on "t/1" is larger than max_message_bytes (1.0 KiB). ')
  expect(message.refusal?.detail).toContain(words)
})

test('64 user properties and 16 KiB of them are kept; the others are counted', () => {
  const named = (count: number, value: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${String(n).padStart(3, '0')}`, value]))
  const bounded = (userProperties: Record<string, string>) => {
    const message = { ...emptyMessage(), userProperties }
    const skipped = boundProperties(message)
    return {
      skipped,
      kept: Object.keys(message.userProperties).length,
      isSame: message.userProperties === userProperties,
    }
  }
  expect(bounded(named(64, 'x'))).toEqual({ skipped: 0, kept: 64, isSame: true })
  expect(bounded(named(70, 'x'))).toEqual({ skipped: 6, kept: 64, isSame: false })
  // 2 bytes a character: 4 properties of 4 + 4092 bytes are 16 KiB.
  expect(bounded(named(4, '\u00fc'.repeat(2046)))).toEqual({ skipped: 0, kept: 4, isSame: true })
  expect(bounded(named(5, '\u00fc'.repeat(2046)))).toEqual({ skipped: 1, kept: 4, isSame: false })
  // A large one is left out alone.
  expect(bounded({ large: 'x'.repeat(20_000), vin: 'V1' })).toEqual({ skipped: 1, kept: 1, isSame: false })
})
