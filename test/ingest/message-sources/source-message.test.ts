import { expect, test } from 'vitest'
import {
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
