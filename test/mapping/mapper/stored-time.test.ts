// A message without a time of its own, from a server that says when it had stored it: RabbitMQ and NATS deliver a
// message again, perhaps to another gateway, and its payload must keep its name.

import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/domain/message.ts'
import { envelopeOf } from '../../../src/domain/message.ts'
import { messageFrom } from '../../../src/ingest/remap/kept-message.ts'
import { messageOf, openMapperOf, payloadsIn, sentIn, truckSource } from '../../support/mapping-world.ts'

const storedAt = 1_750_000_000_000
const hourMs = 3_600_000

const source = truckSource({ time: undefined })
const reading = { lat: 48.8566, lon: 2.3522 }

const stored = (more: Partial<Message> = {}, serial = 0): Message => ({
  ...messageOf(reading),
  arrivedAt: storedAt + hourMs,
  stored: { at: storedAt, serial },
  ...more,
})

const payloadOf = (message: Message, sources: readonly unknown[] = [source]) =>
  payloadsIn(openMapperOf(sources).map(message))[0]!

describe('a message without a device time that a server had stored', () => {
  test('has the stored time, whenever it arrives', () => {
    const result = openMapperOf([source]).map(stored())
    expect(sentIn(result).signalTimestamp).toBe(storedAt)
  })

  test('has one name at every delivery, and the dedup window decides by it', () => {
    const first = payloadOf(stored())
    const again = payloadOf(stored({ arrivedAt: storedAt + 2 * hourMs, dup: true, serial: 3 }))
    expect(again).toEqual(first)
    expect(first).toMatchObject({ duplicateRule: 'always', deviceTime: storedAt })
  })

  test('is another reading under another number of the server, or another time', () => {
    const ids = [stored(), stored({}, 1), stored({ stored: { at: storedAt + 1, serial: 0 } })].map(
      (message) => payloadOf(message).payloadId,
    )
    expect(new Set(ids).size).toBe(3)
  })

  test('is not the reading of a device that said this time itself', () => {
    const timed = payloadOf({ ...messageOf({ ...reading, ts: storedAt }) }, [truckSource()])
    expect(payloadOf(stored()).payloadId).not.toBe(timed.payloadId)
  })

  test('keeps both while it is kept whole', () => {
    const kept = messageFrom(JSON.parse(JSON.stringify(envelopeOf(stored({}, 7), 'trucks'))))
    expect(payloadOf(kept)).toEqual(payloadOf(stored({}, 7)))
  })

  test('sends an old position less its age', () => {
    const fix = { time: { age: 'age', unit: 's' } }
    const aged = truckSource({ time: undefined }, { fix, no_fix: 'keep' })
    const message = { ...messageOf({ ...reading, age: 600 }), stored: { at: storedAt, serial: 0 } }
    expect(sentIn(openMapperOf([aged]).map(message)).signalTimestamp).toBe(storedAt - 600_000)
  })
})

test('a message with a device time has it, stored or not', () => {
  const timed = { ...reading, ts: storedAt - hourMs }
  const message = { ...messageOf(timed), stored: { at: storedAt, serial: 4 } }
  expect(payloadOf(message, [truckSource()])).toEqual(payloadOf(messageOf(timed), [truckSource()]))
})
