import { expect, test } from 'vitest'
import { addValue, bytesOf, newRecord } from '../../../src/mapping/state/open-record.ts'
import { keptRecordIn } from '../../../src/mapping/state/record-envelope.ts'
import { messageOfStateEntry } from '../../../src/mapping/state/state-restore.ts'

const key = 'coalesce "values" truck-1'

function recordBytes(): Buffer {
  const record = newRecord('truck-1', 1000)
  const value = { text: '48.1', time: 900, arrivedAt: 1000, messages: 1 }
  addValue(record, { ...value, name: 'latitude', value: 48.1 })
  addValue(record, { ...value, name: 'longitude', value: 11, text: '11', time: Number.NaN, arrivedAt: 1100 })
  return bytesOf(record)
}

test('an open record becomes a message that can be mapped again', () => {
  const message = messageOfStateEntry(key, recordBytes())
  expect(message?.topic).toBe('$coalesced/values')
  expect(keptRecordIn(message!)).toEqual({
    kind: 'coalesced',
    name: 'values',
    owner: 'truck-1',
    arrivedAt: 1100,
    record: { latitude: 48.1, longitude: 11, $time: 900 },
  })
  expect(messageOfStateEntry('merge "group" truck-1', recordBytes())?.topic).toBe('$merged/group')
})

test('other state, and a damaged record, becomes no message', () => {
  expect(messageOfStateEntry('aliases truck-1', recordBytes())).toBeNull()
  expect(messageOfStateEntry(key, recordBytes().subarray(0, 20))).toBeNull()
  expect(messageOfStateEntry(key, Buffer.alloc(0))).toBeNull()
})
