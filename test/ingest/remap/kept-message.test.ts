import { describe, expect, test } from 'vitest'
import { envelopeLine, parseLine } from '../../../src/dead-letters/ndjson-line.ts'
import { envelopeOf, type Envelope } from '../../../src/domain/message.ts'
import { messageFrom } from '../../../src/ingest/remap/kept-message.ts'
import { messageOf } from '../../support/mapping-world.ts'

const sender = { clientId: 'c', userName: 'u', certificateName: 'n', identity: 'i' }
const stored = (envelope: Envelope): Envelope => JSON.parse(JSON.stringify(envelope)) as Envelope

describe('an envelope', () => {
  test('of version 0.1.0 is read as one of an anonymous client', () => {
    const { identity: _, ...earlier } = stored(envelopeOf(messageOf('10', { topic: 't', sender }), null))
    expect(messageFrom(earlier).sender).toEqual({ ...sender, identity: null })
    expect(parseLine(envelopeLine(earlier))).toEqual({ kind: 'message', envelope: earlier })
  })

  test.each([
    { contentType: 7 },
    { responseTopic: null },
    { correlation: {} },
    { isText: 1 },
    { expiryS: '60' },
    'application/json',
    [],
    null,
  ])('with properties that are none is refused by an import: %j', (properties) => {
    const envelope = envelopeOf(messageOf('10', { topic: 't', sender }), null)
    const line = envelopeLine({ ...envelope, properties: properties as never })
    expect(parseLine(line)).toBe('its envelope is incomplete')
  })

  test('with a property that only a later version knows is read', () => {
    const envelope = envelopeOf(messageOf('10', { topic: 't', sender }), null)
    const later = { ...envelope, properties: { contentType: 'a', later: 1 } as never }
    expect(parseLine(envelopeLine(later))).toMatchObject({ kind: 'message' })
  })
})
